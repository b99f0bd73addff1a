#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime as podman's OCI runtime, in front of runc and of crun. conmon calls it, without
# --root and --log, and its clean-up has no PATH.

source "$BATS_TEST_DIRNAME/../lib/lib.sh"

ID=gpushare.k8s.io/identity
FROM=gpushare.k8s.io/container-devices-from

setup_file() {
	needs podman conmon runc crun busybox || return 0
	image_build
	node_start
	devices_create
	podman_start
}

setup() {
	skip_if_lacking
	config_write 'cri="none"' 'next=["runc"]'
}

teardown() {
	podman_ rm --force --all --time 0 >/dev/null 2>&1 || true
}

teardown_file() {
	node_stop
}

podman_main() {
	podman_run main --annotation "$ID=team-a/dev/main" --device /dev/nvidia0
}

podman_dind() {
	podman_run dind --annotation "$ID=team-a/dev/dind" --annotation "$FROM.dind=_/_/main" "$@"
}

target_opens_its_sources_card() {
	local answers
	podman_main
	podman_dind
	answers=$(podman_probe dind /dev/nvidia0 /dev/nvidia1 c:195:0 c:195:1)
	open_in "$answers" /dev/nvidia0 c:195:0
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
}

@test "podman: a container can't open another's card without us" {
	local answers
	podman_main
	podman_run dind --annotation "$ID=team-a/dev/dind"
	answers=$(podman_probe dind /dev/nvidia0 c:195:0)
	absent_in "$answers" /dev/nvidia0
	denied_in "$answers" c:195:0
}

@test "podman with runc: a target opens its source's card and no other" {
	target_opens_its_sources_card
}

@test "podman with crun: a target opens its source's card and no other" {
	config_write 'cri="none"' 'next=["crun"]'
	target_opens_its_sources_card
}

@test "podman: two sources in one container" {
	podman_main
	podman_run other --annotation "$ID=team-a/dev/other" --device /dev/gcu0
	# podman splits the option's value at commas that are not in double quotes.
	podman_run dind --annotation "$ID=team-a/dev/dind" \
		--annotation "\"$FROM.dind=_/_/main,_/_/other\""
	open_in "$(podman_probe dind /dev/nvidia0 /dev/gcu0)" /dev/nvidia0 /dev/gcu0
}

@test "podman: a target in the foreground has nothing of ours in its output" {
	local out
	podman_main
	out=$(podman_ run --rm --cgroup-parent "$NODE_CGROUP" --annotation "$ID=team-a/dev/dind" \
		--annotation "$FROM.dind=_/_/main" "$IMAGE" /bin/probe /dev/nvidia0 \
		2>"$NODE_DIR/err")
	equals "$out" '/dev/nvidia0 ENXIO'
	is_empty "$NODE_DIR/err"
}

@test "podman: what went wrong is shown by podman" {
	fails_with 'team-a/dev/main' podman_dind
}

@test "podman: a privileged target is fenced off the neighbour's card" {
	local answers
	podman_main
	podman_dind --privileged
	answers=$(podman_probe dind /dev/nvidia0 /dev/nvidia1 c:195:1)
	open_in "$answers" /dev/nvidia0
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
}

@test "podman: pause, unpause, update, stop, start again" {
	podman_main
	podman_dind
	podman_ pause dind >/dev/null
	podman_ unpause dind >/dev/null
	podman_ update --cpus 0.5 dind >/dev/null
	open_in "$(podman_probe dind /dev/nvidia0)" /dev/nvidia0
	podman_ stop --time 0 dind >/dev/null
	podman_ start dind >/dev/null
	open_in "$(podman_probe dind /dev/nvidia0)" /dev/nvidia0
}

@test "podman: records go with their containers" {
	local id
	podman_main
	podman_dind
	matches "$(gpusharectl containers)" 'team-a/dev/dind'
	id=$(podman_ inspect --format '{{.Id}}' dind)
	equals "$(hook_pid "$id")" "$(podman_ inspect --format '{{.State.Pid}}' dind)"
	podman_ rm --force --time 0 dind >/dev/null
	podman_ rm --force --time 0 main >/dev/null
	podman_main
	lacks "$(gpusharectl containers)" 'team-a/dev/dind'
}
