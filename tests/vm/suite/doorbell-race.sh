# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# LEND against stores to a doorbell: while the card is lent nothing arrives, and nothing is lost.
# runs: full
# seconds: 200
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/doorbell.inc

h_nodes=$nodes
doors || exit 1
echo 1 >/sys/kernel/rcu_expedited
container m
kt holding h $h_nodes lend_after=10 hold_max=600000 settle=0
kt member m h pid=$m
agent_up
container b
# They pause long enough for a borrower to come in between.
times=$((slow > 1 ? 60 : 120))
for name in a b c; do
	bell $name $m map $card , add 0 , ready /tmp/$name.ready , until /tmp/$name.go , \
		hammer 0 $times $((500000 * slow))
done
up a b c
before=$(value 0)
go a b c
lent=0 refused=0 returned=0 through=0
until said a hammer && said b hammer && said c hammer; do
	kt wait h idle 2000 >/dev/null || continue
	if ! kt lend h auto >/dev/null 2>&1; then
		refused=$((refused + 1))
		continue
	fi
	lent=$((lent + 1))
	# A touch that came first finds nobody to wait for, and goes on.
	kt borrower b h pid=$b 2>/dev/null || continue
	first=$(value 0)
	wait_for 2 h_is state returning && returned=$((returned + 1))
	usleep 10000
	[ "$(value 0)" = "$first" ] || through=$((through + 1))
	kt withdraw h
	kt release h auto
	kt watch-del b
done
echo "# lent $lent times, refused $refused, returned to $returned"
check "it was lent often enough" test $lent -gt 10
check "... and returned to" test $returned -gt 5
is "nothing arrived while there was a borrower" $through 0
for name in a b c; do
	here "$name ends well" ended $name
done
is "no store was lost or doubled" $(($(value 0) - before)) $((3 * times))
agent_down
end $m $b
echo 0 >/sys/kernel/rcu_expedited
check "all is taken away" no_cards
plan
