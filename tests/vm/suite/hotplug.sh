# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# A processor goes and comes while calls are counted: the counts are kept for each of them.
# seconds: 120
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
# shellcheck source=tests/vm/suite/calls.inc
. /vm/suite/calls.inc

member='' # set by watch_h
cpu1=/sys/devices/system/cpu/cpu1/online
switch() {
	echo "$1" >$cpu1
}

cards
watch_h /dev/fakegpu0
agent_up

if ! [ -w $cpu1 ]; then
	skip "hotplug" "this machine has no processor to switch off"
	plan
fi

# While it counts.
rm -f /tmp/stop
before=$(touches)
inside "$member" hammer /dev/fakegpu0 procs=3 until=/tmp/stop >/tmp/out 2>&1 &
call=$!
wait_for 20 grep -q working /tmp/out
flips() {
	for _ in 1 2 3 4 5; do
		switch 0 && usleep 30000 && switch 1 && usleep 30000 || return 1
	done
}
check "a processor goes and comes while calls are counted" flips
touch /tmp/stop
wait $call
is "no call failed" "$? $(grep -c 'failed=0 .*wrong=0' /tmp/out)" "0 1"
made=$(sed -n 's/opens=\([0-9]*\) ioctls=\([0-9]*\) maps=\([0-9]*\) .*/\1 \2 \3/p' /tmp/out |
	awk '{ print $1 + $2 + $3 }')
is "each was counted, once" $(($(touches) - before)) "$made"

# What was counted on a processor that is gone counts.
before=$(touches)
inside "$member" taskset 2 fgpu ping /dev/fakegpu0 100 >/dev/null
switch 0
is "what a processor counted stays when it is gone" $(($(touches) - before)) 101
lend_h
check "a holding is lent then" state_is lent
inside "$member" fgpu echo /dev/fakegpu0 0x41 >/tmp/out 2>&1 &
call=$!
check "a touch is held" wait_for 10 held_is 1
check "the processor comes back meanwhile" switch 1
check "the touch is still held" held_is 1
release_h
wait $call
is "and served once in the end" "$? $(served 0x41)" "0 1"

# Lent with a processor that comes, and touched from there.
switch 0
lend_h
switch 1
inside "$member" taskset 2 fgpu echo /dev/fakegpu0 0x42 >/tmp/out 2>&1 &
call=$!
check "a touch from a processor that has come is held" wait_for 10 held_is 1
check "it goes again under the held one" switch 0
release_h
wait $call
is "which is served once" "$? $(served 0x42)" "0 1"
switch 1

# Touched between IDLE and LEND, by a processor that is gone when it is lent.
kt holding h /dev/fakegpu0 lend_after=20
kt wait h idle 5000 >/dev/null
seq=$(kt state h seq)
inside "$member" taskset 2 fgpu ping /dev/fakegpu0 >/dev/null
switch 0
check_fails "a touch from there is no silence" kt lend h "$seq"
switch 1

unwatch_h
agent_down
check "all is unloaded" no_cards
plan
