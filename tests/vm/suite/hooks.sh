# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Hooking a driver: from an open file, whatever becomes of the driver, and beside other tracers.
# runs: short
# seconds: 180
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
# shellcheck source=tests/vm/suite/calls.inc
. /vm/suite/calls.inc

fakegpu=/vm/modules/fakegpu.ko
stranger='' # a container, too
kt events -b /tmp/events >/tmp/events.pid

# event TEXT...: was there an event with all of these words?
event() {
	local lines word
	lines=$(cat /tmp/events)
	for word; do
		lines=$(echo "$lines" | grep -w -- "$word")
	done
	[ -n "$lines" ]
}

# refused NAME ERRNO TEXT COMMAND...: kt fails with that errno, and its message has that text.
refused() {
	local name=$1 errno=$2 text=$3 out
	shift 3
	if out=$("$@" 2>&1); then
		not_ok "$name" "it worked: $*" "$out"
		return 1
	fi
	case $out in
	*"$errno: "*"$text"*) ok "$name" ;;
	*)
		not_ok "$name" "$out"
		return 1
		;;
	esac
}

# ---- From an open file.
insmod /vm/modules/gpushare.ko
is "the module alone hooks nothing" "$(hooked_any)" ""
insmod $fakegpu
usleep 100000
is "a driver that comes later is not hooked by itself" "$(hooked_any)" ""
number=$(kt hook /dev/fakegpu0 driver=fake | sed 's/.*dev=\([0-9:]*\).*/\1/')
is "an open file is enough: all its functions are hooked" "$(hooked)" "$card_functions"
is "no reference to the driver is kept" "$(cat /sys/module/fakegpu/refcnt)" 0
kt unhook /dev/fakegpu0
is "unhooking leaves nothing" "$(hooked_any)" ""

# The name of the node is nobody's business, nor are names of functions.
mknod /tmp/any c "${number%:*}" "${number#*:}"
check "a node of any name will do" kt hook /tmp/any
rm /tmp/any
check "and is the same device" kt node "$number"
refused "a file that is no device is refused" ENOTTY "not a character device" kt hook /tmp/events
refused "a device without ioctl is refused" ENOTTY "no ioctl" kt hook /dev/zero
refused "what is not hooked can't be unhooked" ENOENT "not hooked" kt unhook /dev/null
is "what is hooked twice" "$(kt hook /dev/fakegpu0 /dev/fakegpu1 | wc -l)" 2
kt unhook /dev/fakegpu0
is "stays hooked for the other node" "$(hooked)" "$card_functions"
kt unhook /dev/fakegpu1
is "until the last of them" "$(hooked_any)" ""

# ---- Who is counted.
kt hook /dev/fakegpu0 >/dev/null
watch_h /dev/fakegpu0
agent_up
counts "a member is counted: open and ioctl" 2 fgpu ping /dev/fakegpu0
container stranger
before=$(touches)
check "a container without a watch passes" inside "$stranger" fgpu ping /dev/fakegpu0
check "a caller on the host passes" fgpu ping /dev/fakegpu0
is "and neither is counted" "$(kt node /dev/fakegpu0 touches)" "$before"

# One ioctl function, many devices: only those that are hooked count.
counts "another node with the same functions is not counted" 0 fgpu ping /dev/fakegpu-other
counts "nor is another card of the same driver" 0 fgpu ping /dev/fakegpu1

lend_h
check "a holding is lent" state_is lent
check "another node is not held, either" inside "$member" fgpu ping /dev/fakegpu-other
check "nor does it start the return" state_is lent
inside "$member" fgpu echo /dev/fakegpu0 77 >/tmp/out &
call=$!
check "the node itself is held" wait_for 10 held_is 1
check "while another node's caller passes" inside "$member" fgpu ping /dev/fakegpu-other
check "and a host's" fgpu ping /dev/fakegpu0
check "and a stranger's" inside "$stranger" fgpu ping /dev/fakegpu0
is "the held one has not reached the driver" "$(served 77)" 0
check_fails "a driver with a held caller can't be unloaded" rmmod fakegpu
check "the return ends" release_h
wait $call
is "the held call succeeds, and was served once" "$? $(served 77)" "0 1"
end "$stranger"

