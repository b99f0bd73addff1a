# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Several at once: holdings that return at the same moment, borrowers of one card, a borrower of
# several cards whose lenders come back one after the other. Who is stuck inside the driver makes
# sure that it is at the same moment.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 600
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

stay="sleep /dev/fakegpu0 3600000 uninterruptible"
stay_other="sleep /dev/fakegpu1 3600000 uninterruptible"

# both_lent, both_held: of main and other.
both_lent() {
	is_lent main && wait_for "$long" state_is other lent
}

both_held() {
	[ "$(kt state main held) $(kt state other held)" = "1 1" ]
}

asleep() {
	[ "$(grep -c 'asleep_now=1' /sys/kernel/debug/fakegpu/stats)" = $1 ]
}

# call_main TOKEN, call_other TOKEN: in the background: $call_main, $call_other.
call_main() {
	inside $main fgpu echo /dev/fakegpu0 $1 >/dev/null 2>&1 &
	call_main=$!
}

call_other() {
	inside $other fgpu echo /dev/fakegpu1 $1 >/dev/null 2>&1 &
	call_other=$!
}

# both_back NAME TOKEN TOKEN: both calls have been served, and cleanly.
both_back() {
	wait $call_main
	is "$1: the one user's call is served" $? 0
	wait $call_other
	is "$1: so is the other one's" $? 0
	check "$1: the one's with no memory left on his card" served_clean $2 0
	check "$1: the other one's, too" served_clean $3 1
}

# dead NAME SPOT...: those have ended; away with them.
dead() {
	local name=$1 one
	shift
	for one; do
		check "$name: $one is dead" wait_for "$long" gone $one
		check "$name: the grant of $one is revoked" wait_for "$long" revoked $one
		remove $one
	done
}

must "the node comes up" node_up
must "the agent starts" agent_start
must "a container is given a card" holder main 0
must "another one is given the other card" holder other 1
main=$(pid_of main)
other=$(pid_of other)

name="two holdings return at the same moment"
must "$name: both cards are lent" both_lent
check "$name: a borrower of the one" \
	spot one 0 main fgpu alloc /dev/fakegpu0 $mib64 , $stay
check "$name: a borrower of the other one" \
	spot two 1 other fgpu alloc /dev/fakegpu1 $mib64 , $stay_other
check "$name: both are inside the driver" wait_for "$long" asleep 2
call_main 1
call_other 2
check "$name: both users are held" wait_for "$long" both_held
is "$name: neither is served" "$(served 1)$(served 2)" ''
wake
both_back "$name" 1 2
dead "$name" one two

name="a borrower of both"
must "$name: both cards are lent" both_lent
check "$name: it starts" spot both "0 1" "main other" \
	fgpu alloc /dev/fakegpu0 $mib64 , alloc /dev/fakegpu1 $mib64 , $stay_other
check "$name: it is inside the driver" wait_for "$long" asleep 1
call_main 3
check "$name: the one lender is held" wait_for "$long" is_held
is "$name: the other card is still lent" "$(kt state other state)" lent
call_other 4
check "$name: so is the other one, while it still has files there" wait_for "$long" both_held
is "$name: neither is served" "$(served 3)$(served 4)" ''
wake
both_back "$name" 3 4
dead "$name" both

name="one of its lenders is back"
must "$name: both cards are lent" both_lent
check "$name: a borrower of both" spot half "0 1" "main other" \
	fgpu alloc /dev/fakegpu0 $mib64 , alloc /dev/fakegpu1 $mib64 , hold
check "$name: another one of the other card" \
	spot whole 1 other fgpu alloc /dev/fakegpu1 $mib64 , hold
check "$name: they have memory there" wait_for "$long" uses 1 $((2 * mib64))
check "$name: the user's call is served" touch_card 5
check "$name: with no memory left on the card" served_clean 5 0
dead "$name" half
is "$name: the other card stays lent" "$(kt state other state)" lent
check_fails "$name: who borrows that one alone runs on" gone whole
is "$name: with his memory" "$(used 1)" $mib64
call_other 6
wait $call_other
is "$name: the other user's call is served" $? 0
check "$name: with no memory left on that card" served_clean 6 1
dead "$name" whole

name="a card lent to three"
must "$name: the first one" borrow first
check "$name: the second one" spot second 0 main fgpu alloc /dev/fakegpu0 $mib64 , hold
check "$name: the third one" spot third 0 main fgpu alloc /dev/fakegpu0 $mib64 , $stay
check "$name: all have memory there" wait_for "$long" uses 0 $((3 * mib64))
check "$name: the third one is inside the driver" wait_for "$long" asleep 1
is "$name: the card's file names all three" \
	"$(grep -oE '/gs/(first|second|third)"' "/run/gpushare/lent/$(card 0)" | wc -l)" 3
call_main 7
check "$name: the user is held" wait_for "$long" is_held
check "$name: the first one is dead" wait_for "$long" gone first
check "$name: the second one is dead" wait_for "$long" gone second
is "$name: the call waits for the third one" "$(served 7)" ''
wake
wait $call_main
is "$name: the call is served" $? 0
check "$name: with no memory left on the card" served_clean 7 0
dead "$name" first second third

is "nothing ended in quarantine" "$(kt status quarantine)" 0
is "no user was let go at hold_max" "$(kt status hold_max)" 0
plan
