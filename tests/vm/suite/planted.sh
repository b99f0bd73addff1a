# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The detectors of the kernel `debug` see what they are there for: one bug of each kind is planted,
# and its report must be in the log. (What is announced and not reported makes the run fail.) A boot
# of its own: after such reports a kernel looks less closely.
# runs: deep
# boot: --append gpushare.test=planted
. /vm/suite/lib.sh

if ! grep -q ' kasan_report$' /proc/kallsyms; then
	skip "planted bugs are reported" "only the kernel debug looks for them"
	plan
fi

# planted BUG REGEX: it must be reported as that.
planted() {
	expect_kernel "$2"
	insmod /vm/modules/planted.ko "bug=$1" && rmmod planted || return 1
	dmesg | grep -v 'gpushare-test: ' | grep -qE "$2"
}
check "DEBUG_ATOMIC_SLEEP sees a sleep under a spinlock" \
	planted atomic 'BUG: sleeping function called from invalid context'
check "PROVE_RCU sees a pointer read outside a read section" \
	planted rcu 'WARNING: suspicious RCU usage'
check "lockdep sees two orders of two locks" planted deadlock \
	'WARNING: possible circular locking dependency'
# After this one lockdep is off, and after lockdep's own.
check "KASAN sees a read after kfree" planted uaf 'BUG: KASAN: .*in planted_'

# The leak is found by scans, the first of which may still see its address somewhere.
leaks() {
	for _ in 1 2 3 4; do
		sleep 6
		echo scan >/sys/kernel/debug/kmemleak
		! grep -q 'size 512' /sys/kernel/debug/kmemleak || return 0
	done
	return 1
}
expect_kernel 'kmemleak: [0-9]+ new suspected memory leaks'
expect_kernel 'unreferenced object 0x[0-9a-f]+ \(size 512\)'
insmod /vm/modules/planted.ko bug=leak
check "kmemleak sees memory that nobody knows any more" leaks
rmmod planted

plan
