# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Wrong guesses cost nothing: the user is back while the card is being lent or borrowed; a load that
# means something else than it says; cards and containers that go away while they are lent.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 1200
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# The cards' load, told by a command that does what the file `load` says.
load_by_command() {
	cat >$node/load.sh <<-END
	#!/bin/sh
	read -r way <$node/load
	case \$way in
	hang) exec /bin/sleep 1000 ;;
	die) kill -9 \$\$ ;;
	rubbish) exec /bin/head -c 100000 /dev/urandom ;;
	esac
	cd /sys/class/fakegpu/fakegpu\$1
	read -r load <load
	read -r used <mem_used
	read -r total <mem_total
	echo "busy=\$load used=\$used total=\$total"
	END
	chmod +x $node/load.sh
	echo well >$node/load
	sed -i '/^  "load": {/,/^  }/d' $node/vendors.d/fakegpu.json
	sed -i '$d' $node/vendors.d/fakegpu.json
	cat >>$node/vendors.d/fakegpu.json <<-END
	  "load": {"source": "command", "processes": "open-files",
	    "busy": {"argv": ["$node/load.sh", "{number}"], "after": "busy="},
	    "memory_used": {"argv": ["$node/load.sh", "{number}"], "after": "used="},
	    "memory_total": {"argv": ["$node/load.sh", "{number}"], "after": "total="}}
	}
	END
}

# not_lent NAME: it has been idle for long enough, and is not lent.
not_lent() {
	wait_for "$long" state_is main idle
	sleep 3
	is "$1" "$(kt state main state)" idle
}

# why_not TEXT: is that the reason?
why_not() {
	gpusharectl inspect "$(card 0)" | grep "$1"
}

# at_next NAME: begins to run a spot container in the background, its pid in $making, and waits
# until the agent has let it borrow, before runc.
at_next() {
	must "$1: the card is lent" is_lent main
	: >$node/pause
	rm -f $node/next
	spot_bundle $2 0 main fgpu alloc /dev/fakegpu0 "$mib64" , hold
	runtime run $2 &
	making=$!
	must "$1: the agent lets a spot container borrow" wait_for "$long" [ -e $node/next ]
}

# not_made NAME SPOT: it did not start, and never used the card.
not_made() {
	wait "$making"
	is "$1: the spot container does not start" $? 1
	is "$1: it never had the card" "$(grep -c "name=ALLOC" "$log")" 0
	remove $2
}

hook_waits() {
	grep -qs '^gpushare-hook$' /proc/[0-9]*/comm
}

load_period=1s
must "the node comes up" node_up
load_by_command
pausing_runc
must "the agent starts" agent_start
must "a container is given a card" holder main 0
main=$(pid_of main)

# ---- The user is back before it is lent, or borrowed.
inside $main fgpu ping /dev/fakegpu0 >/dev/null
kill -STOP $agent
check "before LEND: idle" wait_for "$long" state_is main idle
check "before LEND: the user is back" touch_card 1
kill -CONT $agent
must "before LEND: it is lent again later" is_lent main

at_next "before runc" early
check "before runc: the user is back" touch_card 2
busy_user
rm $node/pause
not_made "before runc" early
quiet_user

at_next "while the hook waits" hooked
kill -STOP $agent
rm $node/pause
check "while the hook waits: it does" wait_for "$long" hook_waits
check "while the hook waits: the user is back" touch_card 3
busy_user
kill -CONT $agent
not_made "while the hook waits" hooked
quiet_user

must "created: the card is lent" is_lent main
spot_bundle created 0 main fgpu alloc /dev/fakegpu0 "$mib64" , hold
check "created: a spot container is, and not started" runtime create created
check "created: the user is back" touch_card 4
check "created: the spot container is dead" wait_for "$long" gone created
check_fails "created: it can't be started" gpushare-runtime start created
is "created: it never had the card" "$(grep -c name=ALLOC "$log")" 0
remove created

# ---- Loads.
must "the borrower's own load: it works" borrow worker work /dev/fakegpu0 3600000 , hold
check "the borrower's own load: that is to be seen" \
	wait_for "$long" grep -q 100 /sys/class/fakegpu/fakegpu0/load
sleep 3
is "the borrower's own load: the card is still lent" "$(kt state main state)" lent
check_fails "the borrower's own load: and borrowed" gone worker
check "the borrower's own load: the user is back" touch_card 5
check "the borrower's own load: with no memory left on the card" served_clean 5 0
remove worker

