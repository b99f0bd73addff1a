#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl setup on a node with Debian's own configuration of containerd: the node's runc is
# still there, annotations of pods reach the handler, and after the undo there is none.

source "$BATS_TEST_DIRNAME/cri-stories.bash"

main=/etc/containerd/config.toml

setup_file() {
	needs containerd containerd-shim-runc-v2 runc busybox || return 0
	WHY_SKIPPED=$(cri_missing)
	if [[ -z $WHY_SKIPPED && ! $(containerd --version) =~ \ v?1\.[67]\. ]]; then
		WHY_SKIPPED="containerd here is neither 1.6 nor 1.7"
	fi
	[[ -z $WHY_SKIPPED ]] || return 0
	image_build
	cri_prepare
	node_start
	devices_create
	config_write
	node_hide /var/lib/containerd
	this_machine
	CONTAINERD_BIN=/usr/bin containerd_spawn $main
}

setup() {
	export CONTAINERD_BIN=/usr/bin
	skip_if_lacking
}

teardown() {
	pods_remove
}

teardown_file() {
	node_stop
}

# /etc/containerd/config.toml of Debian 12's package with what a test node needs and a node does
# not, and what setup makes of it.
this_machine() {
	node_exec /bin/mkdir -p /etc/containerd
	node_exec /bin/bash -c 'cat >/etc/containerd/config.toml' <<-EOT
		version = 2

		[plugins]
		  [plugins."io.containerd.grpc.v1.cri"]
		    sandbox_image = "$IMAGE_PAUSE"
		    restrict_oom_score_adj = true
		    disable_apparmor = true
		    tolerate_missing_hugetlb_controller = true
		    [plugins."io.containerd.grpc.v1.cri".cni]
		      bin_dir = "/usr/lib/cni"
		      conf_dir = "/etc/cni/net.d"
		  [plugins."io.containerd.internal.v1.opt"]
		    path = "/var/lib/containerd/opt"
		[plugins."io.containerd.grpc.v1.cri".containerd]
		  snapshotter = "$(containerd_snapshotter)"
	EOT
	node_exec /bin/cat $main >"$NODE_DIR/before"
	gpusharectl setup containerd >"$NODE_DIR/setup.log"
}

@test "containerd by setup: the CRI plugin is in order" {
	matches "$(node_exec /usr/bin/ctr plugins ls)" 'cri +linux/[^ ]+ +ok'
}

@test "containerd by setup: a pod without a handler runs by runc as before" {
	HANDLER=runc story_without_us
}

@test "containerd by setup: a target opens its source's card and no other" {
	story_copy
}

@test "containerd by setup: doctor sees the handler" {
	run gpusharectl doctor
	matches "$output" 'ok +handler +containerd: in /etc/containerd/config.toml, with both lists'
}

@test "containerd by setup: twice is once, and undone is as before" {
	matches "$(gpusharectl setup containerd)" 'nothing to change'
	gpusharectl setup --undo
	equals "$(node_exec /bin/cat $main)" "$(<"$NODE_DIR/before")"
}
