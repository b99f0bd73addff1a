# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# No memory: every allocation that the module's calls make fails once, and whatever fails is clean.
# Only the kernel `debug` can let them fail; what it then finds (KASAN, lockdep, lost memory) is
# looked for at the end of the run, as after every other suite.
# runs: deep
# boot: --append gpushare.test=faults
# seconds: 900
# shellcheck disable=SC2086,SC2154 # nodes is a list; container sets variables
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc

if [ ! -e /proc/self/fail-nth ]; then
	skip "allocations that fail" "only the kernel debug lets allocations fail"
	plan
fi

# Sleeping allocations too, and without a trace of each in the log.
for kind in failslab fail_page_alloc; do
	echo 0 >/sys/kernel/debug/$kind/verbose
	echo N >/sys/kernel/debug/$kind/ignore-gfp-wait
done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
traces=/sys/kernel/tracing/enabled_functions

insmod /vm/modules/fakegpu.ko

# What fails because we let it fail is told with a trace.
expect_kernel 'faultn: (vmalloc error|page allocation failure): '

# ---- Loading and unloading.

results faultn load /vm/modules/gpushare.ko
insmod /vm/modules/gpushare.ko
check "and it loads, and works" kt status
kt hook $nodes >/dev/null
story "the whole story after all that"
rmmod gpushare

# ---- Hooking: what is not hooked in the end is not hooked half.

insmod /vm/modules/gpushare.ko
results faultn hook /dev/fakegpuctl
kt unhook /dev/fakegpuctl 2>/dev/null
is "no function is left hooked" "$(cat $traces)" ""
results faultn hook /dev/fakegpu-uvm
kt unhook /dev/fakegpu-uvm 2>/dev/null
is "no function is left hooked here either" "$(cat $traces)" ""
check "and the module unloads" rmmod gpushare

# ---- Heartbeats: no memory is no proof that a hook is lost.

insmod /vm/modules/gpushare.ko
kt hook $nodes >/dev/null
kt events -b /tmp/events >/tmp/pid
results faultn beat
is "no node was lost in between, either" "$(grep -c event=unhooked /tmp/events)" 0
kill -9 "$(cat /tmp/pid)"
story "the whole story after that"
rmmod gpushare

# ---- Requests, dumps, listeners.

insmod /vm/modules/gpushare.ko
results faultn requests /dev/fakegpu0
rmmod gpushare
insmod /vm/modules/gpushare.ko
results faultn dump
results faultn listen
check "no dump is left open: the module unloads" rmmod gpushare

# ---- A borrower's open. Its file is counted before the driver opens it, or not at all.

insmod /vm/modules/gpushare.ko
kt hook $nodes >/dev/null
container user
container borrower
agent_up
kt holding h $nodes lend_after=50
kt member u h pid=$user
lent h
kt borrower b h pid=$borrower
results inside $borrower faultn open /dev/fakegpu0
is "no file is counted in the end" "$(kt state h files) $(kt watch b files)" "0 0"
open_now() {
	sed -n 's/^dev=fakegpu0 .* open_now=\([0-9]*\) .*/\1/p' /sys/kernel/debug/fakegpu/stats
}
is "and none is open" "$(open_now)" 0
inside $borrower fgpu hold /dev/fakegpu0 >/dev/null &
check "one that is open is counted" wait_for 10 sh -c '[ "$(kt state h files)" = 1 ]'
end $borrower
check "until it is closed" wait_for 10 sh -c '[ "$(kt state h files)" = 0 ]'
kt watch-del b

# ---- A member's touch and a held call allocate nothing.

kt events -b /tmp/events >/tmp/pid
results inside $user faultn open /dev/fakegpu0
kt wait h active 5000

# ---- Events: the actor, a kernel thread, has no memory for a message.

slab=/sys/kernel/debug/failslab
starve() {
	local comm
	echo Y >$slab/task-filter
	for comm in /proc/[0-9]*/comm; do
		! grep -q '^kworker' $comm || echo 1 >${comm%comm}make-it-fail
	done
	echo -1 >$slab/times
	echo 100 >$slab/probability
}
feed() {
	echo 0 >$slab/probability
	echo N >$slab/task-filter
}
lost=$(kt status events_lost)
starve
for i in 1 2 3; do
	kt holding e$i $nodes lend_after=100000
done
sleep 0.5
feed
check "events that there is no memory for are counted" \
	sh -c '[ "$(kt status events_lost)" -gt '"$lost"' ]'
check "and a listener is told when there is memory again" \
	wait_for 10 grep -q 'event=lost' /tmp/events
kill -9 "$(cat /tmp/pid)"
kt holding-del e1 e2 e3

end $user
agent_down
kt watch-del u && kt holding-del h
story "the whole story in the end"
check "the module unloads in the end" rmmod gpushare
rmmod fakegpu

plan
