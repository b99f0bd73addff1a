# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Containers and pods that are restarted, replaced under the same name, and paused, while their card
# is lent or a call of theirs is held.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 1200
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# served_clean's, and the borrower of that name is dead.
back() {
	check "$1: the call is served once, with no memory left on the card" served_clean $2 0
	check "$1: the borrower is dead" wait_for "$long" gone $3
	remove $3
}

# frozen NAME: is every process of that container?
frozen() {
	grep -q 'frozen 1' /sys/fs/cgroup/gs/$1/cgroup.events
}

# pause NAME, resume NAME: as docker pause and ctr task pause do.
pause() {
	gpushare-runtime pause $1 && wait_for "$long" frozen $1
}

resume() {
	gpushare-runtime resume $1
}

# call_in NAME TOKEN: a call from inside, in the background: its pid in $back.
call_in() {
	gpushare-runtime exec $1 fgpu echo /dev/fakegpu0 $2 >$node/back.out 2>&1 &
	back=$!
}

# ended NAME: the container has ended by itself, and its runtime's `delete` is called.
ended() {
	kill -9 "$(pid_of $1)"
	wait_for "$long" gone $1
	gpushare-runtime delete $1
}

# member NAME: does the agent know that it is one?
member() {
	gpusharectl status -o json | tr -d ' \n' | grep -o '"members":\[[^]]*\]' |
		grep "\"id\":\"$1\""
}

# Before it has become runc.
our_runtime_runs() {
	grep -qs '^gpushare-runtim' /proc/[0-9]*/comm
}

cri=containerd
holding=uid-main/main
must "the node comes up" node_up
must "the agent starts" agent_start
must "a container is given a card" holder main 0
must "so is one beside it" target side main
main=$(pid_of main)
side=$(pid_of side)

# ---- Restarts. The kubelet's have another id and the same name; docker's have the same id.
must "restarted: a spot container has memory on the card" borrow first
ended main
sleep 1
is "restarted: the card stays lent while a container of the pod is there" \
	"$(kt state $holding state)" lent
check_fails "restarted: and borrowed" gone first
must "restarted: the container is there again" holder main-2 0 main/uid-main/main
main=$(pid_of main-2)
check "restarted: the borrower is dead by then" gone first
is "restarted: its memory is free" "$(used 0)" 0
held=$(kt status held)
check "restarted: the user goes on" touch_card 1
is "restarted: who was not held" "$(kt status held)" "$held"
remove first
must "restarted: the card is borrowed again" borrow second
check "restarted: the user is back" touch_card 2
back "restarted" 2 second

must "restarted, with no agent there: the card is lent" is_lent $holding
since=$(kt state $holding since)
agent_kill
ended main-2
runtime run main-2
main=$(pid_of main-2)
touch_card 3 >/dev/null
must "restarted, with no agent there: it starts" agent_start
check "restarted, with no agent there: it knows the container" wait_for "$long" member main-2
# What it did meanwhile nobody saw: the card comes back, and is lent once more.
taken_back() {
	[ "$(kt state $holding since)" != "$since" ]
}
check "restarted, with no agent there: its card is taken back" wait_for "$long" taken_back
must "restarted, with no agent there: the card is borrowed" borrow third
check "restarted, with no agent there: the user is back" touch_card 4
back "restarted, with no agent there" 4 third

# ---- Paused: the container, then the borrower.
must "paused while lent: a spot container has memory on the card" borrow patient
check "paused while lent: the container is paused" pause main-2
sleep 1
check "paused while lent: the card stays lent" state_is $holding lent
check_fails "paused while lent: and borrowed" gone patient
check "paused while lent: it goes on" resume main-2
call_in main-2 10
wait $back
is "paused while lent: its call is served" $? 0
back "paused while lent" 10 patient

must "paused while held: a borrower is stuck in the driver" \
	borrow stuck sleep /dev/fakegpu0 3600000 uninterruptible
call_in main-2 11
check "paused while held: the user is held" wait_for "$long" is_held
check "paused while held: the held call does not keep the container from being paused" \
	pause main-2
is "paused while held: the call is not served" "$(served 11)" ''
wake
check "paused while held: the borrower is dead" wait_for "$long" gone stuck
remove stuck
must "paused while held: the card is lent to the next one meanwhile" borrow next
is "paused while held: the call is still not served" "$(served 11)" ''
check "paused while held: the container goes on" resume main-2
wait $back
is "paused while held: so does the call" $? 0
back "paused while held" 11 next

must "a paused borrower: it has memory on the card" borrow icy
check "a paused borrower: it is paused" pause icy
check "a paused borrower: the user is back" touch_card 12
back "a paused borrower" 12 icy

# ---- A pod comes back under the name of one that is not quite gone.
must "the same name: a borrower is stuck in the driver" \
	borrow stuck2 sleep /dev/fakegpu0 3600000 uninterruptible
remove side
remove main-2
check "the same name: the card comes back without the pod" \
	wait_for "$long" state_is $holding returning
holder new 0 main/uid-new/main &
making=$!
check "the same name: our runtime is asked for the new pod's container" \
	wait_for "$long" our_runtime_runs
sleep 3
check "the same name: it waits while the borrower lives, and does not call the next one" \
	our_runtime_runs
wake
wait $making
is "the same name: it is made" $? 0
main=$(pid_of new)
holding=uid-new/main
check "the same name: the borrower is dead by then" gone stuck2
is "the same name: its memory is free" "$(used 0)" 0
check "the same name: the user's call is served" touch_card 20
remove stuck2
must "the same name: the card is lent by the new pod" borrow other
check "the same name: its user is back" touch_card 21
back "the same name" 21 other

gpushare-runtime exec new fgpu sleep /dev/fakegpu0 3600000 uninterruptible >/dev/null 2>&1 &
check "the old pod is stuck in the driver: it is" \
	wait_for "$long" grep -q 'asleep_now=1' /sys/kernel/debug/fakegpu/stats
remove new
check_fails "the old pod is stuck in the driver: it was deleted, and is there" gone new
must "the old pod is stuck in the driver: the new one is given its card" \
	holder newer 0 main/uid-newer/main
main=$(pid_of newer)
check "the old pod is stuck in the driver: the new one's call is served" touch_card 22
sleep 3
check_fails "the old pod is stuck in the driver: the card is not lent" \
	sh -c 'kt dump | grep " state=lent"'
is "the old pod is stuck in the driver: nobody is called an impostor" \
	"$(told 'two pods say')" 0
wake
holding=uid-newer/main
must "the old pod is gone: the card is borrowed" borrow last
check "the old pod is gone: the user is back" touch_card 23
back "the old pod is gone" 23 last
plan
