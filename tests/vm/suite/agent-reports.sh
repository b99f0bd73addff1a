# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# What public reports tell of others in our place: monitors that never close a card, a module that
# is loaded anew under its agent, lost events, containers that are deleted while their processes are
# stuck in the driver, or held. Which report is where: tests/runtime/cases/README.md.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 900
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# pings: how many of these calls card 0 has served. pinged_since N: several more by now?
pings() {
	sed -n 's/^dev=fakegpu0 .* PING=\([0-9]*\).*/\1/p' /sys/kernel/debug/fakegpu/stats
}

pinged_since() {
	[ "$(pings)" -gt $(($1 + 2)) ]
}

# stuck NAME: waits until card 0 is lent, and runs a spot container that stays in the driver, where
# no signal ends it, until wake.
stuck() {
	borrow $1 sleep /dev/fakegpu0 3600000 uninterruptible
}

# back_after NAME TOKEN: that call of the user's, which was held, goes on.
back_after() {
	wait $back
	is "$1: the user's call goes on" $? 0
	check "$1: on a card without memory of others" served_clean $2 0
}

# running NAME: does the agent count that borrower as one that runs?
running() {
	gpusharectl status -o json | tr -d ' \n' | grep -o '{[^{}]*"id":"'$1'"[^{}]*}' |
		grep '"running":true'
}

not_running() {
	! running $1
}

# no_module VERB...: does gpusharectl fail, and say that?
no_module() {
	! gpusharectl "$@" >/tmp/said 2>&1 && grep 'the kernel module is not loaded' /tmp/said
}

# at_most N TEXT: is it told no oftener than so?
at_most() {
	[ "$(told "$2")" -le $1 ]
}

# has_lost: has a listener of generic netlink missed something?
has_lost() {
	awk '$2 == 16 && $9 > 0' /proc/net/netlink | grep .
}

# returns_told: of how many returns the kernel's events have told the agent. more_than N: of more?
returns_told() {
	told '"to":"returning"'
}

more_than() {
	[ "$(returns_told)" -gt $1 ]
}

must "the node comes up" node_up
agent_config '"hold_max": "600s", "exempt": ["default/monitor/*"],
	"exempt_cgroups": ["/host-monitor"]'
must "the agent starts" agent_start
must "a container is given a card" holder main 0
main=$(pid_of main)

# ---- Monitors.
polls='while :; do fgpu ping /dev/fakegpu0 >/dev/null || echo failed; usleep 200000; done'
bundle monitor monitor 0 '' sh -c "fgpu hold /dev/fakegpu0 >/dev/null & $polls"
must "a monitor never closes the card, and polls" runtime run monitor
mkdir /sys/fs/cgroup/host-monitor
# shellcheck disable=SC2016 # the inner shell's
sh -c 'echo $$ >/sys/fs/cgroup/host-monitor/cgroup.procs && exec fgpu hold /dev/fakegpu0' \
	>/dev/null 2>&1 &
host=$!
check "a monitor: it polls" wait_for "$long" pinged_since 0
check "a monitor: the card is lent all the same" is_lent main
check "a monitor: it still polls" wait_for "$long" pinged_since "$(pings)"
is "a monitor: that is no return" "$(kt state main state)" lent
must "a monitor: a spot container has memory on the card" stuck watched
must "a monitor: the user is held" come_back 1
check "a monitor: it is not, meanwhile" wait_for "$long" pinged_since "$(pings)"
is "a monitor: the user still is" "$(kt state main held) $(served 1)" "1 "
wake
back_after "a monitor" 1
check_fails "a monitor: it is not ended with the spot container" gone monitor
check "a monitor: nor is the host's" kill -0 $host
is "a monitor: no call of it has failed" "$(cat $node/monitor.out)" ""
remove watched
remove monitor
end $host
rmdir /sys/fs/cgroup/host-monitor

# ---- A borrower dies, and nobody deletes its container.
must "dies unseen: a spot container has memory on the card" borrow mortal
check "dies unseen: it counts" running mortal
kill -9 "$(pid_of mortal)"
check "dies unseen: a moment later it does not" wait_for 5 not_running mortal
check "dies unseen: the user is back" touch_card 90
remove mortal

