# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Unloading the module while it is used: who is held goes on, who sleeps inside the driver is not
# waited for, but for a borrower's open and release.
# seconds: 240
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
# shellcheck source=tests/vm/suite/calls.inc
. /vm/suite/calls.inc

debug=/sys/kernel/debug/fakegpu
parameters=/sys/module/fakegpu/parameters

member='' borrower='' agent='' call4='' # set by others

# load: the module, watching card 0, with an agent (another one: it would go on with the new module)
load() {
	[ -z "$agent" ] || kill -9 "$agent"
	insmod /vm/modules/gpushare.ko && kt hook /dev/fakegpu0 >/dev/null && agent_up &&
		watch_h /dev/fakegpu0
}

# asleep N: so many callers sleep inside the driver
asleep() {
	[ "$(sed -n 's/^dev=fakegpu0 .* asleep_now=\([0-9]*\) .*/\1/p' "$debug/stats")" = "$1" ]
}

# opens NODE: how often the driver served an open of it
opens() {
	sed -n "s/^dev=$1 .* open=\([0-9]*\) .*/\1/p" $debug/stats
}

# unload_in_background; still_unloading: has it not ended, long after the last hook has gone?
unload_in_background() {
	rmmod gpushare >/tmp/rmmod 2>&1 &
	rmmod=$!
}
still_unloading() {
	wait_for 20 sh -c "[ ! -s $tracing/enabled_functions ]"
	sleep 2
	[ -d "/proc/$rmmod" ] && [ -e /sys/module/gpushare ]
}

insmod /vm/modules/fakegpu.ko

# ---- With callers held, of every kind.
load
inside "$member" fgpu open /dev/fakegpu0 , until /tmp/go , threads 20 echo /dev/fakegpu0 0x71 \
	>/tmp/out1 2>&1 &
call1=$!
wait_for 5 grep -q ^open /tmp/out1
lend_h
inside "$borrower" fgpu hold /dev/fakegpu0 >/dev/null 2>&1 &
wait_for 5 files_is 1
touch /tmp/go
wait_for 10 held_is 20
inside "$member" openers nonblock /dev/fakegpu0 >/tmp/out2 2>&1 &
call2=$!
inside "$member" fgpu echo /dev/fakegpu0 0x72 >/tmp/out3 2>&1 &
call3=$!
held=22
if has_feature io-worker-ns; then
	inside "$member" openers async /dev/fakegpu0 sqes=4 >/tmp/out4 2>&1 &
	call4=$!
	held=26
fi
check "callers of every kind are held" wait_for 10 held_is $held
is "none has reached the driver" "$(grep -c WORK_ECHO "$log")" 0
check "the module is unloaded all the same" rmmod gpushare
wait $call1
is "threads with ioctls have gone on" $? 0
is "each once" "$(grep WORK_ECHO "$log" | grep -c '0x[0-9a-f]*71 ')" 20
wait $call2
is "an open that could not be made anew has" $? 0
wait $call3
is "an open that was made anew has, and its ioctl" "$? $(served 0x72)" "0 1"
if [ $held = 26 ]; then
	wait "$call4"
	is "io_uring's workers have" "$? $(grep -o 'opened=.' /tmp/out4)" "0 opened=4"
else
	skip "io_uring's workers have" "they belong to nobody here"
fi
check "the borrower is dead" wait_for 10 sh -c "! grep -q '^State:.[SR]' /proc/$borrower/status"
is "nothing is hooked any more" "$(hooked_any)" ""
check "calls pass" inside "$member" fgpu ping /dev/fakegpu0
rm /tmp/go
end "$member" "$borrower"

# ---- With callers asleep inside the driver: one that never met us, one that was held first.
load
inside "$member" fgpu sleep /dev/fakegpu0 600000 uninterruptible >/tmp/out1 2>&1 &
call1=$!
inside "$member" fgpu open /dev/fakegpu0 , until /tmp/go , \
	sleep /dev/fakegpu0 600000 interruptible >/tmp/out2 2>&1 &
