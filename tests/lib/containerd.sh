# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# containerd in a test node, with its CRI plugin and a runtime handler "gpushare".

# containerd_start [FOLDER]: starts the containerd of FOLDER (default: Debian's) with its state in
# /run/containerd, loads the images and waits until CRI answers. CONTAINERD_DEFAULT is the handler
# of pods that name none (default: runc).
containerd_start() {
	local bin=${1:-/usr/bin} version

	CONTAINERD_BIN=$bin
	export CONTAINERD_BIN
	version=$("$bin/containerd" --version)
	# "containerd github.com/containerd/containerd 1.6.20~ds1 …"; a module build has no number,
	# but then it is the one that tests/tools pins.
	if [[ $version =~ \ v?1\.[0-9] ]]; then
		containerd_config_v2 >"$NODE_DIR/containerd.toml"
	else
		containerd_config_v3 >"$NODE_DIR/containerd.toml"
	fi
	containerd_spawn "$NODE_DIR/containerd.toml"
}

# containerd_spawn CONFIG: starts it with that configuration of the node.
containerd_spawn() {
	# Only so that crictl does not complain about having none.
	node_exec /bin/bash -c 'echo "timeout: 60" >/etc/crictl.yaml'
	# The shim is looked for beside containerd by PATH.
	node_spawn containerd /usr/bin/env "PATH=$CONTAINERD_BIN:/usr/sbin:/usr/bin:/sbin:/bin" \
		"$CONTAINERD_BIN/containerd" --config "$1"
	node_wait 30 containerd "$CONTAINERD_BIN/ctr" version
	containerd_ctr -n k8s.io images import "$IMAGE_TAR" >/dev/null
	node_wait 30 containerd "$GS_PYTHON" "$GS_LIB/cri.py" --proto-dir "$CRI_PROTO" wait-ready
}

# ctr of the same version; CONTAINERD_BIN says which.
containerd_ctr() {
	# That of cgroup version 1, in every call.
	node_exec /usr/bin/env CONTAINERD_SUPPRESS_DEPRECATION_WARNINGS=1 "$CONTAINERD_BIN/ctr" "$@"
}

# ctr_run ID [option of ctr run…] [-- COMMAND…]: a container without CRI, in ctr's own namespace.
ctr_run() {
	local id=$1 options=() command=()
	shift
	while (($# > 0)); do
		if [[ $1 == -- ]]; then
			shift
			command=("$@")
			break
		fi
		options+=("$1")
		shift
	done
	if [[ -z $(containerd_ctr images ls -q "name==$IMAGE") ]]; then
		containerd_ctr images import --snapshotter "$(containerd_snapshotter)" \
			"$IMAGE_TAR" >/dev/null
	fi
	containerd_ctr run --detach --snapshotter "$(containerd_snapshotter)" \
		--runc-binary "$GS_RUNTIME" --cgroup "$NODE_CGROUP/$id" "${options[@]}" \
		"$IMAGE" "$id" "${command[@]}" </dev/null 3>&- 4>&-
}

# ctr_probe ID PATH|NUMBER…
# ctr 1.6 may end before it has copied what a short command wrote: nothing is no answer, ask again.
ctr_probe() {
	local id=$1 answer try
	shift
	for try in 1 2 3; do
		answer=$(containerd_ctr task exec --exec-id "probe$RANDOM-$try" "$id" \
			/bin/probe "$@")
		[[ -z $answer ]] || break
	done
	printf '%s\n' "$answer"
}

# ctr_remove ID…
ctr_remove() {
	local id
	for id; do
		containerd_ctr task delete --force "$id" >/dev/null 2>&1 || true
		containerd_ctr container delete "$id" >/dev/null 2>&1 || true
	done
}

# containerd 1.6 and 1.7. The oom score may not be lowered without CAP_SYS_RESOURCE, which a test
# machine may lack. AppArmor's profile is left out: it would have to be loaded into the machine.
containerd_config_v2() {
	cat <<-EOF
		version = 2
		root = "$NODE_DIR/containerd"
		state = "/run/containerd"
		disabled_plugins = [
			"io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
			"io.containerd.snapshotter.v1.devmapper",
			"io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt",
		]
		[grpc]
		address = "/run/containerd/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		sandbox_image = "$IMAGE_PAUSE"
		restrict_oom_score_adj = true
		disable_apparmor = true
		tolerate_missing_hugetlb_controller = true
		[plugins."io.containerd.grpc.v1.cri".containerd]
		snapshotter = "$(containerd_snapshotter)"
		default_runtime_name = "${CONTAINERD_DEFAULT:-runc}"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		SystemdCgroup = false
	EOF
	containerd_handler gpushare-v2.toml
}

# What we ship, with the programs of the source tree and the machine's cgroup driver.
containerd_handler() {
	sed -e "s#/usr/bin/gpushare-runtime#$GS_RUNTIME#" \
		-e 's/SystemdCgroup = true/SystemdCgroup = false/' \
		"$GS_TOP/packaging/containerd/$1"
}

# containerd 2.x.
containerd_config_v3() {
	cat <<-EOF
		version = 3
		imports = ["/etc/containerd/conf.d/*.toml"]
		root = "$NODE_DIR/containerd"
		state = "/run/containerd"
		disabled_plugins = ["io.containerd.internal.v1.opt"]
		[grpc]
		address = "/run/containerd/containerd.sock"
		[plugins."io.containerd.cri.v1.images"]
		snapshotter = "$(containerd_snapshotter)"
		[plugins."io.containerd.cri.v1.images".pinned_images]
		sandbox = "$IMAGE_PAUSE"
		[plugins."io.containerd.cri.v1.runtime"]
		restrict_oom_score_adj = true
		disable_apparmor = true
		tolerate_missing_hugetlb_controller = true
		cdi_spec_dirs = ["/etc/cdi", "/run/cdi"]
		[plugins."io.containerd.cri.v1.runtime".containerd]
		default_runtime_name = "${CONTAINERD_DEFAULT:-runc}"
		[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
		SystemdCgroup = false
	EOF
	node_exec /bin/mkdir -p /etc/containerd/conf.d
	containerd_handler gpushare-v3.toml |
		node_exec /bin/bash -c 'cat >/etc/containerd/conf.d/gpushare.toml'
}

# Native snapshots copy every layer; overlayfs does not work everywhere (on another overlay).
containerd_snapshotter() {
	local dir=$NODE_DIR/overlay-test
	mkdir -p "$dir"/{lower,upper,work,merged}
	if node_exec /bin/mount -t overlay overlay "$dir/merged" \
		-o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" 2>/dev/null; then
		node_exec /bin/umount "$dir/merged"
		echo overlayfs
	else
		echo native
	fi
}
