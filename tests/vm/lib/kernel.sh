# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Kernels of tests/vm/kernels: found on the mirror, fetched, unpacked into the cache.

source "$VM_DIR/lib/debug.sh"

kernels_file=$VM_DIR/kernels

# Prints the names of all kernels; with an argument, without those that CI treats so.
kernel_names() {
	awk -v not="${1:-}" '!/^#/ && NF && $6 != not { print $1 }' "$kernels_file"
}

# kernel_line NAME: sets K_NAME K_ARCH K_SUITE K_PIN K_TOOLCHAIN K_CI from the file.
kernel_line() {
	local line
	line=$(awk -v n="$1" '!/^#/ && $1 == n' "$kernels_file")
	[[ -n $line ]] || die "no kernel '$1' in $kernels_file; it has:" \
		"$(kernel_names | paste -sd' ')"
	# shellcheck disable=SC2034 # for those who source this
	read -r K_NAME K_ARCH K_SUITE K_PIN K_TOOLCHAIN K_CI <<<"$line"
	K_SERIES=${K_NAME#"$K_ARCH-"}
}

# kernel_get NAME: sets K_DIR, the folder with that kernel, fetched if need be, and what
# kernel_line sets. In it:
#	release   what uname -r says
#	boot      what QEMU boots (on x86 the ELF file inside vmlinuz, which starts faster)
#	root/     lib/modules/RELEASE without drivers that no virtual machine has
#	headers/  what modules are built against, by its path: usr/src/linux-headers-RELEASE
kernel_get() {
	kernel_line "$1"
	local key make=kernel_make suffix=$K_ARCH
	[[ $K_TOOLCHAIN != source ]] || make=debug_make suffix=debug
	key=$({
		echo "$K_ARCH $K_SUITE $K_PIN"
		if [[ $make == debug_make ]]; then
			cat "$VM_DIR/debug.config"
		else
			declare -f kernel_unpack kernel_inner
			echo "${kernel_leave_out[@]}"
		fi
		declare -f "$make"
	} | hash_of)
	K_DIR=$VM_CACHE/kernels/$K_NAME-$K_PIN-$key
	cached "$K_DIR" "$make"
	K_RELEASE=$(<"$K_DIR/release")
	# shellcheck disable=SC2034 # for those who source this
	K_HEADERS=$K_DIR/headers/usr/src/linux-headers-$K_RELEASE
	[[ $K_RELEASE == "$K_PIN-$suffix" ]] || kernel_warn
}

kernel_warn() {
	say "WARNING: the mirror no longer has $K_PIN, which $kernels_file pins for $K_NAME;"
	say "WARNING: took ${K_RELEASE%-*} of the same series. Update the pin."
}

# Sets version (as in the packages' names) and deb_version: the pin or, where that is gone, the
# newest of its series with headers.
kernel_resolve() {
	version=$K_PIN
	deb_version=$(apt_versions "linux-headers-$version-$K_ARCH" | head -n 1)
	[[ -z $deb_version ]] || return 0
	version=$(apt_names "^linux-headers-${K_SERIES//./\\.}[.][0-9][^ ]*-$K_ARCH\$" |
		grep -vE -- '-(rt|cloud)-' | sed "s/^linux-headers-//; s/-$K_ARCH\$//" |
		sort -V | tail -n 1)
	[[ -n $version ]] || return 1
	deb_version=$(apt_versions "linux-headers-$version-$K_ARCH" | head -n 1)
}

kernel_make() {
	local new=$1 version deb_version image kbuild common debs=$1/debs
	apt_state "$K_SUITE" "$K_ARCH"
	apt_update
	kernel_resolve || die "kernel $K_NAME: suite $K_SUITE has no $K_SERIES any more" \
		"(wanted $K_PIN); choose another in $kernels_file"
	K_RELEASE=$version-$K_ARCH
	say "fetching Linux $K_RELEASE ($deb_version, $K_SUITE)"

	# From 7.x on linux-image-* is empty and depends on the parts.
	if [[ -n $(apt_versions "linux-binary-$K_RELEASE") ]]; then
		image="linux-binary-$K_RELEASE linux-modules-$K_RELEASE linux-base-$K_RELEASE"
	else
		image=linux-image-$K_RELEASE
	fi
	common=$(apt_depends "linux-headers-$K_RELEASE" "$deb_version" |
		grep -E '^linux-headers-.*-common$')
	kbuild=$(apt_depends "linux-headers-$K_RELEASE" "$deb_version" | grep -E '^linux-kbuild-')

	mkdir "$debs"
	read -ra image <<<"$image"
	apt_download "$debs" "${image[@]/%/=$deb_version}" "linux-headers-$K_RELEASE=$deb_version" \
		"$common=$deb_version"
	# Its programs run on this machine, whatever they build for.
	apt_state "$K_SUITE" amd64
	[[ $K_ARCH == amd64 ]] || apt_update
	apt_download "$debs" "$kbuild=$deb_version"

	kernel_unpack "$new"
	rm -rf "$debs"
	echo "$K_RELEASE" >"$new/release"
}

# Drivers that fill most of a distribution's modules and fit no machine of QEMU's.
kernel_leave_out=(sound drivers/{gpu,media,infiniband,staging,iio,hwmon,usb,hid,input,iommu}
	drivers/{isdn,mtd,nfc,platform,mfd,thunderbolt,firewire,scsi,ata,bluetooth,comedi}
	drivers/net/{ethernet,wireless,wan,usb,can,phy,dsa} drivers/accel net/{bluetooth,wireless})

kernel_unpack() {
	local new=$1 deb boot exclude=()
	mkdir -p "$new"/{root,headers}/usr/lib
	# Both ways to the modules, before and after the merge of /lib into /usr.
	ln -s usr/lib "$new/root/lib"
	ln -s usr/lib "$new/headers/lib"
	exclude=("${kernel_leave_out[@]/#/--exclude=*/kernel/}")
	for deb in "$new"/debs/*.deb; do
		case ${deb##*/} in
		linux-headers-* | linux-kbuild-*)
			dpkg-deb --fsys-tarfile "$deb" |
				tar -x --keep-directory-symlink -C "$new/headers"
			;;
		*)
			dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink \
				-C "$new/root" "${exclude[@]}"
			;;
		esac
	done
	rm -rf "$new"/root/usr/share "$new"/headers/usr/share

	# They name each other by absolute paths.
	grep -rlZ --include='Makefile*' --include=.kernelvariables -E '/usr/(src|lib)/linux-' \
		"$new/headers/usr/src" | xargs -0r sed -i -E \
		"s#(^|[^[:alnum:]_/.-])(/usr/(src|lib)/linux-)#\1$K_DIR/headers\2#g"

	boot=$(compgen -G "$new/root/boot/vmlinu?-$K_RELEASE" ||
		compgen -G "$new/root/usr/lib/modules/$K_RELEASE/vmlinu?")
	kernel_inner "$boot" >"$new/boot"
	rm -f "$boot"
	depmod -b "$new/root" "$K_RELEASE"
}

