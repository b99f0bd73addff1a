#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What tests/vm does outside of QEMU: that it finds the mirror, keeps its cache whole, reads kernel
# messages, and makes one TAP stream of several.

setup() {
	vm=$BATS_TEST_DIRNAME/../vm
	cd "$BATS_TEST_TMPDIR"
	export GPUSHARE_TEST_CACHE=$PWD/cache
}

# with_lib NAME... -- COMMAND: runs it in a shell that has sourced those of tests/vm/lib.
with_lib() {
	local files=()
	while [[ $1 != -- ]]; do
		files+=("$1")
		shift
	done
	shift
	VM=$vm bash -c '
		set -euo pipefail
		source "$VM/lib/common.sh"
		for file in $1; do source "$VM/lib/$file.sh"; done
		eval "$2"' with_lib "${files[*]}" "$*"
}

@test "the file of kernels is well formed" {
	run awk '!/^#/ && NF && (NF != 6 || $2 !~ /^(amd64|arm64)$/ ||
		$6 !~ /^(full|short|build|never)$/)' "$vm/kernels"
	[ -z "$output" ]
	run bash -c "awk '!/^#/ && NF { print \$1 }' '$vm/kernels' | sort | uniq -d"
	[ -z "$output" ]
}

@test "an unknown kernel: the error names the file and those that there are" {
	run with_lib kernel -- 'kernel_line 2.6'
	[ "$status" -eq 1 ]
	[[ $output == *"no kernel '2.6' in "*/tests/vm/kernels*" 6.1 "* ]]
}

# mirror: what of a machine's sources is taken for Debian's two archives.
mirror() {
	mkdir -p etc lists
	cat >etc/apt.conf <<-EOF
		Dir::Etc::sourcelist "$PWD/etc/sources.list";
		Dir::Etc::sourceparts "$PWD/etc/parts";
		Dir::State::lists "$PWD/lists";
	EOF
	mkdir -p etc/parts
	APT_CONFIG=$PWD/etc/apt.conf run with_lib apt -- \
		'apt_find_mirror; echo "$APT_MAIN $APT_SECURITY"'
}

