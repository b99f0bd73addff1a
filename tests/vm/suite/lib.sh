# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# What a suite script in the guest needs: `. /vm/suite/lib.sh`, tests, `plan` at the end.
# The shell is busybox's.
tests=0
failures=0
# How much longer things take on this kernel: 1, or 5 where it looks for bugs.
slow=$(cat /vm/slow)

# note TEXT: puts a line among the kernel's messages, and so finds the place there.
note() {
	echo "<4>gpushare-test: $*" >/dev/kmsg
}

# ok NAME, not_ok NAME [LINE...]: the result of a test; LINEs say why.
ok() {
	tests=$((tests + 1))
	echo "ok $tests - $1"
	note "ok: $1"
}

not_ok() {
	tests=$((tests + 1))
	failures=$((failures + 1))
	echo "not ok $tests - $1"
	note "not ok: $1"
	shift
	[ $# = 0 ] || printf '%s\n' "$@" | sed 's/^/# /'
}

# skip NAME REASON
skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# check NAME COMMAND...: ok if it succeeds. Its output is shown if it does not.
check() {
	local name=$1 out status
	shift
	out=$("$@" 2>&1)
	status=$?
	if [ $status = 0 ]; then
		ok "$name"
	else
		not_ok "$name" "status $status of: $*" "$out"
		return 1
	fi
}

# check_fails NAME COMMAND...: ok if it fails, and not by a signal.
check_fails() {
	local name=$1 out status
	shift
	out=$("$@" 2>&1)
	status=$?
	if [ $status != 0 ] && [ $status -lt 126 ]; then
		ok "$name"
	else
		not_ok "$name" "status $status of: $*" "$out"
		return 1
	fi
}

# is NAME GOT WANTED: ok if the two are the same text.
is() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got:    $2" "wanted: $3"
		return 1
	fi
}

# Prints the guest's uptime in seconds.
uptime_now() {
	cut -d. -f1 /proc/uptime
}

# wait_for SECONDS COMMAND...: runs it until it succeeds. (Time in the guest is not exact: leave
# room above, and below too where a test needs something to have lasted.)
wait_for() {
	local end=$(($(uptime_now) + $1 * slow + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(uptime_now)" -le $end ] || return 1
		usleep 50000
	done
}

# expect_kernel REGEX: says that the kernel will report something that matches. Without this any
# WARNING, BUG, Oops and the like makes the run fail; with it, its absence.
expect_kernel() {
	note "expect: $*"
}

# stays MODULE: says that it can't be unloaded any more, for a reason that the test knows.
stays() {
	: >"/tmp/stays-$1"
}

# plan: ends a script.
plan() {
	echo "1..$tests"
	[ $failures = 0 ]
	exit
}
