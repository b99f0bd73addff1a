# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Cards whose mappings can't be taken away: a user who makes no call is seen by load, and his card
# is taken back without holding him.
# runs: short
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 600
# shellcheck disable=SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# busy PERCENT: what the card says of itself.
busy() {
	echo "$1" >/sys/class/fakegpu/fakegpu0/load_force
}

# How often a card was taken back for its load.
taken_back() {
	told '"msg":"taken back".*made no call'
}

taken() {
	[ "$(taken_back)" = "$1" ]
}

not_away() {
	! state_is main lent && ! state_is main returning
}

must "the node comes up" node_up
sed -i 's|^    "revocable": .*|    "revocable": [],|' "$node/vendors.d/fakegpu.json"
must "the agent starts" agent_start
must "a container is given a card" holder main 0
main=$(pid_of main)
inside "$main" fgpu mmap /dev/fakegpu0 , hold >"$node/user.out" 2>&1 &
must "its idle card is lent" is_lent main
is "nothing was taken back" "$(taken_back)" 0

busy 40
check "the card works, and nobody borrows it: it is taken back" wait_for "$long" taken 1
check "it is the user's again" wait_for "$long" not_away
check "an operator sees why" logged '"msg":"taken back".*"card":"'"$(card 0)"'"'
sleep 2
check "it is not lent while it works" not_away
is "and was taken back once" "$(taken_back)" 1

busy 0
must "it is lent when it rests" borrow spot
busy 100
sleep 3
check "load while somebody borrows it may be his" state_is main lent
is "that is no return" "$(taken_back)" 1
is "the borrower lives" "$(used 0)" "$mib64"

remove spot
check "he is gone, and it still works: it is taken back" wait_for "$long" taken 2
quiet_user
must "load without any process that could be the reason is rest" is_lent main
sleep 3
check "and stays so" state_is main lent
is "that is no return either" "$(taken_back)" 2
is "nobody was held" "$(kt status held)" 0

agent_kill -TERM
plan