codename() {
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

@test "the mirror of a one-line sources.list" {
	mkdir etc
	cat >etc/sources.list <<-EOF
		deb http://mirror.example/vendor stable vendor
		deb http://mirror.example/a/ $(codename) main contrib
		deb http://mirror.example/b $(codename)-security main
	EOF
	mirror
	[ "$output" = "http://mirror.example/a http://mirror.example/b" ]
}

@test "the mirror of deb822 sources, the security archive beside it" {
	mkdir -p etc/parts
	printf '%s\n' "Types: deb" "URIs: http://mirror.example/debian" \
		"Suites: $(codename) $(codename)-updates" "Components: main" \
		>etc/parts/debian.sources
	mirror
	[ "$output" = "http://mirror.example/debian http://mirror.example/debian-security" ]
}

@test "no mirror: the error says what helps" {
	mirror
	[ "$status" -eq 1 ]
	[[ $output == *GPUSHARE_DEBIAN_MIRROR* ]]
	export GPUSHARE_DEBIAN_MIRROR=http://mirror.example/debian
	mirror
	[ "$output" = "http://mirror.example/debian http://mirror.example/debian-security" ]
}

@test "what was not made whole is not in the cache" {
	run with_lib -- 'make() { touch "$1/half"; false; touch "$1/whole"; }
		cached "$VM_CACHE/x/thing" make'
	[ "$status" -eq 1 ]
	[ ! -e cache/vm/x/thing ]
	run with_lib -- 'make() { [[ -z $(ls "$1") ]]; touch "$1/whole"; }
		cached "$VM_CACHE/x/thing" make; ls "$VM_CACHE/x/thing"'
	[ "$output" = whole ]
}

@test "two who want the same of the cache make it once" {
	make='make() { echo made >>"$GPUSHARE_TEST_CACHE.count"; sleep 1; }
		cached "$VM_CACHE/x/thing" make'
	with_lib -- "$make" &
	with_lib -- "$make"
	wait $!
	[ "$(wc -l <cache.count)" -eq 1 ]
}

# klog: checks messages given on stdin.
klog() {
	cat >log
	run with_lib klog -- 'klog_check log'
}

@test "ordinary messages are no reports" {
	klog <<-'EOF'
		[    0.1] mtrr: your CPUs had inconsistent fixed MTRR settings
		[    2.5] fakegpu: loading out-of-tree module taints kernel.
		[    2.6] gpushare-test: ok: KASAN sees a BUG: and WARNING: no Oops
	EOF
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "reports of the kernel are found" {
	while read -r line; do
		klog <<<"[    2.0] $line"
		[ "$status" -eq 1 ] || { echo "not found: $line"; return 1; }
		[[ $output == *"$line"* ]]
	done <<-'EOF'
		WARNING: CPU: 0 PID: 114 at kernel/fork.c:4 f+0x11/0x1000
		WARNING: possible recursive locking detected
		WARNING: possible circular locking dependency detected
		WARNING: suspicious RCU usage
		BUG: KASAN: slab-use-after-free in f+0x11/0x20
		BUG: sleeping function called from invalid context at mm/slab.h:1
		BUG: scheduling while atomic: sh/1/0x2
		kernel BUG at lib/list_debug.c:1!
		Oops: 0000 [#1] PREEMPT SMP
		Internal error: Oops: 96000004 [#1] SMP
		watchdog: BUG: soft lockup - CPU#0 stuck for 22s!
		INFO: task sh:1 blocked for more than 10 seconds.
		INFO: rcu_sched detected stalls on CPUs/tasks:
		unreferenced object 0xffff888000000000 (size 32):
		list_add corruption. next->prev should be prev
		refcount_t: underflow; use-after-free.
		UBSAN: array-index-out-of-bounds in a.c:1:2
		general protection fault, probably for non-canonical address
		Kernel panic - not syncing: softlockup: hung tasks
	EOF
}

@test "an announced report is none, its absence is, and so is another one" {
	klog <<-'EOF'
		gpushare-test: expect: planted
		------------[ cut here ]------------
		WARNING: CPU: 0 at planted.c:4
		Modules linked in: planted
		Call Trace:
	EOF
	[ "$status" -eq 0 ]
	klog <<-'EOF'
		gpushare-test: expect: planted
		------------[ cut here ]------------
		WARNING: CPU: 0 at planted.c:4
		Call Trace:
		------------[ cut here ]------------
		WARNING: CPU: 0 at other.c:4
	EOF
	[ "$status" -eq 1 ]
	[[ $output == *other.c:4* && $output != *planted.c:4* ]]
	klog <<-'EOF'
		gpushare-test: expect: planted
		gpushare-test: ok: it was planted
	EOF
	[ "$status" -eq 1 ]
	[[ $output == *"did not report: planted"* ]]
}

# suite NAME: a suite script, from stdin.
suite() {
	mkdir -p tests/vm/suite
	cat >"tests/vm/suite/$1.sh"
}

# machine: a tests/vm whose boot.sh only prints what stands in the file `said`, and ends with $1.
machine() {
	mkdir -p tests/vm/lib tests/vm/suite
	cp "$vm"/run.sh tests/vm
	cp "$vm"/lib/*.sh tests/vm/lib
	echo "6.1 amd64 bookworm 6.1.0-1 host full" >tests/vm/kernels
	printf '#!/bin/bash\n%s\n' 'exit 0' >tests/vm/build.sh
	printf '#!/bin/bash\n%s\n' 'echo "$*" >>"$CALLS"; cat "$SAID"' "exit $1" >tests/vm/boot.sh
	chmod +x tests/vm/*.sh
	export SAID=$PWD/said CALLS=$PWD/calls
	: >calls
	cat >said
}

@test "several scripts become one stream" {
	suite a <<<"# SPDX"
	suite b <<<"# SPDX"
	machine 0 <<-'EOF'
		## begin a
		ok 1 - one
		ok 2 - two # SKIP no card
		1..2
		## end 0 1.0 2.5
		## begin b
		ok 1 - three
		1..1
		## end 0 1.0 2.5
		## done
	EOF
	run tests/vm/run.sh 6.1
	[ "$status" -eq 0 ]
	echo "$output" | diff - <(cat <<-'EOF'
		ok 1 - 6.1: builds without a warning
		ok 2 - 6.1: a: one
		ok 3 - 6.1: a: two # SKIP no card
		# 6.1: a: 2 tests in 1.5 s
		ok 4 - 6.1: b: three
		# 6.1: b: 1 tests in 1.5 s
		ok 5 - 6.1: the kernel's messages are clean
		1..5
	EOF
	)
}

@test "what may go wrong in the guest is a failure each" {
	suite a <<<"# SPDX"
	while IFS='|' read -r said why; do
		machine 0 < <(printf '%b' "## begin a\n$said\n")
		run tests/vm/run.sh 6.1
		[ "$status" -eq 1 ] || { echo "$output"; return 1; }
		[[ $output == *"not ok "*"$why"* ]] || { echo "not '$why': $output"; return 1; }
	done <<-'EOF'
		not ok 1 - one\n1..1\n## end 1 1 2\n## done|a: one
		ok 1 - one\n## end 0 1 2\n## done|a: no plan, saw 1 tests
		ok 1 - one\n1..2\n## end 0 1 2\n## done|a: planned 2, saw 1 tests
		ok 1 - one\n1..1\n## end 139 1 2\n## done|a: exit status 139
		ok 1\n1..1\n## end 0 1 2\n## left gpushare loaded\n## done|a: left gpushare loaded
		ok 1 - one\n1..1\n## end 0 1 2|no end
		ok 1 - one|a: the machine stopped in it
	EOF
}

@test "a report in the kernel's messages is a failure" {
	suite a <<<"# SPDX"
	machine 99 < <(printf '%s\n' "## begin a" "ok 1 - one" "1..1" "## end 0 1 2" "## done")
	run tests/vm/run.sh 6.1
	[ "$status" -eq 1 ]
	[[ $output == *"not ok 3 - 6.1: the kernel's messages in "* ]]
}

@test "what the caller says of rounds, and of the agent's calls, goes into the machine" {
	suite a <<<"# SPDX"
	machine 0 <<<"## done"
	ROUNDS=3 AGENT_CALLS=1 run tests/vm/run.sh 6.1
	grep -q -- '-- env ROUNDS=3 env AGENT_CALLS=1 sh /vm/suite/runner a:120$' calls
	: >calls
	run tests/vm/run.sh 6.1
	grep -q -- '-- sh /vm/suite/runner a:120$' calls
}

@test "scripts run at their level, and share a boot if they want the same machine" {
	suite a <<<"# runs: short"
	suite b <<<$'# SPDX\n# boot: --cgroup v1\n# seconds: 40'
	suite c <<<$'# boot: --cgroup v1\n# runs: deep\nhere'
	suite d <<<$'no head\n# boot: --smp 1'
	machine 0 <<<"## done"
	run tests/vm/run.sh 6.1
	grep -q -- '--timeout 300 -- sh /vm/suite/runner a:120 d:120$' calls
	grep -q -- '--cgroup v1 .*--timeout 100 -- sh /vm/suite/runner b:40$' calls
	[ "$(wc -l <calls)" -eq 2 ]
	: >calls
	VM_LEVEL=short run tests/vm/run.sh 6.1
	grep -q 'runner a:120$' calls
	[ "$(wc -l <calls)" -eq 1 ]
	: >calls
	VM_LEVEL=deep run tests/vm/run.sh 6.1
	grep -q 'runner b:40 c:120$' calls
	: >calls
	VM_LEVEL=build run tests/vm/run.sh 6.1
	[ ! -s calls ]
	[ "$status" -eq 0 ]
}

@test "the agent's scripts and the others are all of a kernel's scripts" {
	run bash -c 'source "$0/lib/common.sh"; source "$0/lib/suite.sh"
		suite_begin 6.1 "$0/suite" 6.1
		suite_choose full | sort >all
		for part in agent module; do suite_choose full | suite_part $part >$part; done
		sort agent module | cmp - all
		suite_choose full | suite_part "" | sort | cmp - all
		grep -qx agent-story agent && grep -qx states module' "$vm"
	[ "$status" -eq 0 ] || { echo "$output"; false; }
}

@test "check-deep has a thousand rounds of borrowers over all stacks" {
	local file sum=0
	# rounds FILE: by default
	rounds() {
		sed -n 's/^ROUNDS=${ROUNDS:-\([0-9]*\)}$/\1/p' "$1"
	}
	for file in "$vm"/suite/agent-borrowers-rounds.sh "$vm"/suite/agent-borrowers*-deep.sh; do
		sum=$((sum + $(rounds "$file") * $(sed -n 's/^# kernels: //p' "$file" | wc -w)))
	done
	file=$vm/../node/suite/borrowers-deep.sh
	sum=$((sum + $(rounds "$file") * $(grep -c '^some_rounds [a-z]' "$file")))
	# Each goes through these eight kinds.
	for file in "$vm"/suite/agent-borrowers.sh "$vm"/../node/suite/borrowers.inc; do
		local kind
		for kind in 'exits at once' 'traps SIGTERM' 'forks without end' 'holds 64 files' \
			'stuck in the driver' 'namespace below' 'frozen' 'memory is late'; do
			grep -q "$kind" "$file" || { echo "$file: $kind"; false; }
		done
	done
	echo "$((sum * 8))"
	[ "$((sum * 8))" -ge 1000 ]
}
