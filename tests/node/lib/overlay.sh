# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What a boot lays over the node's root: configuration, and what is tested.

# Units that a node in a test has no use for: every one costs time at each boot.
overlay_masked=(
	apt-daily{,-upgrade}.{timer,service} dpkg-db-backup.{timer,service} e2scrub_all.timer
	e2scrub_reap.service fstrim.timer getty.target getty-static.service getty@tty1.service
	serial-getty@ttyS0.service systemd-udevd.service systemd-udevd-{control,kernel}.socket
	systemd-udev-{trigger,settle}.service systemd-binfmt.service
	proc-sys-fs-binfmt_misc.{automount,mount} systemd-timesyncd.service
	systemd-networkd.{service,socket} systemd-resolved.service systemd-firstboot.service
	systemd-machine-id-commit.service systemd-random-seed.service systemd-hwdb-update.service
	systemd-journal-catalog-update.service systemd-update-done.service ldconfig.service
	systemd-update-utmp{,-runlevel}.service systemd-user-sessions.service
	systemd-logind.service systemd-ask-password-{console,wall}.path
	systemd-pstore.service systemd-sysusers.service systemd-tmpfiles-clean.timer
	systemd-journal-flush.service systemd-boot-system-token.service
	systemd-remount-fs.service systemd-fsck-root.service
	systemd-tmpfiles-setup-dev.service kmod-static-nodes.service
	modprobe@.service dev-hugepages.mount dev-mqueue.mount sys-kernel-config.mount
	sys-fs-fuse-connections.mount
	podman{,-auto-update,-restart}.service podman.socket podman-auto-update.timer
	podman-clean-transient.service
)
overlay_masked_generators=(
	systemd-{cryptsetup,debug,fstab,getty,gpt-auto,hibernate-resume,integritysetup}-generator
	systemd-{rc-local,run,system-update,sysv,veritysetup,bless-boot}-generator
)

# overlay_config FOLDER: the node's configuration, the same for every build.
overlay_config() {
	local to=$1 name system=$1/etc/systemd/system cri='plugins."io.containerd.grpc.v1.cri"'
	cp -a "$NODE_DIR/root/." "$to"
	mkdir -p "$system/multi-user.target.wants" "$to"/etc/{systemd/system-generators,containerd}
	for name in "${overlay_masked[@]}"; do
		ln -s /dev/null "$system/$name"
	done
	for name in "${overlay_masked_generators[@]}"; do
		ln -s /dev/null "$to/etc/systemd/system-generators/$name"
	done
	ln -s multi-user.target "$system/default.target"
	ln -s ../gpushare-test.service "$system/multi-user.target.wants"
	ln -s /lib/systemd/system/containerd.service "$system/multi-user.target.wants"
	mkdir -p "$system/sysinit.target.wants"

	# As operators are told to write it, with systemd's cgroup driver as on nodes of today.
	{
		cat <<-EOT
			version = 2
			disabled_plugins = [
				"io.containerd.snapshotter.v1.aufs",
				"io.containerd.snapshotter.v1.btrfs",
				"io.containerd.snapshotter.v1.devmapper",
				"io.containerd.snapshotter.v1.native",
				"io.containerd.snapshotter.v1.zfs",
				"io.containerd.internal.v1.opt",
				"io.containerd.tracing.processor.v1.otlp",
			]
			[$cri]
			sandbox_image = "localhost/gpushare/pause:1"
			tolerate_missing_hugetlb_controller = true
		EOT
		sed 's/SystemdCgroup = false/SystemdCgroup = true/' \
			"$VM_TOP/packaging/containerd/runc-v2.toml"
		cat "$VM_TOP/packaging/containerd/gpushare-v2.toml"
	} >"$to/etc/containerd/config.toml"

	mkdir -p "$to"/etc/containers/containers.conf.d
	cp "$VM_TOP/packaging/podman/gpushare.conf" "$to/etc/containers/containers.conf.d"
}

# node_programs BUILD: BUILD/node, test programs and modules without symbols, of what tests/vm's
# build.sh made in BUILD.
node_programs() {
	rm -rf "$1/node"
	mkdir -p "$1"/node/{bin,modules}
	cp -p "$1"/programs/* "$1/node/bin"
	rm "$1/node/bin/gpusharectl" # the installed one is what is tested
	strip "$1"/node/bin/*
	cp -p "$1"/modules/{fakegpu,gpushare}.ko "$1/node/modules"
	strip --strip-debug "$1"/node/modules/*
}

# overlay_build BUILD FOLDER: the programs, modules and scripts of build.sh's folder BUILD.
overlay_build() {
	local build=$1 to=$2 unit
	cp -a "$build/install/." "$to"
	mkdir -p "$to/vm" "$to/usr/share/gpushare/vendors.d"
	cp -a "$build/node/." "$to/vm"
	cp -a "$NODE_DIR/suite" "$to/vm"
	cp "$VM_DIR/suite/lib.sh" "$to/vm/tap.sh"
	mkdir -p "$to/vm/lib"
	cp "$VM_TOP"/tests/lib/{cri.sh,podspec.py} "$to/vm/lib"
	if [[ -z $NODE_CRICTL ]]; then
		cp "$VM_TOP/tests/lib/cri.py" "$to/vm/lib"
		mkdir -p "$to/vm/tests-lib/cri"
		protoc --proto_path="$VM_TOP/tests/lib" --python_out="$to/vm/tests-lib/cri" \
			cri.proto
	fi
	cp "$VM_TOP/tests/fakegpu/fakegpu.json" "$to/usr/share/gpushare/vendors.d"
	# Units that `make install` did not put anywhere itself.
	for unit in "$VM_TOP"/packaging/systemd/*.service; do
		[[ -e $unit ]] || continue
		[[ -e $(compgen -G "$to/*/lib/systemd/system/${unit##*/}") ]] ||
			install -D -m 0644 -t "$to/usr/lib/systemd/system" "$unit"
	done
}

# overlay_enable FOLDER UNIT: lets the unit start with multi-user.target, if the build has it.
overlay_enable() {
	[[ -e $1/usr/lib/systemd/system/$2 ]] || return 0
	ln -s "/usr/lib/systemd/system/$2" "$1/etc/systemd/system/multi-user.target.wants"
}

# overlay_modules FOLDER [MODULE...]: modules of the kernel of kernel_get that the first stage has,
# and those of ours that lie in vm/modules; the MODULEs are loaded by systemd.
overlay_modules() {
	local to=$1 modules=$1/usr/lib/modules/$K_RELEASE name
	shift
	mkdir -p "$to/tmp" "$modules/updates" "$to/etc/modules-load.d"
	(cd "$to/tmp" && cpio -id --quiet "lib/modules/*" <"$BASE_CPIO")
	cp -a "$to/tmp/lib/modules/$K_RELEASE/." "$modules"
	rm -rf "${to:?}/tmp"
	! compgen -G "$to/vm/modules/*.ko" >/dev/null ||
		mv "$to"/vm/modules/*.ko "$modules/updates"
	ln -s usr/lib "$to/lib"
	depmod -b "$to" "$K_RELEASE"
	rm "$to/lib"
	for name; do
		echo "$name"
	done >"$to/etc/modules-load.d/gpushare-test.conf"
}
