# shellcheck shell=dash disable=SC2154,SC2086
# SPDX-License-Identifier: Apache-2.0
# Thousands who are held at once: they all go on, and nobody else waits for that.
# runs: full
# boot: --mem 1024
# seconds: 300
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/doorbell.inc

h_nodes=$nodes
threads=6000
[ $slow = 1 ] || threads=1000

doors || exit 1
container m
kt holding h $h_nodes lend_after=1000000 hold_max=600000 settle=0
kt member m h pid=$m
agent_up

bell many $m map $card , add 0 , ready /tmp/many.ready , until /tmp/many.go , ring 0 $threads
up many
here "it is lent" away
go many
check "$threads threads are held" wait_for 120 h_is held $threads
end $b
wait_for 20 grep -qx 0 $memory
wait_for 20 h_is files 0
begin=$(tr -d . </proc/uptime | cut -d' ' -f1)
kt release h auto
took=$(($(tr -d . </proc/uptime | cut -d' ' -f1) - begin))
echo "# to release $threads: $took cs"
wait_for 60 h_is held 0
is "all go on" "$(h held)" 0
here "... and end well" ended many
is "... no store was lost or doubled" "$(value 0)" $((before + threads))
clean "nobody was on the card with the borrower"
kt watch-del b
agent_down
end $m
check "all is taken away" no_cards
plan
