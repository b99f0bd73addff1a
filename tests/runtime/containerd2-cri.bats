#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime as a runtime handler of a current containerd 2.x, asked by a current crictl.

source "$BATS_TEST_DIRNAME/cri-stories.bash"

setup_file() {
	local crictl containerd
	needs runc busybox || return 0
	tools_want containerd containerd2 || return 0
	tools_want crictl crictl || return 0
	export CRICTL=$crictl/crictl
	WHY_SKIPPED=$(cri_missing)
	[[ -z $WHY_SKIPPED ]] || return 0
	image_build
	cri_prepare
	node_start
	devices_create
	config_write
	containerd_start "$containerd"
}

setup() {
	skip_if_lacking
	config_write
}

teardown() {
	pods_remove
	ctr_remove main dind
}

teardown_file() {
	node_stop
}

@test "containerd 2: a container can't open another's card without us" {
	story_without_us
}

@test "containerd 2: a target opens its source's card and no other, in silence" {
	story_copy
}

@test "containerd 2: a target is a source for others" {
	story_chain
}

@test "containerd 2: the long form names a container of 60 characters" {
	story_long_form
}

@test "containerd 2: the pause container is no target" {
	story_sandbox_untouched
}

@test "containerd 2: two sources in one container, and no secrets of theirs" {
	story_two_sources
}

@test "containerd 2: a privileged target is fenced off the neighbour's card" {
	story_privileged
}

@test "containerd 2: another pod's card is refused" {
	story_cross_pod_refused
}

@test "containerd 2: a grant lets one pod through, and no other" {
	story_grant
}

@test "containerd 2: a grant for one container brings its card" {
	story_grant_to
}

@test "containerd 2: a forged identity is not believed" {
	story_forged_identity
}

@test "containerd 2: a missing source is named, and a retry works" {
	story_retry
}

@test "containerd 2: a malformed annotation is quoted" {
	story_malformed
}

@test "containerd 2: a restarted source is told from the dead one of its name" {
	story_restarted_source
}

@test "containerd 2: the card stays open after an update of limits" {
	story_update
}

@test "containerd 2: exec, pause, resume, ps, stop go through" {
	story_verbs
}

@test "containerd 2: containers that share a PID namespace" {
	story_shared_pids
}

@test "containerd 2: limits of CPU and memory from annotations" {
	story_cpu_and_memory
}

@test "containerd 2: records go with their containers" {
	story_registry
}

# The card stands in the source's config.json with what belongs to it, and NVIDIA's own runtime
# would be told that nothing is left to inject.
@test "containerd 2: a source whose card was injected by CDI" {
	local answers
	cdi_spec
	pod_run "$POD" --annotation "$FROM.dind=_/_/main"
	container_run "$POD" main --cdi nvidia.com/gpu=0
	container_run "$POD" dind --image "$IMAGE_CUDA"
	answers=$(container_probe "$POD" dind /dev/nvidia0 /dev/nvidiactl /dev/nvidia1)
	open_in "$answers" /dev/nvidia0 /dev/nvidiactl
	absent_in "$answers" /dev/nvidia1
	matches "$(container_env "$POD" dind)" 'NVIDIA_VISIBLE_DEVICES=void'
	equals "$(container_exec "$POD" dind /bin/cat /usr/lib/libcuda.so.1 | tr -d '\n')" cuda
	# The vendor's hook ran for both.
	equals "$(wc -l <"$NODE_DIR/cdi/hook.log")" 2
}

@test "containerd 2: ctr, with identities by annotation" {
	local id=gpushare.k8s.io/identity
	config_write 'cri="none"'
	ctr_run main --annotation "$id=team-a/dev/main" --device /dev/nvidia0
	ctr_run dind --annotation "$id=team-a/dev/dind" --annotation "$FROM.dind=_/_/main"
	open_in "$(ctr_probe dind /dev/nvidia0)" /dev/nvidia0
	absent_in "$(ctr_probe dind /dev/nvidia1)" /dev/nvidia1
}

@test "containerd 2: the command that lists who still needs the program" {
	story_who_needs_it
}

@test "containerd 2: what operator.md prints keeps the node's own runtimes" {
	local dump
	node_exec /bin/bash -ec '
		rm -rf /etc/containerd/conf.d
		printf "%s\n" "version = 3" "imports = [\"/etc/containerd/conf.d/*.toml\"]" \
			>/etc/containerd/config.toml'
	doc_block docs/operator.md containerd-2 | sed '/^systemctl restart/,$d' >"$NODE_DIR/typed"
	node_exec /usr/bin/env "PATH=$CONTAINERD_BIN:$PATH" /bin/bash -ec \
		'cd "$1" && source "$2"' - "$GS_TOP" "$NODE_DIR/typed"
	dump=$(node_exec "$CONTAINERD_BIN/containerd" config dump)
	matches "$dump" 'runtimes\.gpushare\.options\]'
	matches "$dump" 'runtimes\.runc\.options\]'
	matches "$dump" "BinaryName = '/usr/bin/gpushare-runtime'"
	lacks "$dump" 'SystemdCgroup = true'
}

# A CDI spec as NVIDIA's generator writes them where a container has the driver, with a library and
# a hook that are our own.
cdi_spec() {
	local hook=$NODE_DIR/cdi/nvidia-cdi-hook
	mkdir -p "$NODE_DIR/cdi"
	printf '#!/bin/sh\necho "$@" >>%s\n' "$NODE_DIR/cdi/hook.log" >"$hook"
	chmod 0755 "$hook"
	node_exec /bin/bash -euc '
		mkdir -p /etc/cdi /run/nvidia/driver/usr/lib
		echo cuda >/run/nvidia/driver/usr/lib/libcuda.so.1
		cat >/etc/cdi/nvidia.json' <<-EOF
		{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
		 "devices": [{"name": "0", "containerEdits": {
			"deviceNodes": [{"path": "/dev/nvidia0"}]}}],
		 "containerEdits": {
			"env": ["NVIDIA_VISIBLE_DEVICES=void"],
			"deviceNodes": [{"path": "/dev/nvidiactl"}],
			"mounts": [{"hostPath": "/run/nvidia/driver/usr/lib/libcuda.so.1",
				"containerPath": "/usr/lib/libcuda.so.1",
				"options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}],
			"hooks": [{"hookName": "createContainer",
				"path": "$hook",
				"args": ["nvidia-cdi-hook", "update-ldcache"]}]}}
	EOF
}
