#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The agent itself, as far as that needs neither a kernel module nor a card.
# shellcheck disable=SC2154 # what common.bash sets

load common

teardown() {
	if [[ -s $dir/gpushared.pid ]]; then
		kill -9 "$(<"$dir/gpushared.pid")" 2>/dev/null || true
	fi
}

# gpushared [COMMAND...]: starts it, by that, and waits until it answers; its process in $agent.
gpushared() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be the agent"
	config '{"cri": "none", "agent": {"http": {"port": 0}}}'
	"$@" "$bin/gpushared" >"$dir/log" 2>&1 3>&- &
	agent=$!
	echo $agent >"$dir/gpushared.pid"
	for _ in {1..100}; do
		"$bin/gpusharectl" status >"$dir/status" 2>&1 && return 0
		sleep 0.1
	done
	cat "$dir/status" "$dir/log"
	return 1
}

# logged TEXT: waits until it has said that.
logged() {
	for _ in {1..300}; do
		grep -q "$1" "$dir/log" && return 0
		sleep 0.1
	done
	cat "$dir/log"
	return 1
}

# ends: its exit status in $status, what it has said in $output.
ends() {
	for _ in {1..100}; do
		kill -0 "$agent" 2>/dev/null || break
		sleep 0.1
	done
	status=0
	kill -0 "$agent" 2>/dev/null && return 1
	wait "$agent" || status=$?
	output=$(<"$dir/log")
	echo "$output"
}

@test "an agent that can start no children any more makes room for another" {
	gpushared
	kill -9 "$(pgrep -x -P "$agent" gpushare-spawn)"
	ends
	[ "$status" -eq 1 ]
	[[ $output == *'gpushared: the process that starts our children has died' ]]
	gpushared
	kill -TERM "$agent"
	ends
	[ "$status" -eq 0 ]
}

# Containers that run as root have the same few inotify instances as the agent.
@test "an agent without inotify looks for itself, and takes one when it can" {
	unshare --user --map-root-user true || skip "no user namespace can be made"
	gpushared unshare --user --map-root-user bash -c \
		'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"' -
	grep '"nobody tells of changes in the registry".*too many open files' "$dir/log"
	echo nonsense >"$run_dir/containers/broken.json"
	logged 'a record is passed over'
	nsenter --user --target "$agent" bash -c \
		'echo 9 >/proc/sys/user/max_inotify_instances'
	logged 'changes in the registry are told again'
}
