# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, and their user comes back: they are dead and their memory on the
# card is free before the user's call is served.
# ROUNDS: how often (1). $next: by which runtime, if not runc.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 1200
# shellcheck disable=SC2034,SC2046,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

token=100
use="fgpu alloc /dev/fakegpu0 $mib64 , hold"

# user_back WHAT NAME...: the user's call is served once, on a card without memory of these
# borrowers, which are dead then.
user_back() {
	local what=$1 name
	shift
	token=$((token + 1))
	check "$what: the user is back" touch_card $token
	check "$what: with no memory left on the card" served_clean $token 0
	for name; do
		check "$what: $name is dead" gone $name
		remove $name
	done
}

# borrower WHAT NAME COMMAND...: runs that one, and the user comes back.
borrower() {
	local what=$1 name=$2
	must "$what: the card is lent" is_lent main
	shift 2
	check "$what: it starts" spot $name 0 main "$@"
	check "$what: it has memory on the card" wait_for "$long" uses 0 "$mib64" ||
		sed 's/^/# /' $node/$name.out
	user_back "$what" $name
}

# other_borrower WHAT NAME STEP...: the same on the other card, with steps of fgpu; its user's call
# waits. other_back WHAT NAME: that call has been served.
other_borrower() {
	local what=$1 name=$2
	must "$what: the card is lent" wait_for "$long" state_is other lent
	shift 2
	check "$what: it starts" spot $name 1 other fgpu alloc /dev/fakegpu1 $mib64 , "$@"
	check "$what: it has memory on the card" wait_for "$long" uses 1 $mib64
	token=$((token + 1))
	inside $other fgpu echo /dev/fakegpu1 $token >/dev/null &
	other_call=$! other_token=$token
}

other_back() {
	wait $other_call
	is "$1: the user is back" $? 0
	check "$1: with no memory left on the card" served_clean $other_token 1
	check "$1: $2 is dead" gone $2
	remove $2
}

# The same file by so many names.
files_64() {
	local folder=/dev i=0
	while [ $i -lt 63 ]; do
		folder=$folder/.
		echo $folder/fakegpu0
		i=$((i + 1))
	done
}

freeze() {
	local v1=/sys/fs/cgroup/freezer
	if [ -d $v1 ]; then
		echo FROZEN >$v1/gs/$1/freezer.state
		wait_for 20 grep -q FROZEN $v1/gs/$1/freezer.state
		return
	fi
	echo 1 >/sys/fs/cgroup/gs/$1/cgroup.freeze
	wait_for 20 grep -q 'frozen 1' /sys/fs/cgroup/gs/$1/cgroup.events
}

# served_other TOKEN: calls on card 1, as $other: it must be served once.
served_other() {
	inside $other fgpu echo /dev/fakegpu1 $1 && [ "$(served $1 | wc -l)" = 1 ]
}

both_lent() {
	is_lent main && wait_for "$long" state_is other lent
}

# What takes long goes on, on the other card, while the next kinds are tried.
kinds() {
	echo >/sys/kernel/debug/fakegpu/clear
	other_borrower "is stuck in the driver for 5 s" stuck \
		sleep /dev/fakegpu1 5000 uninterruptible , hold
	must "exits at once: the card is lent" is_lent main
	check "exits at once: it starts" spot short 0 main fgpu ping /dev/fakegpu0
	check "exits at once: it has ended" wait_for "$long" gone short
	token=$((token + 1))
	check "exits at once: the user is back" touch_card $token
	remove short

	borrower "traps SIGTERM" deaf \
		sh -c "trap '' TERM INT HUP QUIT; $use & while :; do sleep 1; done"
	borrower "forks without end" forks sh -c "$use & x() { x & }; x & x & sleep 100000"

	must "holds 64 files: it has memory on the card" borrow files hold $(files_64)
	check "holds 64 files: so many" \
		wait_for "$long" sh -c '[ "$(kt state main files)" = 64 ]'
	user_back "holds 64 files" files

	borrower "has a namespace below its own" nested unshare -U -p -f $use

	must "is frozen: it has memory on the card" borrow frozen
	check "is frozen: it is" freeze frozen
	user_back "is frozen" frozen

	other_back "is stuck in the driver for 5 s" stuck
	echo 1500 >/sys/class/fakegpu/fakegpu1/free_delay_ms
	other_borrower "its memory is late" late hold

	# ---- Several.
	must "two borrowers of a card: the first one" borrow one
	check "two borrowers of a card: the second one" \
		spot two 0 main fgpu open /dev/fakegpu0 , hold
	check "two borrowers of a card: both have it open" \
		wait_for "$long" sh -c '[ "$(kt state main files)" = 2 ]'
	user_back "two borrowers of a card" one two

	other_back "its memory is late" late
	echo -1 >/sys/class/fakegpu/fakegpu1/free_delay_ms

	must "one of two lenders is back: both cards are lent" both_lent
	check "one of two lenders is back: a borrower of both starts" \
		spot both "0 1" "main other" \
		fgpu alloc /dev/fakegpu0 $mib64 , alloc /dev/fakegpu1 $mib64 , hold
	check "one of two lenders is back: it has memory on both" wait_for "$long" uses 1 $mib64
	user_back "one of two lenders is back" both
	is "one of two lenders is back: the other card stays lent" "$(kt state other state)" lent
	is "one of two lenders is back: with no memory left there" "$(used 1)" 0
	held=$(kt status held)
	token=$((token + 1))
	check "one of two lenders is back: then the other one" served_other $token
	is "one of two lenders is back: which was not held" "$(kt status held)" "$held"

	must "two holdings return at once: both cards are lent" both_lent
	check "two holdings return at once: a borrower of each" \
		spot first 0 main fgpu alloc /dev/fakegpu0 $mib64 , hold
	check "two holdings return at once: and of each" \
		spot second 1 other fgpu alloc /dev/fakegpu1 $mib64 , hold
	wait_for "$long" uses 0 $mib64
	wait_for "$long" uses 1 $mib64
	inside $other fgpu echo /dev/fakegpu1 $((token + 1000)) >/dev/null &
	user_back "two holdings return at once" first second
	wait $!
	is "two holdings return at once: the other user, too" $? 0
	check "two holdings return at once: with no memory left there" \
		served_clean $((token + 999)) 1
}

must "the node comes up" node_up
# With 0 the agent would take the driver's word that memory is free with the last close.
sed -i 's/"settle_ms": 0/"settle_ms": 500/' $node/vendors.d/fakegpu.json
must "the agent starts" agent_start
must "a container is given a card" holder main 0
must "another one is given the other card" holder other 1
main=$(pid_of main)
other=$(pid_of other)
round=0
while [ $round -lt "${ROUNDS:-1}" ]; do
	round=$((round + 1))
	echo "# round $round, $(uptime_now) s"
	kinds
done
is "nothing ended in quarantine" "$(kt status quarantine)" 0
is "no user was let go at hold_max" "$(kt status hold_max)" 0
plan
