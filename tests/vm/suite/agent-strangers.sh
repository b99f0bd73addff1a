# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Who is who: a container that names a neighbour's card, monitors that the operator exempts, and a
# spot container that calls itself like one of them.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 900
# shellcheck disable=SC2034,SC2046,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# A runtime that gives a container the cards that FAKEGPU_VISIBLE_DEVICES names, as vendors' do: it
# is called fake-runtime, and the catalogue knows it.
vendor_runtime() {
	ln -s /usr/sbin/runc $node/fake-runtime
	sed -i 's|"merge": "list"|&, "selects": true|
		s|"id": "{uuid}"|&, "select": "{uuid}"|
		s|"driver": {|"next": {"runtimes": ["fake-runtime"]},\n  &|' \
		$node/vendors.d/fakegpu.json
	next=$node/fake-runtime
}

# names NAME CARD: a container whose environment names that card.
names() {
	bundle $1 $1 '' '' sleep 100000
	sed -i "s|\"env\": \[|&\"FAKEGPU_VISIBLE_DEVICES=$(cat \
		/sys/class/fakegpu/fakegpu$2/uuid)\", |" $node/bundles/$1/config.json
	runtime run $1
}

# role_of WATCH
role_of() {
	kt watch $1 role
}

# watched_as WATCH ROLE
watched_as() {
	[ "$(role_of $1)" = $2 ]
}

lending_refused_for() {
	gpusharectl status -o json | tr -d '\n' | grep "\"why_not\": *\"$1\""
}

cri=containerd
holding=uid-main/main
must "the node comes up" node_up
vendor_runtime
agent_config '"exempt": ["default/mon*/*"], "exempt_cgroups": ["/watchers*"]'
must "the agent starts" agent_start
must "a container is given a card" holder main 0
main=$(pid_of main)

# ---- An impostor. Until the kubelet is asked who holds what, nobody knows which of the two it is:
# the card stays with both.
must "an impostor: the card is borrowed" borrow tenant
must "an impostor: a container of another pod names the card" names impostor 0
check "an impostor: the borrower had to go before it started" gone tenant
remove tenant
check "an impostor: the agent takes it for one who holds the card" \
	wait_for "$long" lending_refused_for "two pods say that they hold its cards"
check "an impostor: an alert" wait_for "$long" \
	logged '"error".*"two pods say that they hold a card"'
sleep 3
is "an impostor: the card is not lent" "$(kt dump | grep -c ' state=lent')" 0
check "an impostor: the user goes on" touch_card 1
is "an impostor: told once" "$(told 'two pods say that they hold a card')" 1
remove impostor
must "an impostor has gone: the card is borrowed" borrow tenant2
check "an impostor has gone: the user is back" touch_card 2
check "an impostor has gone: with no memory left on the card" served_clean 2 0
remove tenant2

# ---- Monitors.
bundle monitor monitor 0 '' sleep 100000
must "a monitor starts" runtime run monitor
monitor=$(pid_of monitor)
check "a monitor is exempt" wait_for "$long" watched_as monitor exempt
inside $monitor fgpu $(yes "ping /dev/fakegpu0 , wait 100 ," | head -n 4000) wait >/dev/null 2>&1 &
must "a monitor calls all the time: the card is lent all the same" is_lent $holding
must "a monitor calls all the time: and borrowed" borrow tenant3
sleep 2
is "a monitor calls all the time: that is no return" "$(kt state $holding state)" lent
check_fails "a monitor calls all the time: the borrower stays" gone tenant3
check "a monitor is not held" inside $monitor fgpu echo /dev/fakegpu0 3
is "a monitor is served beside the borrower" \
	"$(echo_of 3 | grep -c " mem=$mib64 ret=0")" 1
check "a monitor calls all the time: the user is back" touch_card 4
check "a monitor calls all the time: with no memory left on the card" served_clean 4 0
check "a monitor calls all the time: the borrower is dead" gone tenant3
remove tenant3
quiet_user

must "a borrower called like the monitor: the card is lent" is_lent $holding
check "a borrower called like the monitor: it starts" spot monkey 0 main \
	fgpu alloc /dev/fakegpu0 $mib64 , hold
check "a borrower called like the monitor: the operator's pattern would exempt it" \
	sh -c 'gpusharectl status -o json | grep "\"name\": *\"default/monkey/monkey\""'
check "a borrower called like the monitor: it has memory" wait_for "$long" uses 0 $mib64
is "a borrower called like the monitor: a borrower it is" "$(role_of monkey)" borrower
check "a borrower called like the monitor: the user is back" touch_card 5
check "a borrower called like the monitor: with no memory left on the card" served_clean 5 0
check "a borrower called like the monitor: it is dead" gone monkey
remove monkey
remove monitor

# A program of the user's is no monitor, whatever it is called.
must "a user's program called like a monitor: a borrower" borrow tenant4
cp /vm/bin/fgpu /tmp/monitor
check "a user's program called like a monitor" inside $main /tmp/monitor echo /dev/fakegpu0 6
check "a user's program called like a monitor: it is the user" served_clean 6 0
remove tenant4

# ---- Of the host.
mkdir /sys/fs/cgroup/watchers
sh -c 'echo $$ >/sys/fs/cgroup/watchers/cgroup.procs
	exec fgpu open /dev/fakegpu0 , until '$node/left >/dev/null &
watcher=$!
must "a watcher of the host: the card is lent all the same" borrow tenant5
sleep 2
check_fails "a watcher of the host: the borrower stays" gone tenant5
: >$node/left
wait $watcher
check "a watcher of the host: the user is back" touch_card 7
check "a watcher of the host: with no memory left on the card" served_clean 7 0
remove tenant5
rmdir /sys/fs/cgroup/watchers
plan
