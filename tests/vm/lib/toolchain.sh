# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Compilers of another Debian suite, in a root of their own. The kernels of newer suites need a
# newer gcc, and their build programs (objtool, modpost) a newer libc, than this machine has.

# toolchain_get SUITE ARCH: sets TOOLCHAIN_ROOT, a root folder in which `make CC=gcc-14` works for
# ARCH, and TOOLCHAIN_CC.
toolchain_get() {
	local suite=$1 arch=$2
	TOOLCHAIN_CC=gcc-14
	[[ $arch == amd64 ]] || TOOLCHAIN_CC=aarch64-linux-gnu-gcc-14
	TOOLCHAIN_ROOT=$VM_CACHE/toolchain/$suite-$arch-$(declare -f toolchain_make | hash_of)
	cached "$TOOLCHAIN_ROOT" toolchain_make "$suite" "$arch"
}

# Packages are unpacked, not installed: what their scripts would do is done here.
toolchain_make() {
	local suite=$1 arch=$2 new=$3 deb compiler=gcc-14
	[[ $arch == amd64 ]] || compiler=gcc-14-aarch64-linux-gnu
	apt_state "$suite" amd64
	apt_update
	say "fetching $suite's $compiler"
	apt_download_with_depends "$new/debs" "$compiler" make libelf1t64 kmod dash bash coreutils \
		sed grep findutils mawk diffutils
	mkdir -p "$new"/usr/{bin,sbin,lib,lib64} "$new"/{dev,proc,tmp,etc}
	for deb in bin sbin lib lib64; do
		ln -s "usr/$deb" "$new/$deb"
	done
	for deb in "$new"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$new" \
			--exclude=./usr/share/{doc,man,info,locale,gcc,perl}
	done
	rm -rf "$new/debs"
	ln -s mawk "$new/usr/bin/awk"
	[[ -e $new/usr/bin/sh ]] || ln -s dash "$new/usr/bin/sh"
	chroot "$new" /bin/sh -c 'make --version && "$0" --version' "$TOOLCHAIN_CC" >/dev/null
}

# toolchain_run FOLDER COMMAND...: runs it inside, as if the machine had that compiler; sees the
# cache, read-only, and FOLDER under their own paths.
toolchain_run() {
	unshare --mount --propagation private bash -c '
		set -euo pipefail
		root=$1 cache=$2 folder=$3
		shift 3
		mount -t tmpfs tmpfs "$root/tmp"
		for path in "$cache" "$folder"; do
			mkdir -p "$root$path"
			mount --bind "$path" "$root$path"
		done
		mount -o remount,bind,ro "$root$cache"
		mount --bind /dev "$root/dev"
		mount -t proc proc "$root/proc"
		exec chroot "$root" "$@"' bash "$TOOLCHAIN_ROOT" "$VM_CACHE/kernels" "$@"
}
