# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The promise, kept for a user who makes no call: he only rings his card's doorbell, and that store
# waits until the borrower is gone. And what becomes of a card whose mappings can't be taken away.
# runs: short
# kernels: 5.10 6.1 6.12 7.3
# boot: --agent --mem 768
# seconds: 600
# shellcheck disable=SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

parameters=/sys/module/fakegpu/parameters

# rung: how often the doorbell of card 0 was rung.
rung() {
	echo $(($(sed -n 's/^card=0 doorbell=\(0x[0-9a-f]*\) .*/\1/p' \
		/sys/kernel/debug/fakegpu/doorbells)))
}

has_rung() {
	[ "$(rung)" = "$1" ]
}

# user NAME: a process of the user's that maps the card, rings it once, and once more whenever there
# is a file NAME.1, NAME.2.
user() {
	rm -f "$node/$1".*
	inside "$main" fgpu mmap /dev/fakegpu0 , add /dev/fakegpu0 , until "$node/$1.1" , \
		add /dev/fakegpu0 , until "$node/$1.2" , add /dev/fakegpu0 , hold \
		>"$node/$1.out" 2>&1 &
	wait_for "$long" grep -q '^add' "$node/$1.out"
}

# inspected TEXT: does that stand there of card 0?
inspected() {
	gpusharectl inspect "$(card 0)" | grep "^revocable  *$1"
}

# first_fault: of those that the driver has served since the log was cleared: what was on the card.
first_fault() {
	sed -n 's/.* kind=fault .* dev=fakegpu0 .*\(mem=[0-9]*\) ret=.*/\1/p' "$log" | head -n 1
}

# took N: so many mappings were taken away the last time.
took() {
	[ "$(kt state main mappings)" = "$1" ]
}

# logged_more N TEXT: oftener than so?
logged_more() {
	[ "$(told "$2")" -gt "$1" ]
}

# sampled_before_lent: since the card was idle last it was sampled, and lent a period later.
sampled_before_lent() {
	sed -n '/"to":"idle"/h;/"to":"idle"/!H;$!b;x;p' "$agent_log" | tr '\n' ' ' |
		grep -q '"msg":"sampled".*"msg":"sampled".*"to":"lent"'
}

must "the node comes up" node_up
must "the agent starts" agent_start
must "a container is given a card" holder main 0
main=$(pid_of main)
check "inspect says that a store is held, too" wait_for "$long" inspected "yes: "
check "status counts it" sh -c 'gpusharectl status | grep "make no call: held on 2 of 2"'
must "a process of it maps the card and rings" user one
must "the idle card is lent, and a spot container has memory on it" borrow spot
is "one mapping was taken away" "$(kt state main mappings)" 1
is "it was rung once so far" "$(rung)" 1

echo >/sys/kernel/debug/fakegpu/clear
: >"$node/one.1"
check "the user rings, and that arrives" wait_for "$long" has_rung 2
is "the first that reached the driver found no memory on the card" "$(first_fault)" mem=0
check "the borrower is dead" gone spot
check "its grant is revoked" revoked spot
is "its memory is free" "$(used 0)" 0
check "the log tells of a touch" logged '"from":"lent","to":"returning","cause":"touch"'
check "of one caller who goes on" wait_for 10 logged '"msg":"callers go on".*"callers":"1"'
check "and of nothing that was taken back" sh -c "! grep -q 'taken back' $agent_log"
sleep 1
is "it arrived once" "$(rung)" 2

# ---- The driver's files share one address space: the module refuses.
quiet_user
echo Y >$parameters/shared_mapping
must "a process maps the card by a file whose address space is everybody's" user two
must "it is lent all the same" borrow spot2
check "an operator is told, once" [ "$(told 'a return by a store will not be held')" = 1 ]
check "with the module's words" logged 'will not be held.*one address space'
check "and by status" sh -c 'gpusharectl status | grep "makes no call is not held: .*address"'
check "inspect says so" inspected "no: .*one address space"
is "nothing was taken away" "$(kt state main mappings)" 0
: >"$node/two.1"
check "a store goes through" wait_for "$long" has_rung 4
is "the borrower lives" "$(used 0)" "$mib64"
touch_card 50
check "a call is held" served_clean 50 0
check "until he is dead" gone spot2

# ---- The next agent tries again.
quiet_user
echo N >$parameters/shared_mapping
agent_kill
must "another agent starts" agent_start
check "the user comes back" touch_card 51
check "it has the module take mappings away again" wait_for "$long" inspected "yes: "

# ---- The operator wants to know of stores also while nothing is lent.

quiet_user
agent_kill -TERM
agent_config '"sample_period": "5s"'
must "an agent that samples starts" agent_start
must "it does so where there is nothing to take away" wait_for "$long" took 0
must "a process of the user's maps the card and rings" user three
check "its mapping is taken away" wait_for "$long" took 1
is "it rang so often" "$(rung)" 5
: >"$node/three.1"
check "it rings, and that arrives" wait_for "$long" has_rung 6
check "that was a touch" wait_for 10 logged '"from":"idle","to":"active","cause":"touch"'
idle_again=$(told '"to":"lent"')
check "left alone, it is lent" wait_for "$long" logged_more "$idle_again" '"to":"lent"'
check "after a period in which it was sampled" sampled_before_lent
: >"$node/three.2"
check "it rings once more" wait_for "$long" has_rung 7

agent_kill -TERM
plan
