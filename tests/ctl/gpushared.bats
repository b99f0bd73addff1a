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

# gpushared: starts it and waits until it answers; its process in $agent.
gpushared() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be the agent"
	config '{"cri": "none", "agent": {"http": {"port": 0}}}'
	"$bin/gpushared" >"$dir/log" 2>&1 3>&- &
	agent=$!
	echo $agent >"$dir/gpushared.pid"
	for _ in {1..100}; do
		"$bin/gpusharectl" status >"$dir/status" 2>&1 && return 0
		sleep 0.1
	done
	cat "$dir/status" "$dir/log"
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
