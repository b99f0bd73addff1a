# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# ftrace dies, as it does when it finds code that it did not expect. The machine is not the same
# afterwards, so nothing else may run on it.
# boot: --append gpushare.test=hooks-lost
# seconds: 120
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
# shellcheck source=tests/vm/suite/calls.inc
. /vm/suite/calls.inc

other='' # a container, too
kt events -b /tmp/events >/tmp/events.pid
cards
watch_h /dev/fakegpu0
kt holding i /dev/fakegpu1 lend_after=20
container other
kt member o i "pid=$other"
agent_up

# h is lent, its borrower has a file open and does not go by itself; i is idle.
lend_h
kt holding h /dev/fakegpu0 hold_max=5000
inside "$borrower" fgpu hold /dev/fakegpu0 >/dev/null 2>&1 &
check "a holding is lent, and in use" wait_for 5 files_is 1
kt wait i idle 5000 >/dev/null
is "another one is idle" "$(kt state i state)" idle
check "ftrace dies" insmod /vm/modules/ftkill.ko go=1
stays gpushare

check_fails "what is idle is not lent" kt lend i auto
inside "$member" fgpu echo /dev/fakegpu0 0xf1 >/tmp/out 2>&1 &
call=$!
check "every node is lost" \
	wait_for 10 sh -c '[ "$(grep -c "event=unhooked .*cause=lost" /tmp/events)" = 4 ]'
check "the lent holding returns or is unknown" \
	sh -c 'kt state h state | grep -Eq "returning|unknown"'
check "its borrower is revoked" sh -c '[ "$(kt watch b revoked)" = 1 ]'
check "and killed" wait_for 10 sh -c "! grep -q '^State:.[SR]' /proc/$borrower/status"
check "then it is unknown" wait_for 10 state_is unknown
wait $call
is "its user goes on, once" "$? $(served 0xf1)" "0 1"
is "the idle one is unknown" "$(kt state i state)" unknown
check_fails "it is not lent" kt lend i auto
check_fails "neither is the other" kt lend h auto
before=$(touches)
check "calls pass" inside "$member" fgpu ping /dev/fakegpu0
check "of strangers too" fgpu ping /dev/fakegpu0
is "and are not counted" "$(touches)" "$before"

# The same functions, which the old hooks are still on, and others.
for node in /dev/fakegpu0 /dev/fakegpu-other; do
	out=$(kt hook $node 2>&1)
	is "$node is not hooked again" "$? $(echo "$out" | grep -c "kt: .*: .*ftrace")" "1 1"
done
check "everything stays unknown" state_is unknown
kt watch-del b
check "holdings can be deleted" kt holding-del h i
check_fails "the module can't be unloaded, for the driver's code still calls it" rmmod gpushare
check "the driver can" rmmod fakegpu
check "and comes back" insmod /vm/modules/fakegpu.ko
check "its calls pass" inside "$member" fgpu ping /dev/fakegpu0
check_fails "it is not hooked, either" kt hook /dev/fakegpu0
check "the module still answers" kt status
rmmod ftkill fakegpu
plan
