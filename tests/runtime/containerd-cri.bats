#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime as a runtime handler of Debian's containerd, over its CRI plugin.

source "$BATS_TEST_DIRNAME/cri-stories.bash"

setup_file() {
	needs containerd containerd-shim-runc-v2 runc busybox || return 0
	WHY_SKIPPED=$(cri_missing)
	[[ -z $WHY_SKIPPED ]] || return 0
	image_build
	cri_prepare
	node_start
	devices_create
	config_write
	containerd_start
}

setup() {
	skip_if_lacking
}

teardown() {
	pods_remove
}

teardown_file() {
	node_stop
}

@test "containerd CRI: a container can't open another's card without us" {
	story_without_us
}

@test "containerd CRI: a target opens its source's card and no other, in silence" {
	story_copy
}

@test "containerd CRI: a target is a source for others" {
	story_chain
}

@test "containerd CRI: the long form names a container of 60 characters" {
	story_long_form
}

@test "containerd CRI: the pause container is no target" {
	story_sandbox_untouched
}

@test "containerd CRI: two sources in one container, and no secrets of theirs" {
	story_two_sources
}

@test "containerd CRI: a privileged target is fenced off the neighbour's card" {
	story_privileged
}

@test "containerd CRI: another pod's card is refused" {
	story_cross_pod_refused
}

@test "containerd CRI: a grant lets one pod through, and no other" {
	story_grant
}

@test "containerd CRI: a grant for one container brings its card" {
	story_grant_to
}

@test "containerd CRI: a forged identity is not believed" {
	story_forged_identity
}

@test "containerd CRI: a missing source is named, and a retry works" {
	story_retry
}

@test "containerd CRI: a malformed annotation is quoted" {
	story_malformed
}

@test "containerd CRI: a restarted source is told from the dead one of its name" {
	story_restarted_source
}

@test "containerd CRI: the card stays open after an update of limits" {
	story_update
}

@test "containerd CRI: exec, pause, resume, ps, stop go through" {
	story_verbs
}

@test "containerd CRI: containers that share a PID namespace" {
	story_shared_pids
}

@test "containerd CRI: limits of CPU and memory from annotations" {
	story_cpu_and_memory
}

@test "containerd CRI: records go with their containers" {
	story_registry
}
