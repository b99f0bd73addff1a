# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The kernel `debug`: Debian's source with tests/vm/debug.config, in which every bug that the kernel
# can find makes it say so.

# debug_make FOLDER: what kernel_make does, for a kernel whose toolchain is `source` and whose
# version is that of the package linux-source-SERIES.
debug_make() {
	local new=$1 version=$K_PIN package=linux-source-${K_PIN%.*} headers want
	apt_state "$K_SUITE" "$K_ARCH"
	apt_update
	if ! apt_versions "$package" | grep -qxF -- "$version"; then
		version=$(apt_versions "$package" | head -n 1)
		[[ -n $version ]] || die "kernel $K_NAME: suite $K_SUITE has no $package" \
			"any more; choose another in $VM_DIR/kernels"
	fi
	say "building Linux $version with all checks: a quarter of an hour on two idle processors"
	mkdir "$new/src"
	apt_download "$new/src" "$package=$version"
	dpkg-deb --fsys-tarfile "$new"/src/*.deb | tar -xO --wildcards '*/linux-source-*.tar.xz' |
		tar -xJ --strip-components=1 -C "$new/src"
	(
		cd "$new/src" || exit
		unset MAKEFLAGS MFLAGS MAKELEVEL
		{
			make tinyconfig
			scripts/kconfig/merge_config.sh -m .config "$VM_DIR/debug.config"
			# The package's revision becomes a part of what uname -r says.
			echo "CONFIG_LOCALVERSION=\"-${version#*-}-debug\"" >>.config
			make olddefconfig
		} >log 2>&1 || {
			cat log >&2
			exit 1
		}
		# An option whose conditions are not met is dropped without a word.
		want=$(grep -E '^CONFIG_' "$VM_DIR/debug.config" | grep -vxF -f .config || true)
		[[ -z $want ]] || die "debug.config: this kernel did not take" "$want"
		nice -n 19 make -j"$(nproc)" bzImage modules >log 2>&1 || {
			tail -n 50 log >&2
			exit 1
		}
		make -s kernelrelease >"$new/release"
	)
	cp "$new/src/arch/x86/boot/bzImage" "$new/boot"
	K_RELEASE=$(<"$new/release")
	mkdir -p "$new/root/usr/lib/modules/$K_RELEASE"
	ln -s usr/lib "$new/root/lib"
	cp "$new"/src/modules.{order,builtin,builtin.modinfo} \
		"$new/root/usr/lib/modules/$K_RELEASE"
	depmod -b "$new/root" "$K_RELEASE"

	# What modules are built against, of the 2 GB that the rest takes.
	headers=$new/headers/usr/src/linux-headers-$K_RELEASE
	mkdir -p "$headers"/{arch,tools}
	mv "$new"/src/{.config,Makefile,Kbuild,Module.symvers,System.map,scripts,include} "$headers"
	mv "$new/src/arch/x86" "$headers/arch"
	mv "$new/src/tools/objtool" "$headers/tools"
	find "$headers/arch" -name '*.[oa]' -delete
	rm -rf "$new/src" "$headers"/arch/x86/boot
}