inside $main fgpu open /dev/fakegpu0 , until $node/closed >/dev/null &
open=$!
echo 100 >/sys/class/fakegpu/fakegpu0/load_force
touch_card 6 >/dev/null
not_lent "a load that is the user's: it is not lent"
check "a load that is the user's: that is why" why_not "busy a while ago"
: >$node/closed
wait $open
check "the same load with no process there: it is lent" is_lent main
is "the same load with no process there: 100 %" "$(cat /sys/class/fakegpu/fakegpu0/load)" 100
echo -1 >/sys/class/fakegpu/fakegpu0/load_force

for way in hang die rubbish; do
	echo $way >$node/load
	touch_card 7 >/dev/null
	sleep 5 # a command may take four
	not_lent "a load source does this: $way: nothing is lent"
	check "a load source does this: $way: that is why" why_not "load of a card is not known"
	echo well >$node/load
	check "a load source does this: $way, and is well again: the card is lent" is_lent main
	echo >/sys/kernel/debug/fakegpu/clear
done
must "no load while the card is borrowed: a borrower" borrow unseen
echo rubbish >$node/load
sleep 1
check "no load while the card is borrowed: the user is back" touch_card 8
check "no load while the card is borrowed: with no memory left on the card" served_clean 8 0
echo well >$node/load
remove unseen

# ---- Who is nobody's.
must "a stranger: the card is lent" is_lent main
fgpu open /dev/fakegpu0 , until $node/left >/dev/null &
check "a stranger comes: it is taken back" wait_for "$long" logged "belongs to nobody known"
touch_card 9 >/dev/null
not_lent "a stranger stays: it is not lent"
check "a stranger stays: that is why" why_not "belongs to nobody known"
: >$node/left
wait $!
check "a stranger has gone: it is lent" is_lent main

bundle impostor impostor '' '' fgpu open /dev/fakegpu0 , until /tmp/unmasked
sed -i "s|\"env\": \[|&\"FAKEGPU_VISIBLE_DEVICES=$(cat /sys/class/fakegpu/fakegpu0/uuid)\", |
	s|{\"allow\": false, \"access\": \"rwm\"}|{\"allow\": true, \"access\": \"rwm\"}|
	s|{\"destination\": \"/dev\".*|{\"destination\": \"/dev\", \"type\": \"bind\", \
		\"source\": \"/dev\",|
	s|\"options\": \[\"nosuid\", \"mode=755\"\]|\"options\": [\"rbind\"]|" \
	$node/bundles/impostor/config.json
must "an impostor names a neighbour's card, and takes it" runtime run impostor
touch_card 10 >/dev/null
not_lent "an impostor: the card is not lent"
check "an impostor: an alert" \
	sh -c 'gpusharectl status -o json | grep -E "\"strangers\": ?true"'
: >$rootfs/tmp/unmasked
check "an impostor has gone: it is lent" is_lent main
remove impostor

# ---- Drivers and containers that go away.
must "the driver is loaded anew: the card is lent" is_lent main
numbers=$(grep fakegpu /proc/devices)
check "the driver is loaded anew" sh -c 'rmmod fakegpu && insmod /vm/modules/fakegpu.ko'
if [ "$numbers" = "$(grep fakegpu /proc/devices)" ]; then
	check "the driver is loaded anew: it is lent again" is_lent main
	check "the driver is loaded anew: the user is back" touch_card 11
else
	skip "the driver is loaded anew: it is lent again" "its numbers are others now"
fi

must "its container is removed while the card is borrowed: a borrower" borrow alone
remove main
check "its container is removed while the card is borrowed: so is the borrower" \
	wait_for "$long" gone alone
remove alone
must "its container is back under the same name" holder main 0
main=$(pid_of main)
check "its container is back: the card is lent" is_lent main
check "its container is back: so is the user" touch_card 12

must "its container dies while the card is borrowed: a borrower" borrow widow
kill -9 "$main"
check "its container dies while the card is borrowed: so does the borrower" \
	wait_for "$long" gone widow
remove widow
gpushare-runtime delete main
must "its container is restarted" runtime run main
main=$(pid_of main)
must "its container is restarted: the card is borrowed again" borrow heir
check "its container is restarted: the user is back" touch_card 13
check "its container is restarted: with no memory left on the card" served_clean 13 0
plan
