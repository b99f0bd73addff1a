# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The node's disk: the root of root.sh, crictl if it can be built, and the images of containers,
# which containerd and podman have taken in already. All that is slow to make, and none of what is
# tested.

# What makes the images of containers, and with them the disk.
image_sources=("$VM_TOP/tests/lib/mkimage.py" "$VM_TOP/tests/programs/probe.c"
	"$NODE_DIR/prepare")

# image_get: sets NODE_IMAGE, the file with that disk; or NODE_WHY, if this machine can't make it.
# NODE_CRICTL is crictl's file, or empty: then tests/lib/cri.py stands for it.
image_get() {
	local key tools rc=0
	NODE_WHY=
	tools=$(
		# shellcheck source=tests/lib/tools.sh
		GS_TOP=$VM_TOP source "$VM_TOP/tests/lib/tools.sh"
		GS_TOP=$VM_TOP tools_build crictl
	) || rc=$? # and no errors are missed in there: it looks at each
	((rc == 0 || rc == 77)) || die "no crictl"
	NODE_CRICTL=$tools/crictl
	if ((rc == 77)); then
		if ! command -v protoc >/dev/null; then
			# shellcheck disable=SC2034 # for those who source this
			NODE_WHY="no crictl ($tools), and no protoc for what stands for it"
			return 0
		fi
		NODE_CRICTL=''
	fi
	key=$({
		image_root_key
		cat "${image_sources[@]}"
		cat "$(command -v busybox)"
		echo "${NODE_CRICTL:+${tools##*/}}"
		overlay_key
		declare -f image_make
	} | hash_of)
	NODE_IMAGE=$NODE_CACHE/image-$key
	cached "$NODE_IMAGE" image_make
	NODE_IMAGE=$NODE_IMAGE/disk
}

image_root_key() {
	# shellcheck disable=SC2154 # of root.sh
	echo "${root_packages[@]}"
	declare -f root_make_tree
}

# The configuration under which the images are taken in decides where they lie.
overlay_key() {
	declare -f overlay_config
	cat "$VM_TOP"/packaging/{containerd/{runc,gpushare}-v2.toml,podman/gpushare.conf}
}

image_make() {
	local new=$1 tree suite work overlay
	suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	tree=$NODE_CACHE/root-$suite-$(image_root_key | hash_of)
	cached "$tree" root_make_tree
	work=$new/work
	mkdir -p "$work"

	say "making the node's disk"
	truncate -s 2G "$new/disk"
	cp -a "$tree/root" "$work/root"
	[[ -z $NODE_CRICTL ]] ||
		install -m 0755 "$NODE_CRICTL" "$work/root/usr/local/bin/crictl"
	image_fill "$work/root"
	mkfs.ext4 -q -F -O ^metadata_csum -E lazy_itable_init=0 -m 0 \
		-d "$work/root" "$new/disk"
	rm -rf "$work/root"

	overlay=$work/overlay
	mkdir -p "$overlay/vm"
	overlay_config "$overlay"
	overlay_modules "$overlay"
	install -m 0755 "$NODE_DIR/prepare" "$overlay/vm/command"
	gcc -static -O2 -D_GNU_SOURCE -o "$work/probe" "$VM_TOP/tests/programs/probe.c"
	/usr/bin/python3 "$VM_TOP/tests/lib/mkimage.py" "$(command -v busybox)" "$work/probe" \
		"$overlay/vm/images.tar"
	NODE_SMP=2 NODE_MEM=2048 NODE_THREAD=single NODE_CGROUP=v2 \
		NODE_APPEND=vm.keep=1 NODE_DRIVE='' \
		node_boot "preparing the disk, see $new/prepare.journal" "$new/disk" "$overlay" \
		"$work" 600 "$new/prepare.log" >"$new/prepare.out"
	rm -rf "$work"
}

# image_fill ROOT: what no package brings.
image_fill() {
	local root=$1
	echo node >"$root/etc/hostname"
	echo "127.0.0.1 localhost node" >"$root/etc/hosts"
	echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
	echo "LANG=C.UTF-8" >"$root/etc/default/locale"
	: >"$root/etc/fstab"
	mkdir -p "$root/vm" "$root/var/log/journal"
	rmdir "$root/var/log/journal" # in memory: less to write
}