# ---- The driver goes while it is watched, and comes again.
before=$(touches)
check "a watched driver can be unloaded" rmmod fakegpu
check "its holding is unknown at once" state_is unknown
check "an event says so" event name=h state=unknown cause=lost
check "and one names the node" event event=unhooked "dev=$number" cause=lost
is "its hooks are gone" "$(hooked_any)" ""
check_fails "the node is gone" kt node "$number"
refused "what is unknown is not lent" EAGAIN "" kt lend h auto

insmod $fakegpu
check "it comes back with the same number" \
	grep -q "dev=fakegpu0 number=$number " /sys/kernel/debug/fakegpu/stats
check "and is unknown until it is hooked" state_is unknown
counts "meanwhile calls pass uncounted" 0 fgpu ping /dev/fakegpu0
kt hook /dev/fakegpu0 >/dev/null
check "hooked again: active" state_is active
check "an event says so, too" event name=h from=unknown state=active cause=hooked
is "the counts have stayed" "$(touches)" "$before"
counts "and go on" 2 fgpu ping /dev/fakegpu0

# While it is lent: the borrower has no file open, or the driver could not go.
lend_h kill
check "it is lent again" state_is lent
check "a lent driver can be unloaded" rmmod fakegpu
check "its borrower is revoked" wait_for 5 sh -c '[ "$(kt watch b revoked)" = 1 ]'
check "and killed" wait_for 5 sh -c "! grep -q '^State:.[SR]' /proc/$borrower/status"
check "its holding is unknown then" wait_for 5 state_is unknown
kt watch-del b
insmod $fakegpu
kt hook /dev/fakegpu0 >/dev/null
check "and not lent when it is back" state_is active

# Its functions lie elsewhere now, which a hook of the same node finds out.
counts "calls count" 2 fgpu ping /dev/fakegpu0
before=$(touches)
kt unhook /dev/fakegpu0
rmmod fakegpu
insmod $fakegpu cards=4
kt hook /dev/fakegpu0 >/dev/null
counts "and count on in another build of the driver" 2 fgpu ping /dev/fakegpu0
is "with those before" "$(touches)" $((before + 2))
kt unhook /dev/fakegpu0
rmmod fakegpu

# ---- A driver whose init fails after its nodes were there.
failing_rounds() {
	local i
	for i in 1 2 3; do
		if insmod "$fakegpu" init_fail=1 init_fail_ms=$((i * 300)) 2>/dev/null; then
			echo "init did not fail"
			return 1
		fi
	done
}
while [ ! -e /tmp/stop ]; do
	kt hook /dev/fakegpu0 /dev/fakegpu1
	kt holding h /dev/fakegpu0
	usleep 1000
done >/tmp/race 2>&1 &
racer=$!
check "a driver's init fails again and again while it is hooked" failing_rounds
touch /tmp/stop
wait $racer
rm /tmp/stop
check "the race was one: it was hooked in between" grep -q '^dev=' /tmp/race
is "nothing is hooked then" "$(hooked_any)" ""
is "and no node is known" "$(kt dump | grep -c ^node)" 0
check "its holding is unknown" state_is unknown
insmod $fakegpu

# ---- Another one who redirects: a function that is hooked first, and one that is hooked last.
for function in fg_card_open fg_card_mmap; do
	check "another one takes $function first" insmod /vm/modules/ipmod.ko symbol=$function
	refused "then hooking is refused" EBUSY "the driver's function" kt hook /dev/fakegpu0
	is "of ours nothing is left" "$(hooked_any)" $function
	is "not even a node" "$(kt dump | grep -c ^node)" 0
	check "the holding is unknown" state_is unknown
	rmmod ipmod
	is "without the other nothing is hooked" "$(hooked_any)" ""
