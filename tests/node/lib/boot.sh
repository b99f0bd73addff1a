# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Boots a node.

# node_boot NAME IMAGE OVERLAY WORK LIMIT LOG: boots the kernel of kernel_get with the image's disk
# and the folder OVERLAY laid over it; /vm/command in there is what runs. Before, the caller sets
# NODE_SMP, NODE_MEM, NODE_THREAD, NODE_CGROUP, NODE_SHELL (see boot.sh), NODE_APPEND (for the
# command line) and NODE_DRIVE (options of the drive: ",snapshot=on" leaves the image as it is).
# NODE_CLUSTER is empty, or the folder of a control plane that the node joins.
# The journal of a command that failed becomes LOG with .journal for .log. Status: see qemu_run.
node_boot() {
	local name=$1 image=$2 overlay=$3 work=$4 limit=$5 log=$6 append
	mkdir -p "$work/initrd.root"
	mv "$overlay" "$work/initrd.root/node"
	cp "$NODE_DIR/init" "$work/initrd.root/init"
	pack_cpio "$work/initrd.root" "$work/cpio"
	cat "$BASE_CPIO" "$work/cpio" >"$work/initrd"
	rm -rf "$work/initrd.root" "$work/cpio"

	qemu_machine "$NODE_SMP" "$NODE_MEM" "$NODE_THREAD"
	# No -no-reboot: a test may ask for one, and the first stage knows whether it did.
	append="console=$CONSOLE panic=-1 loglevel=5 mitigations=off lsm=yama audit=0"
	append+=" systemd.show_status=no systemd.gpt_auto=no systemd.journald.forward_to_console=no"
	case $NODE_CGROUP in
	v2) append+=" systemd.unified_cgroup_hierarchy=1" ;;
	hybrid | v1)
		append+=" systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
		[[ $NODE_CGROUP == hybrid ]] ||
			append+=" systemd.legacy_systemd_cgroup_controller=1"
		;;
	*) die "no cgroup layout '$NODE_CGROUP'" ;;
	esac
	QEMU+=(-kernel "$K_DIR/boot" -initrd "$work/initrd"
		-append "$append vm.shell=${NODE_SHELL:-} $NODE_APPEND"
		-drive "file=$image,format=raw,if=virtio,cache=unsafe$NODE_DRIVE")
	if [[ -n ${NODE_SHELL:-} ]]; then
		node_cluster
		"${QEMU[@]}" -serial mon:stdio "${NODE_DEVICES[@]}"
		return
	fi
	NODE_JOURNAL=${log%.log}.journal
	rm -f "$NODE_JOURNAL"
	mkdir -p "${log%/*}"
	node_cluster
	qemu_run "$name" "$limit" "$log" "$work" "${NODE_DEVICES[@]}" \
		-chardev "file,id=journal,path=$NODE_JOURNAL" \
		-device "virtserialport,chardev=journal,name=journal,nr=3"
}

# node_cluster: sets NODE_DEVICES, by which a node reaches its control plane. They come behind all
# others: the number of a virtio device is a part of its ports' names.
node_cluster() {
	NODE_DEVICES=()
	[[ -n ${NODE_CLUSTER:-} ]] || return 0
	# shellcheck disable=SC2054 # QEMU's own lists
	NODE_DEVICES=(-netdev "user,id=net,hostfwd=tcp:$CLUSTER_NODE_IP:10250-:10250"
		-device virtio-net-pci,netdev=net)
	node_share cluster "$NODE_CLUSTER"
	node_share kube "$KUBE"
}

# node_share TAG FOLDER: the node can mount that folder of the machine, to read it.
node_share() {
	NODE_DEVICES+=(-virtfs
		"local,path=$2,mount_tag=$1,security_model=none,readonly=on,multidevs=remap")
}
