#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl kmod where there is no kernel module. What it does with one is tested in a machine
# that has one (tests/vm/suite).
# shellcheck disable=SC2154 # what common.bash sets

load common

setup_file() {
	export LOADED=
	if [[ -e /sys/module/gpushare ]]; then
		LOADED=1
	fi
}

no_module() {
	if [[ $LOADED ]]; then
		skip "the kernel module is loaded here"
	fi
}

@test "a wrong call is 2 and says where help is" {
	local call
	for call in kmod 'kmod nothing' 'kmod -x' 'kmod status x' 'kmod status -o yaml' \
		'kmod status -x' 'kmod events x' 'kmod events -n' 'kmod events -n 0' \
		'kmod events -n many' 'kmod events -n -1' 'kmod events -n 1x' \
		'kmod events -n 99999999999999999999' 'kmod events -o wide' 'kmod watch' \
		'kmod watch /dev/null' "kmod watch --pid $$" 'kmod watch --pid' \
		'kmod watch --pid x /dev/null' 'kmod watch --pid 0 /dev/null' \
		'kmod watch --pid -1 /dev/null' 'kmod watch --pid 1x /dev/null' \
		'kmod watch --pid 4294967297 /dev/null' \
		"kmod watch --pid $$ --cgroup / /dev/null" \
		"kmod watch --pid $$ --pid $$ /dev/null" \
		"kmod watch --pid $$ --lend-after 10 /dev/null" \
		"kmod watch --pid $$ --lend-after 2000h /dev/null" \
		"kmod watch --pid $$ --name $(printf %0128d 0) /dev/null"; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 2 '' '^gpusharectl: [^:]'
		[[ $said == *"Try 'gpusharectl kmod --help'"* ]]
	done
}

@test "a name with a blank in it would end a column of what is shown" {
	ctl kmod watch --pid $$ --name "a b" /dev/null
	got 2 '' '^gpusharectl: --name takes 1 to 127 bytes, none a blank'
	ctl kmod watch --pid $$ --name $'a\tb' /dev/null
	got 2 '' '^gpusharectl: --name takes'
}

@test "help has every part, and an example" {
	local call
	for call in 'kmod --help' 'kmod -h' 'kmod status --help' 'kmod watch -h' \
		'kmod events --help'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 0 '^usage: gpusharectl kmod status.*kmod watch.*kmod events.*Example: ' ''
	done
}

@test "without the module each says so, and what to do" {
	local call
	no_module
	for call in 'kmod status' 'kmod status -o json' 'kmod events' 'kmod events -o json -n 5' \
		"kmod watch --pid $$ /dev/null" \
		"kmod watch --pid $$ --lend-after 1h30m --name x /dev/null"; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 1 '' '^gpusharectl: kernel module gpushare is not loaded \(modprobe gpushare\)$'
	done
}

@test "what is to be watched is looked at before anything is done" {
	ctl kmod watch --pid 4194305 /dev/null
	got 1 '' '^gpusharectl: process 4194305 is gone$'
	ctl kmod watch --cgroup /nowhere /dev/null
	got 1 '' '^gpusharectl: open the cgroup /nowhere: No such file or directory$'
	ctl kmod watch --cgroup "$dir" /dev/null
	got 1 '' 'is no cgroup of version 2 nor of the devices hierarchy$'
}
