#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/operator.md's way into Debian's own configuration of containerd, as it is typed there: the
# node's runc must still be there, beside the handler "gpushare".

source "$BATS_TEST_DIRNAME/cri-stories.bash"

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
	# Debian's file says nothing of where containerd's data is.
	node_hide /var/lib/containerd
	debian_config
	as_the_operator
	this_machine
	CONTAINERD_BIN=/usr/bin containerd_spawn /etc/containerd/config.toml
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

debian_config() {
	node_exec /bin/mkdir -p /etc/containerd
	debian_containerd | node_exec /bin/bash -c 'cat >/etc/containerd/config.toml'
}

# The lines of operator.md up to the restart, and no other.
as_the_operator() {
	doc_block docs/operator.md containerd-1 >"$NODE_DIR/typed"
	grep -qx 'systemctl restart containerd' "$NODE_DIR/typed"
	sed '/^systemctl restart/,$d' "$NODE_DIR/typed" >"$NODE_DIR/before"
	sed '1,/^systemctl restart/d' "$NODE_DIR/typed" >"$NODE_DIR/after"
	node_exec /bin/bash -ec 'cd "$1" && source "$2"' - "$GS_TOP" "$NODE_DIR/before"
}

# What a test node needs and a node does not: the runtime of the source tree, and the settings of
# containerd.sh.
this_machine() {
	node_exec /bin/sed -i "s#/usr/bin/gpushare-runtime#$GS_RUNTIME#" \
		/etc/containerd/config.toml
	node_exec /bin/bash -c 'cat >>/etc/containerd/config.toml' <<-EOT
		[plugins."io.containerd.grpc.v1.cri".containerd]
		  snapshotter = "$(containerd_snapshotter)"
	EOT
	node_exec /bin/sed -i '/^  \[plugins."io.containerd.grpc.v1.cri"\]/a\
		sandbox_image = "'"$IMAGE_PAUSE"'"\
		restrict_oom_score_adj = true\
		disable_apparmor = true\
		tolerate_missing_hugetlb_controller = true' /etc/containerd/config.toml
}

@test "Debian's containerd: what operator.md prints leaves the CRI plugin in order" {
	node_exec /bin/bash -ec 'cd "$1" && source "$2"' - "$GS_TOP" "$NODE_DIR/after" \
		>"$NODE_DIR/said"
	matches "$(<"$NODE_DIR/said")" 'cri +linux/[^ ]+ +ok'
}

@test "Debian's containerd: a pod without a handler runs by runc as before" {
	HANDLER=runc story_without_us
}

@test "Debian's containerd: a target opens its source's card and no other" {
	story_copy
}

@test "Debian's containerd: the command that lists who still needs the program" {
	story_who_needs_it
}

@test "Debian's containerd: both handlers have the same cgroup driver" {
	local drivers
	drivers=$(node_exec /usr/bin/containerd config dump | grep SystemdCgroup | sort -u)
	matches "$drivers" '^ *SystemdCgroup = false$'
}

@test "Debian's containerd: a file with a runc section of its own keeps it" {
	debian_config
	node_exec /bin/bash -c 'cat >>/etc/containerd/config.toml' <<-'EOT'
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		      SystemdCgroup = true
	EOT
	as_the_operator
	equals "$(node_exec /usr/bin/containerd config dump | grep -c 'SystemdCgroup = true')" 2
	equals "$(node_exec /bin/grep -c 'runtimes.runc\]' /etc/containerd/config.toml)" 1
}

@test "Debian's containerd: typed twice, the lines change nothing the second time" {
	debian_config
	as_the_operator
	before=$(node_exec /bin/cat /etc/containerd/config.toml)
	run as_the_operator
	equals "$status" 0
	matches "$output" 'gpushare is there already: not changed'
	equals "$(node_exec /bin/cat /etc/containerd/config.toml)" "$before"
	equals "$(node_exec /bin/grep -c gpushare /etc/containerd/config.toml.before-gpushare)" 0
}

@test "Debian's containerd: a file of version 1 is left alone, and the check prints nothing" {
	node_exec /bin/bash -c 'echo "oom_score = -999" >/etc/containerd/config.toml'
	run as_the_operator
	equals "$status" 1
	matches "$output" 'no "version = 2".*not changed'
	equals "$(node_exec /bin/cat /etc/containerd/config.toml)" 'oom_score = -999'
}
