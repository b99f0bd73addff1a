# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The agent is killed in every state of a holding, and started again: nothing is lost. And it stays
# away: nobody borrows any more, who borrows is ended by the kernel or by the runtime, users go on.
# ROUNDS: how many kills at any instant (5).
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 1200
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# no_agent: is there no process of the agent's any more?
no_agent() {
	! grep -qsE '^(gpushared|gpushare-probe)$' /proc/[0-9]*/comm
}

# fine NAME TOKEN: the card is lent again, and its user gets it as ever.
fine() {
	must "$1: it is lent again" is_lent main
	check "$1: its user gets it back" touch_card "$2"
}

# killed NAME STATE: kills the agent, which must have found the holding in that state.
killed() {
	check "$1: the holding is $2" wait_for "$long" state_is main "$2"
	agent_kill
	check "$1: none of the agent's processes is left" wait_for 20 no_agent
}

# again NAME: starts it again, and waits until it has looked around.
again() {
	must "$1: the agent starts again" agent_start
	check "$1: it finds the holding" wait_for "$long" knows_main
}

knows_main() {
	gpusharectl status -o json | grep '"main"'
}

must "the node comes up" node_up
pausing_runc
must "the agent starts" agent_start
must "a container is given a card" holder main 0
main=$(pid_of main)

# ---- Without a borrower.
kill -STOP "$agent"
# A node that a lent holding needs stays hooked; nobody lends it again now.
touch_card 90
kt unhook /dev/fakegpu-uvm
killed unknown unknown
check "unknown: a call is not held" touch_card 1
again unknown
fine unknown 2

busy_user
killed active active
check "active: a call is not held" touch_card 3
again active
is "active: so it still is" "$(kt state main state)" active
quiet_user
fine active 4

kill -STOP "$agent"
killed idle idle
again idle
fine idle 5

must "lent: it is" is_lent main
killed lent lent
again lent
is "lent: it still is" "$(kt state main state)" lent
check "lent: its file is there" [ -e "/run/gpushare/lent/$(card 0)" ]
fine lent 6

must "lent, and touched meanwhile: it is lent" is_lent main
killed "lent, and touched meanwhile" lent
check "lent, and touched meanwhile: the call is not held" touch_card 7
again "lent, and touched meanwhile"
fine "lent, and touched meanwhile" 8

i=0
while [ $i -lt "${ROUNDS:-5}" ]; do
	i=$((i + 1))
	touch_card $((100 + i)) >/dev/null
	usleep $((i * 137000 % 900000))
	agent_kill
	gpushared >>$node/agent.out 2>&1 &
	agent=$!
done
wait_for "$long" gpusharectl status
fine "at any instant" 9

# ---- With a borrower.
must "borrowed: a spot container has memory on the card" borrow stays
killed borrowed lent
again borrowed
is "borrowed: it still is" "$(kt state main state)" lent
check_fails "borrowed: the borrower runs on" gone stays
check "borrowed: the user is back" touch_card 10
check "borrowed: with no memory left on the card" served_clean 10 0
check "borrowed: the borrower is gone" gone stays
remove stays
fine borrowed 11

must "borrowed, nobody there: a spot container has memory on the card" borrow orphan
killed "borrowed, nobody there" lent
check "borrowed, nobody there: the user is back, and goes on" touch_card 12
check "borrowed, nobody there: the kernel has ended the borrower" wait_for 20 gone orphan
check "borrowed, nobody there: before the call" served_clean 12 0
is "borrowed, nobody there: the kernel counts that" "$(kt status settled)" 1
again "borrowed, nobody there"
check "borrowed, nobody there: its grant is revoked" wait_for "$long" revoked orphan
remove orphan
fine "borrowed, nobody there" 13

# ---- While a borrower is being made.
must "before its watch: the card is lent" is_lent main
: >$node/pause
rm -f $node/next
spot_bundle early 0 main fgpu alloc /dev/fakegpu0 "$mib64" , hold
runtime run early &
making=$!
must "before its watch: the agent lets a spot container borrow" wait_for "$long" [ -e $node/next ]
killed "before its watch" lent
rm $node/pause
wait $making
is "before its watch: it does not start without the agent" $? 1
check "before its watch: it is told why" grep -i agent $node/early.out
check_fails "before its watch: it has not touched the card" uses 0 "$mib64"
check "before its watch: a call of the user's is not held" touch_card 14
again "before its watch"
remove early
fine "before its watch" 15

must "before its watch, and there again: the card is lent" is_lent main
: >$node/pause
rm -f $node/next
spot_bundle late 0 main fgpu alloc /dev/fakegpu0 "$mib64" , hold
runtime run late &
making=$!
wait_for "$long" [ -e $node/next ]
killed "before its watch, and there again" lent
again "before its watch, and there again"
rm $node/pause
wait $making
is "before its watch, and there again: it starts" $? 0
wait_for "$long" uses 0 "$mib64"
check "before its watch, and there again: the user is back" touch_card 16
check "before its watch, and there again: with no memory left" served_clean 16 0
remove late

# ---- While the card returns.
must "returning: a borrower is stuck in the driver" \
	borrow stuck sleep /dev/fakegpu0 3600000 uninterruptible
must "returning: the user is held" come_back 17
killed returning returning
again returning
is "returning: it still is" "$(kt state main state)" returning
is "returning: the user is still held" "$(kt state main held) $(served 17)" "1 "
wake
wait "$back"
is "returning: the call goes on" $? 0
check "returning: with no memory left on the card" served_clean 17 0
remove stuck
fine returning 18

must "returning, nobody there: a borrower is stuck in the driver" \
	borrow stuck2 sleep /dev/fakegpu0 3600000 uninterruptible
must "returning, nobody there: the user is held" come_back 19
killed "returning, nobody there" returning
wake
wait "$back"
is "returning, nobody there: the call goes on" $? 0
check "returning, nobody there: with no memory left on the card" served_clean 19 0
again "returning, nobody there"
remove stuck2
fine "returning, nobody there" 20

agent_kill
agent_config '"hold_max": "1s"'
must "quarantine: an agent with a short hold_max starts" agent_start
must "quarantine: a borrower is stuck in the driver" \
	borrow stuck3 sleep /dev/fakegpu0 3600000 uninterruptible
check "quarantine: the user is held for hold_max, and goes on" touch_card 21
killed quarantine quarantine
check "quarantine: a call is not held" touch_card 22
again quarantine
is "quarantine: it still is" "$(kt state main state)" quarantine
wake
check "quarantine: the borrower ends" wait_for "$long" gone stuck3
check "quarantine: it is over" wait_for "$long" sh -c '[ "$(kt state main state)" != quarantine ]'
remove stuck3
fine quarantine 23

# ---- The agent is gone for good.
must "gone: a spot container has memory on the card" borrow last
killed gone lent
spot_bundle refused 0 main fgpu hold /dev/fakegpu0
is "gone: nobody makes a spot grant" "$(ls $node/bundles/refused 2>/dev/null)" ''
grant=$(cat $node/bundles/last/grant)
bundle refused refused '' "$(from refused main), \"gpushare.k8s.io/grant\": \"$grant\"" \
	fgpu hold /dev/fakegpu0
check_fails "gone: nobody borrows" runtime run refused
check_fails "gone: the borrower runs on meanwhile" gone last
check "gone: another container is given the lent card, and starts" holder second 0
check "gone: the runtime has killed the borrower for it" gone last
check "gone: the user goes on" touch_card 24
check "gone: with no memory left on the card" served_clean 24 0
plan
