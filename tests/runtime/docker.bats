#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime as a runtime of docker's engine. Debian 12's can't annotate containers, so what
# is shown here is that everything passes through as if we were not there.

source "$BATS_TEST_DIRNAME/../lib/lib.sh"

setup_file() {
	needs dockerd docker containerd runc busybox || return 0
	if [[ ! -x /usr/bin/docker ]]; then
		export WHY_SKIPPED="no docker client at /usr/bin/docker"
		return 0
	fi
	image_build
	node_start
	devices_create
	config_write 'cri="none"'
	docker_start
}

setup() {
	skip_if_lacking
}

teardown() {
	docker_ rm --force plain >/dev/null 2>&1 || true
}

teardown_file() {
	node_stop
}

docker_run() {
	docker_ run --runtime gpushare --network host --name plain "$@"
}

@test "docker: output, exit status and devices are as without us" {
	local out rc=0
	out=$(docker_run --device /dev/nvidia1 "$IMAGE" /bin/sh -c \
		'/bin/probe /dev/nvidia0 /dev/nvidia1; exit 5' 2>"$NODE_DIR/err") || rc=$?
	equals "$rc" 5
	is_empty "$NODE_DIR/err"
	open_in "$out" /dev/nvidia1
	absent_in "$out" /dev/nvidia0
}

@test "docker: device rules are as without us" {
	open_in "$(docker_run --device-cgroup-rule 'c 195:1 rwm' "$IMAGE" /bin/probe c:195:1)" \
		c:195:1
	docker_ rm plain >/dev/null
	denied_in "$(docker_run "$IMAGE" /bin/probe c:195:1)" c:195:1
}

@test "docker: exec, pause, unpause, update, restart, kill go through" {
	docker_run --detach --device /dev/nvidia0 "$IMAGE" >/dev/null
	equals "$(docker_ exec plain /bin/echo in)" in
	docker_ pause plain >/dev/null
	docker_ unpause plain >/dev/null
	docker_ update --cpus 0.5 plain >/dev/null
	open_in "$(docker_ exec plain /bin/probe /dev/nvidia0)" /dev/nvidia0
	docker_ restart --time 0 plain >/dev/null
	open_in "$(docker_ exec plain /bin/probe /dev/nvidia0)" /dev/nvidia0
	docker_ kill plain >/dev/null
	equals "$(docker_ inspect --format '{{.State.Status}}' plain)" exited
}

@test "docker: the next runtime's own error is shown" {
	fails_with 'no such file or directory' docker_run "$IMAGE" /nope
}