done
check "and hooking works" kt hook /dev/fakegpu0
check_fails "now it is the other that is refused" insmod /vm/modules/ipmod.ko symbol=fg_card_ioctl
check_fails "at every function" insmod /vm/modules/ipmod.ko symbol=fg_card_open
counts "and ours counts" 2 fgpu ping /dev/fakegpu0
check "where ours is not, it is let in" insmod /vm/modules/ipmod.ko symbol=fg_uvm_open
refused "that driver is not hooked then" EBUSY "the driver's function" kt hook /dev/fakegpu-uvm
is "what was hooked stays so" "$(hooked)" "$card_functions fg_uvm_open"
counts "and counts" 2 fgpu ping /dev/fakegpu0
rmmod ipmod

# ---- ftrace switched off.
switch=/proc/sys/kernel/ftrace_enabled
set_switch() {
	echo "$1" 2>/dev/null >"$switch"
}
check_fails "ftrace can't be switched off below a hook" set_switch 0
is "it is on" "$(cat $switch)" 1
counts "and ours counts" 2 fgpu ping /dev/fakegpu0
kt unhook /dev/fakegpu0
# From 7.x on it can't be switched off at all, with us or without.
if (echo 0 >"$switch") 2>&1 | grep -q "not supported"; then
	is "this kernel does not let it be switched off" "$(cat "$switch")" 1
	check "hooking works" kt hook /dev/fakegpu0
else
	check "after the last hook it can" set_switch 0
	refused "then hooking is refused" ENODEV "ftrace_enabled" kt hook /dev/fakegpu0
	is "nothing is left of it" "$(hooked_any)" ""
	refused "again" ENODEV "ftrace_enabled" kt hook /dev/fakegpu-uvm
	check "the holding stays unknown" state_is unknown
	check "calls pass" inside "$member" fgpu ping /dev/fakegpu0
	check "ftrace is switched on" set_switch 1
	check "hooking works" kt hook /dev/fakegpu0
fi
counts "and counts" 2 fgpu ping /dev/fakegpu0
check "nothing can be switched off again" eval '! set_switch 0'

# ---- Forwarders.
unwatch_h
kt unhook /dev/fakegpu0
rmmod fakegpu
insmod $fakegpu forwarder=1
refused "a generic ioctl function is refused" EOPNOTSUPP "generic" kt hook /dev/fakegpu-fwd
is "with no residue" "$(hooked_any)" ""
is "a generic compat_ioctl is not hooked, its target is" \
	"$(kt hook /dev/fakegpu-compat | sed 's/.*funcs=\([^ ]*\).*/\1/')" "open,release,ioctl"
is "and nothing of the kernel's" "$(hooked_any)" \
	"canary fg_card_open fg_card_release fg_compat_ioctl"

# ---- One function for two of a driver's.
kt unhook /dev/fakegpu-compat
insmod /vm/modules/twofold.ko
refused "a driver's open that is its release, too, is refused" EOPNOTSUPP "two different ones" \
	kt hook /dev/twofold
is "with no residue" "$(hooked_any) $(kt dump | grep -c ^node)" " 0"
check "the driver is as ever" sh -c ': </dev/twofold'
is "both kinds of ioctl may be one" \
	"$(kt hook /dev/twofold-ioctl | sed 's/.*funcs=\([^ ]*\).*/\1/')" "open,release,ioctl"
refused "the other is refused beside it, whose open is hooked" EOPNOTSUPP "two different ones" \
	kt hook /dev/twofold
is "and what was hooked stays so" "$(hooked_any)" \
	"canary twofold_ioctl twofold_open_release twofold_release"
check "the driver is unloaded" rmmod twofold
is "nothing is left" "$(hooked_any)" ""

agent_down
kill "$(cat /tmp/events.pid)"
check "the module is unloaded" rmmod gpushare
is "the last hook is gone" "$(hooked_any)" ""
check "and the driver" rmmod fakegpu
plan
