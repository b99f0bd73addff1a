# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The guest's file system: two cpio archives, one after the other. The first has busybox and the
# kernel's own modules and is kept in the cache, the second has what is tested.

# Modules of the kernel that tests may ask for with modprobe; their dependencies come along. What a
# kernel has built in, or not at all, is passed over.
guest_modules=(virtio_pci virtio_console virtio_blk virtio_net ext4 crc32c_generic overlay 9p
	9pnet_virtio veth bridge fuse loop)

# Sets BASE_CPIO for the kernel of kernel_get.
initramfs_base() {
	local key
	key=$({
		declare -f initramfs_make_base user_make_sysroot
		echo "${guest_modules[@]}"
		cat "$VM_DIR/init"
	} | hash_of)
	BASE_CPIO=$VM_CACHE/initramfs/${K_DIR##*/}-$key
	cached "$BASE_CPIO" initramfs_make_base
	BASE_CPIO=$BASE_CPIO/cpio
}

initramfs_make_base() {
	local root=$1/root module what path
	mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,run,etc,vm,root,mnt} \
		"$root/lib/modules/$K_RELEASE"
	get_busybox "$K_ARCH" "$root/bin/busybox"
	# The list of this machine's busybox: it runs, the other architecture's does not.
	busybox --list | while read -r path; do
		[[ $path == busybox ]] || ln -s busybox "$root/bin/$path"
	done
	cp "$VM_DIR/init" "$root/init"
	echo "root:x:0:0:root:/root:/bin/sh" >"$root/etc/passwd"
	echo "root:x:0:" >"$root/etc/group"

	for module in "${guest_modules[@]}"; do
		while read -r what path; do
			[[ $what == insmod ]] || continue
			path=${path#*/root/}
			mkdir -p "$root/${path%/*}"
			case $path in
			*.xz) xz -dc "$K_DIR/root/$path" >"$root/${path%.xz}" ;;
			*) cp "$K_DIR/root/$path" "$root/$path" ;;
			esac
		done < <(modprobe -d "$K_DIR/root" -S "$K_RELEASE" --show-depends "$module" \
			2>/dev/null || true)
	done
	cp "$K_DIR/root/lib/modules/$K_RELEASE"/modules.{order,builtin{,.modinfo}} \
		"$root/lib/modules/$K_RELEASE"
	depmod -b "$root" "$K_RELEASE"
	pack_cpio "$root" "$1/cpio"
	rm -rf "$root"
}

# get_busybox ARCH FILE
get_busybox() {
	user_sysroot "$1"
	cp "$USER_SYSROOT/bin/busybox" "$2"
}

# pack_cpio FOLDER FILE
pack_cpio() {
	(cd "$1" && find . -mindepth 1 -print0 | LC_ALL=C sort -z |
		cpio -o0 --quiet -H newc -R 0:0) >"$2"
}