# ---- The module is loaded anew.
must "the module is loaded anew: a spot container has memory on the card" borrow orphan
check "the module is loaded anew: it goes, under the agent" rmmod gpushare
check "the module is loaded anew: the spot container is ended" wait_for "$long" gone orphan
check "the module is loaded anew: the user goes on" touch_card 2
check "the module is loaded anew: with no memory of others on the card" served_clean 2 0
check "the module is loaded anew: the agent says that it is gone" \
	wait_for "$long" logged "the kernel module is gone"
check "the module is loaded anew: the grant is revoked" wait_for "$long" revoked orphan
check "the module is loaded anew: that it can't be asked is told once, if at all" \
	at_most 1 "can't look"
check "the module is loaded anew: so is what else it refused" at_most 1 "not released"
for verb in "lend $(card 0)" "reclaim $(card 0)" "grant --spot --card $(card 0)"; do
	check "the module is loaded anew: meanwhile ${verb%% *} says that it is not loaded" \
		no_module $verb
done
remove orphan
check "the module is loaded anew: it comes back" insmod /vm/modules/gpushare.ko
must "the module is loaded anew: the card is borrowed again" borrow heir
check "the module is loaded anew: the user is back" touch_card 3
check "the module is loaded anew: with no memory left on the card" served_clean 3 0
remove heir

# ---- The agent hangs, and thousands of events go by. The last ones are those that matter.
must "events are lost: a spot container has memory on the card" borrow unheard
kill -STOP "$agent"
check "events are lost: the agent hangs" wait_for "$long" sh -c '[ "$(kt status agent)" = 0 ]'
i=0
while [ $i -lt 40 ]; do
	i=$((i + 1))
	kt beat 100
	usleep 20000
done
check "events are lost: they are, thousands went by" has_lost
check "events are lost: the user is back" touch_card 4
check "events are lost: the kernel has ended the spot container" wait_for "$long" gone unheard
check "events are lost: before the call" served_clean 4 0
kill -CONT "$agent"
check "events are lost: the agent finds out, and revokes the grant" \
	wait_for "$long" revoked unheard
remove unheard
must "events are lost: the card is borrowed again" borrow heard
returns=$(returns_told)
check "events are lost: the user is back from that" touch_card 5
check "events are lost: with no memory left on the card" served_clean 5 0
check "events are lost: the agent hears again: it was told of that return" \
	wait_for "$long" more_than $returns
remove heard

# ---- Deleted, and not gone.
must "deleted, and stuck in the driver: a spot container has memory on the card" stuck ghost
timeout 60 gpushare-runtime delete -f ghost >/dev/null 2>&1
is "deleted, and stuck in the driver: its memory is still there" "$(used 0)" "$mib64"
must "deleted, and stuck in the driver: the user is held" come_back 6
sleep 2
is "deleted, and stuck in the driver: he is, as long as that" \
	"$(kt state main held) $(served 6) $(used 0)" "1  $mib64"
wake
back_after "deleted, and stuck in the driver" 6
remove ghost

# ---- A user who is held goes for good.
must "deleted, and held: a spot container is stuck in the driver" stuck slow
must "deleted, and held: the user is held" come_back 7
check "deleted, and held: his container can be deleted" \
	timeout 60 gpushare-runtime delete -f main
check "deleted, and held: nothing of it is left" wait_for "$long" gone main
wait $back
is "deleted, and held: his call never reached the card" "$(served 7)" ""
wake
check "deleted, and held: the spot container is ended all the same" wait_for "$long" gone slow
remove slow
remove main
must "deleted, and held: the card's next user starts" holder main 0
main=$(pid_of main)
check "deleted, and held: he has it" touch_card 8
check "deleted, and held: it is lent again" is_lent main

is "nothing ended in quarantine" "$(kt status quarantine)" 0
is "no user was let go at hold_max" "$(kt status hold_max)" 0
plan