call2=$!
wait_for 10 asleep 1
wait_for 10 grep -q ^open /tmp/out2
lend_h
touch /tmp/go
check "a call is held that will sleep" wait_for 10 held_is 1
release_h
check "released, it sleeps beside another" wait_for 10 asleep 2
check "the module is unloaded under them" rmmod gpushare
check "they still sleep" asleep 2
sleepers=$member
load
check "the module comes under them" state_is active
check "and goes" rmmod gpushare
check "they still do" asleep 2
echo 1 >$debug/wake
wait $call1
status1=$?
wait $call2
is "woken, they go on as ever" "$status1 $?" "0 0"
end "$sleepers" "$member"
rm /tmp/go

# ---- With a caller held who then sleeps inside the driver: not in a wrapper of ours.
load
inside "$member" fgpu open /dev/fakegpu0 , until /tmp/go , \
	sleep /dev/fakegpu0 600000 interruptible >/tmp/out1 2>&1 &
call1=$!
wait_for 10 grep -q ^open /tmp/out1
lend_h
touch /tmp/go
check "a call is held that will sleep, and is not released" wait_for 10 held_is 1
unload_in_background
check "unloading lets it go, and ends" wait_for 20 [ ! -e /sys/module/gpushare ]
check "while it sleeps in the driver" asleep 1
echo 1 >$debug/wake
wait $call1
is "woken, it goes on" $? 0
wait $rmmod
end "$member" "$borrower"
rm /tmp/go

# ---- With a member's slow open.
load
echo 600000 >$parameters/open_ms
inside "$member" fgpu open /dev/fakegpu0 >/tmp/out1 2>&1 &
call1=$!
usleep 300000
check "a member's slow open is not waited for" rmmod gpushare
echo 0 >$parameters/open_ms
check "it is still there" kill -0 $call1
echo 1 >$debug/wake
wait $call1
is "and succeeds" $? 0
end "$member"

# ---- With a borrower's slow open, and its slow close: as long as the driver takes, not longer.
# (Unloading kills it, which does not help where the driver sleeps in D state.)
load
lend_h
echo 1 >$parameters/open_hard
echo 600000 >$parameters/open_ms
inside "$borrower" fgpu open /dev/fakegpu0 >/dev/null 2>&1 &
call1=$!
check "a borrower's open is counted while it is inside" wait_for 10 files_is 1
echo 0 >$parameters/open_ms
unload_in_background
check "its slow open is waited for" still_unloading
check_fails "meanwhile the module takes no orders" kt status
check "and holds nobody" inside "$member" fgpu echo /dev/fakegpu0 0x74
is "that call was served" "$(served 0x74)" 1
before=$(opens fakegpu0)
echo 1 >$debug/wake
wait_for 10 [ ! -e /sys/module/gpushare ]
wait $rmmod
is "when it is over, unloading ends" "$? $(($(opens fakegpu0) - before))" "0 1"
wait $call1
end "$member" "$borrower"

load
lend_h
inside "$borrower" fgpu open /dev/fakegpu0 , until /tmp/go , close /dev/fakegpu0 >/dev/null 2>&1 &
call1=$!
wait_for 10 files_is 1
echo 600000 >$parameters/close_ms
touch /tmp/go
usleep 300000
unload_in_background
check "a borrower's slow close is waited for" still_unloading
echo 0 >$parameters/close_ms
echo 1 >$debug/wake
wait_for 10 [ ! -e /sys/module/gpushare ]
wait $rmmod
is "when it is over, unloading ends, too" $? 0
wait $call1
is "nothing is left hooked" "$(hooked_any)" ""
rm /tmp/go
end "$member" "$borrower"

# ---- With a borrower's file open and nobody inside.
load
lend_h
inside "$borrower" fgpu hold /dev/fakegpu0 >/dev/null 2>&1 &
wait_for 10 files_is 1
check "an open file of a borrower's is not waited for" rmmod gpushare
load
check "the module loads again" state_is active
is "and knows nothing of before" "$(kt dump | grep -c 'name=b ')" 0
end "$member" "$borrower"
kill -9 "$agent"
check "all is unloaded" no_cards
plan
