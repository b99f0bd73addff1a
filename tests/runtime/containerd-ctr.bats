#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime under Debian's containerd without CRI: ctr, with identities by annotation.

source "$BATS_TEST_DIRNAME/../lib/lib.sh"

ID=gpushare.k8s.io/identity
FROM=gpushare.k8s.io/container-devices-from
GRANT=gpushare.k8s.io/grant

setup_file() {
	needs containerd ctr containerd-shim-runc-v2 runc busybox || return 0
	WHY_SKIPPED=$(cri_missing)
	[[ -z $WHY_SKIPPED ]] || return 0
	image_build
	cri_prepare
	node_start
	devices_create
	containerd_start
}

setup() {
	skip_if_lacking
	config_write 'cri="none"'
}

teardown() {
	ctr_remove main dind thief holder plain
}

teardown_file() {
	node_stop
}

ctr_main() {
	ctr_run main --annotation "$ID=team-a/dev/main" --device /dev/nvidia0
}

@test "ctr: a container can't open another's card without us" {
	local answers
	ctr_main
	ctr_run dind --annotation "$ID=team-a/dev/dind"
	answers=$(ctr_probe dind /dev/nvidia0 c:195:0)
	absent_in "$answers" /dev/nvidia0
	denied_in "$answers" c:195:0
}

@test "ctr: a target opens its source's card and no other" {
	local answers
	ctr_main
	ctr_run dind --annotation "$ID=team-a/dev/dind" --annotation "$FROM.dind=_/_/main"
	answers=$(ctr_probe dind /dev/nvidia0 /dev/nvidia1 c:195:0 c:195:1)
	open_in "$answers" /dev/nvidia0 c:195:0
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
}

@test "ctr: a target in the foreground has nothing of ours in its output" {
	local out
	ctr_main
	out=$(containerd_ctr run --rm --snapshotter "$(containerd_snapshotter)" \
		--runc-binary "$GS_RUNTIME" --cgroup "$NODE_CGROUP/dind" \
		--annotation "$ID=team-a/dev/dind" --annotation "$FROM.dind=_/_/main" \
		"$IMAGE" dind /bin/probe /dev/nvidia0 2>"$NODE_DIR/err")
	equals "$out" '/dev/nvidia0 ENXIO'
	is_empty "$NODE_DIR/err"
}

@test "ctr: what went wrong is shown by ctr" {
	fails_with 'OCI runtime create failed: .*team-a/dev/main' \
		ctr_run dind --annotation "$ID=team-a/dev/dind" --annotation "$FROM.dind=_/_/main"
}

@test "ctr: another pod's card takes a grant, and the grant is one container's" {
	local grant
	ctr_run holder --annotation "$ID=team-b/holder/main" --device /dev/nvidia1
	fails_with 'team-b/holder/main' ctr_run dind --annotation "$ID=team-a/dev/dind" \
		--annotation "$FROM.dind=team-b/holder/main"
	ctr_remove dind
	grant=$(gpusharectl grant --source team-b/holder/main)
	ctr_run dind --annotation "$ID=team-a/dev/dind" \
		--annotation "$FROM.dind=team-b/holder/main" --annotation "$GRANT=$grant"
	open_in "$(ctr_probe dind /dev/nvidia1)" /dev/nvidia1
	fails_with 'grant' ctr_run thief --annotation "$ID=team-a/dev/dind" \
		--annotation "$FROM.dind=team-b/holder/main" --annotation "$GRANT=$grant"
}

@test "ctr: with a CRI on the node the identity annotation is not believed" {
	config_write 'cri="containerd"'
	ctr_main
	ctr_run dind --annotation "$ID=team-a/dev/dind" --annotation "$FROM.dind=_/_/main"
	absent_in "$(ctr_probe dind /dev/nvidia0)" /dev/nvidia0
}

@test "ctr: pause, resume, kill, delete go through" {
	ctr_main
	ctr_run dind --annotation "$ID=team-a/dev/dind" --annotation "$FROM.dind=_/_/main"
	containerd_ctr task pause dind
	matches "$(containerd_ctr task ls)" 'dind .*PAUSED'
	containerd_ctr task resume dind
	open_in "$(ctr_probe dind /dev/nvidia0)" /dev/nvidia0
	containerd_ctr task kill --signal KILL dind
	within 5 ctr_stopped dind
	containerd_ctr task delete dind
	lacks "$(containerd_ctr task ls)" dind
}

ctr_stopped() {
	[[ $(containerd_ctr task ls) =~ $1\ .*STOPPED ]]
}
