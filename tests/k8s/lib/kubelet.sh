# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A real kubelet with a real containerd in the same test node, joined to its control plane.
#
#	control_start; devices_create; config_write; kubelet_start; kubectl wait …

# For setup_file, as control_wants.
kubelet_wants() {
	control_wants || return 1
	needs containerd containerd-shim-runc-v2 runc mount || return 1
	WHY_SKIPPED=$(cri_missing)
	export WHY_SKIPPED
	[[ -z $WHY_SKIPPED ]] || return 1
	image_build
	cri_prepare
}

# kubelet_start: containerd and kubelet; returns when the node is ready.
kubelet_start() {
	kubelet_surroundings
	containerd_start
	kubelet_config >"$NODE_DIR/kubelet.yaml"
	kubelet_run
	node_wait 60 kubelet "$KUBE/kube" kubectl --kubeconfig "$NODE_DIR/admin.conf" \
		--cache-dir "$NODE_DIR/kubectl" \
		wait --for=condition=Ready --timeout=1s "node/$CLUSTER_NODE"
}

# The process alone, again after kubelet_stop.
kubelet_run() {
	node_spawn kubelet "$KUBE/kube" kubelet --config "$NODE_DIR/kubelet.yaml" \
		--kubeconfig "$NODE_DIR/kubelet.conf" --hostname-override "$CLUSTER_NODE" \
		--node-ip "$CLUSTER_NODE_IP"
}

# Its pods go on.
kubelet_stop() {
	node_end kubelet
}

# What the kubelet writes to, looks for and would change on the machine.
kubelet_surroundings() {
	local name value top
	# All of it: a folder of that name on the machine would go with whichever node made it, and
	# what is mounted on it in others with it.
	node_hide /var/lib
	node_hide /var/log
	node_hide /opt
	node_exec /bin/cp -r "$GS_TOP/tests/node/root/opt/cni" /opt
	node_exec /bin/cp -r "$GS_TOP/tests/node/root/etc/cni" /etc
	node_exec /bin/mknod /dev/kmsg c 1 11

	# It sets these, for the whole machine, unless they have its values already.
	mkdir "$NODE_DIR/sysctl"
	while read -r name value; do
		echo "$value" >"$NODE_DIR/sysctl/$name"
		node_exec /bin/mount --bind "$NODE_DIR/sysctl/$name" "/proc/sys/${name//.//}"
	done <<-'EOT'
		kernel.keys.root_maxbytes 25000000
		kernel.keys.root_maxkeys 1000000
		kernel.panic 10
		kernel.panic_on_oops 1
		vm.overcommit_memory 1
		vm.panic_on_oom 0
	EOT

	# Below this all pods are; it has to be there.
	for top in /sys/fs/cgroup/*; do
		[[ $top != */unified && -e $top/cgroup.procs ]] || continue
		mkdir -p "$top$NODE_CGROUP"
		if [[ -e $top/cpuset.cpus ]]; then
			cat "$top/cpuset.cpus" >"$top$NODE_CGROUP/cpuset.cpus"
			cat "$top/cpuset.mems" >"$top$NODE_CGROUP/cpuset.mems"
		fi
	done
}

# kubelet_config [MEMBER…]: prints it, with these instead of those about this machine's cgroups.
kubelet_config() {
	local pki=$NODE_DIR/pki
	(($# > 0)) || set -- "cgroupDriver: cgroupfs" "cgroupRoot: $NODE_CGROUP"
	cat <<-EOT
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {x509: {clientCAFile: $pki/ca.crt}, anonymous: {enabled: false}}
		authorization: {mode: Webhook}
		tlsCertFile: $pki/kubelet-server.crt
		tlsPrivateKeyFile: $pki/kubelet-server.key
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		failCgroupV1: false
		failSwapOn: false
		makeIPTablesUtilChains: false
		resolvConf: ""
		# Nobody answers there; without one each pod gets an Event about it.
		clusterDNS: [10.96.0.10]
		nodeStatusUpdateFrequency: 5s
		# The machine's disk is not this node's.
		evictionHard: {memory.available: 1Mi, nodefs.available: 0%, imagefs.available: 0%}
		imageGCHighThresholdPercent: 100
	EOT
	printf '%s\n' "$@"
}