# number FILE OFFSET SIZE: prints a little-endian number out of a file.
number() {
	od -An -v -tu"$3" -j "$2" -N "$3" --endian=little "$1" | tr -d ' '
}

# kernel_inner FILE: prints the plain kernel inside a bzImage or an EFI zboot image, or the file if
# it is a plain one itself.
kernel_inner() {
	local file=$1 offset length
	if [[ $(od -An -c -j 514 -N 4 "$file" | tr -d ' ') == HdrS ]]; then
		offset=$((($(number "$file" 497 1) + 1) * 512 + $(number "$file" 584 4)))
		length=$(number "$file" 588 4)
	elif [[ $(od -An -c -j 4 -N 4 "$file" | tr -d ' ') == zimg ]]; then
		offset=$(number "$file" 8 4)
		length=$(number "$file" 12 4)
	else
		cat "$file"
		return
	fi
	# All but gzip, which does so itself, have the uncompressed length behind them.
	case $(od -An -tx1 -j "$offset" -N 4 "$file" | tr -d ' ') in
	fd377a58) part "$file" "$offset" $((length - 4)) | xz -dc ;;
	28b52ffd) part "$file" "$offset" $((length - 4)) | zstd -dcq ;;
	1f8b*) part "$file" "$offset" "$length" | gzip -dc ;;
	*) die "unknown compression in ${file##*/}" ;;
	esac
}

# part FILE OFFSET LENGTH: prints a part of a file.
part() {
	dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip="$2" count="$3" status=none
}
