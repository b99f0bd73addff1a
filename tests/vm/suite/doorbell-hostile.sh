# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# A member that means harm: with its mappings it wants to reach its card while that is lent, to make
# others wait, or not to let itself be lent in a way that hurts more than itself.
# runs: full
# seconds: 300
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/doorbell.inc

h_nodes=$nodes
doors || exit 1
container m
kt holding h $h_nodes lend_after=1000000 hold_max=600000 settle=0
kt member m h pid=$m
agent_up

# asked: asks to lend h; what it is told is in $why, the centiseconds that it took in $took.
asked() {
	local begin
	kt holding h $h_nodes lend_after=20
	kt wait h idle 10000 >/dev/null
	kt holding h $h_nodes lend_after=1000000
	begin=$(tr -d . </proc/uptime | cut -d' ' -f1)
	why=$(kt lend h auto 2>&1)
	took=$(($(tr -d . </proc/uptime | cut -d' ' -f1) - begin))
}

# is_over PID: has that child of ours ended? (Until it is waited for something of it is there.)
is_over() {
	[ ! -d /proc/$1 ] || grep -q '^State:.*Z' /proc/$1/status
}

# soon NAME: has it ended within ten seconds? (`ended` waits for ever.)
soon() {
	wait_for 10 is_over "$(cat /tmp/$1.job)"
}

# ---- A copy of the memory that nobody has yet: a fork that does not end.

bell hide $m map $card , add 0 , ready /tmp/hide.ready , until /tmp/hide.go , \
	hide 0 /tmp/hide.store , ready /tmp/hide.hidden , until /tmp/hide.go2 , unhide
up hide
before=$(value 0)
go hide
check "a mapping is only in a fork that goes on" wait_for 20 test -e /tmp/hide.hidden
asked
case $why in
*"memory is busy"*) ok "it is not lent" ;;
*) not_ok "it is not lent" "$why" "$(kt state h)" ;;
esac
kt withdraw h
: >/tmp/hide.go2
sleep 1
here "when there is a child it is lent" away
is "... whose mapping is taken away" "$(h mappings)" 1
: >/tmp/hide.store
held 1 "its store is held"
here "it goes on" back
here "... and ends well" ended hide
is "... it arrived once" "$(value 0)" $((before + 1))
clean "nobody was on the card with the borrower"

# ---- So many mappings that to look at each takes minutes.

bell flood $m flood $card 30000 , ready /tmp/flood.ready , until /tmp/flood.go
check "thirty thousand mappings" wait_for 120 test -e /tmp/flood.ready
asked
case $why in
*"memory is busy"*) ok "they are not lent ($took cs)" ;;
*) not_ok "they are not lent ($took cs)" "$why" "$(kt state h)" ;;
esac
check "... which is found soon" test $took -lt $((200 * slow))
go flood
here "they go" ended flood

# ---- A private one, which is no word about the driver.

echo 1 >/sys/module/fakegpu/parameters/private
bell private $m private $card , ready /tmp/private.ready , until /tmp/private.go
up private
asked
is "a private mapping is not lent" "$why" \
	"kt: EBUSY: the module refused: a member has a private mapping of the card"
go private
here "it goes" ended private
echo 0 >/sys/module/fakegpu/parameters/private

# ---- The kernel touches the card for somebody who dies.

for way in robust tid; do
	bell die $m map $card , add 0 , ready /tmp/die.ready , until /tmp/die.go , \
		last 0 $way , wait 300 , ready /tmp/die.done , until /tmp/die.never
	up die
	here "it is lent" away
	touched=$(kt watch m touches)
	go die
	wait_for 20 test -e /tmp/die.done
	is "a thread that ends by the card ($way) is no return" "$(h state) $(h held)" "lent 0"
	is "... and no touch" "$(kt watch m touches)" $touched
	kill -9 "$(bell_pid die)"
	check "... its process can be killed" soon die
	kt withdraw h
	here "taken back" back
	check "... it is gone" soon die
done

# ---- The kernel touches the card for somebody, with a lock that others need.

mkdir /tmp/folder
echo 6000 >/sys/module/gpushare/parameters/kernel_hold_max_ms
bell list $m map $card , add 0 , ready /tmp/list.ready , until /tmp/list.go , list 0 /tmp/folder
bell user $m map $card , add 0 , ready /tmp/user.ready , until /tmp/user.go , add 0
up list user
here "it is lent" away
go list
check "a system call that writes to the card is held" wait_for 20 h_is held 1
go user
touch /tmp/folder/file &
innocent=$!
check "... who waits for its lock does not wait for long" \
	wait_for 20 is_over $innocent
check "... for it goes on" soon list
is "... and its user is held on" "$(h state) $(h held)" "returning 1"
here "he goes on" back
here "... and ends well" ended user
here "... both" ended list

agent_down
end $m $b
check "all is taken away" no_cards
plan
