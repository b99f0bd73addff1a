# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# What each capability is for that the unit gives the agent, and that the agent keeps: without it
# something fails that works with it. Cgroups are of version 1, which have no cgroup.kill.
# kernels: 6.1
# boot: --agent --mem 768 --cgroup v1
# seconds: 1200
# shellcheck disable=SC2034,SC2046,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# As in packaging/systemd/gpushared.service.
unit="net_admin sys_ptrace kill setpcap dac_read_search"
next=/usr/bin/crun
stranger_told="a process that belongs to nobody known uses a card"

# all_but NAME: prints the unit's, without that one.
all_but() {
	local one keep=''
	for one in $unit; do
		[ $one = "$1" ] || keep=$keep${keep:+,}$one
	done
	echo $keep
}

# agent_without UNIT-HAS-NOT [AGENT-KEEPS-NOT]: what becomes the agent, without that capability.
# $limit: a command that executes it.
agent_without() {
	[ -z "${2:-}" ] || export LESS_CAP=cap_$2 LD_PRELOAD=/usr/lib/liblesscaps.so
	exec ${limit:-} onlycaps $(all_but "$1") gpushared
}

# start ...: as agent_without.
start() {
	(agent_without "$@") >>$node/agent.out 2>&1 &
	agent=$!
	wait_for $long gpusharectl status
}

# no_start TEXT NAME ...: it ends with that text; NAME is the capability, then as agent_without.
no_start() {
	local text=$1 name=$2
	shift 2
	(limit="timeout $long" && agent_without "$@") >$node/less.out 2>&1
	is "without $name it does not start" $? 1
	check "without $name: that is what it lacks" grep "$text" $node/less.out
}

# has NAME: is the capability in the agent's effective set?
has() {
	local number
	case $1 in
	kill) number=5 ;;
	net_admin) number=12 ;;
	sys_ptrace) number=19 ;;
	esac
	[ $((0x$(sed -n 's/^CapEff:\t//p' /proc/$agent/status) >> number & 1)) = 1 ]
}

# watched NAME [SECONDS]: does the module watch the container, after so long at most?
watched() {
	wait_for "${2:-$long}" eval '[ -n "$(kt watch '$1' role)" ]'
}

# The other card is used by a container that was made behind our back, of a user of its own.
stranger() {
	bundle stranger stranger 1 '' fgpu open /dev/fakegpu1 , hold
	sed -i 's/"uid": 0/"uid": 1000/' $node/bundles/stranger/config.json
	(cd $node/bundles/stranger && exec $next run --no-pivot -d stranger) \
		</dev/null >/dev/null 2>&1
}

stranger_gone() {
	$next delete -f stranger
}

# eventually COMMAND...: as wait_for, for what the agent sees by a look at all open files, which it
# takes once a minute where that costs much.
eventually() {
	local i=0
	until "$@" >/dev/null 2>&1; do
		[ $i -lt 75 ] || return 1
		i=$((i + 1))
		sleep 2
	done
}

# other_holder: a container of another user has the other card.
other_holder() {
	bundle other other 1 '"gpushare.k8s.io/lend": "true"' sleep 100000
	sed -i 's/"uid": 0/"uid": 1000/' $node/bundles/other/config.json
	runtime run other
}

other_is() {
	state_is other $1
}

refused_for() {
	gpusharectl status -o json | tr -d '\n' | grep "\"why_not\": *\"$1\""
}

# A borrower of a user of its own; the kernel module does not kill here, so it is the agent's.
tenant() {
	is_lent main || return 1
	spot_bundle $1 0 main fgpu alloc /dev/fakegpu0 $mib64 , hold &&
		sed -i 's/"uid": 0/"uid": 1000/' $node/bundles/$1/config.json &&
		runtime run $1 && wait_for "$long" uses 0 $mib64
}

must "the node comes up" node_up
agent_config '"kernel_kill": false, "hold_max": "5s"'

# ---- With all of them.
must "with all: the agent starts" start ''
for one in net_admin sys_ptrace kill; do
	check "with all: it keeps $one" has $one
done
must "with all: a container is given a card" holder main 0
main=$(pid_of main)
check "with all: it is watched" watched main
must "with all: so is another one, of another user, with the other card" other_holder
check "with all: it is watched, too" watched other
must "with all: that card is lent" wait_for "$long" other_is lent
must "with all: somebody unknown uses it" stranger
check "with all: which ends that" eventually refused_for "$stranger_told"
stranger_gone
check "with all: he goes" eventually other_is lent
must "with all: a borrower of another user" tenant tenant
check "with all: the user is back" touch_card 1
check "with all: the borrower is dead" wait_for "$long" gone tenant
remove tenant

# ---- Of the unit's.
agent_kill
no_start 'dropping cap_.* from the bounding set: not permitted' setpcap setpcap

must "without dac_read_search it starts" start dac_read_search
must "without dac_read_search: the other card is lent" wait_for "$long" other_is lent
must "without dac_read_search: somebody unknown uses it" stranger
sleep 65
check_fails "without dac_read_search he is not seen" refused_for "$stranger_told"
check "without dac_read_search the card stays lent" other_is lent
stranger_gone

# ---- Of those that it keeps.
agent_kill
must "without kill it starts" start '' kill
check_fails "without kill: it has it not" has kill
must "without kill: a borrower of another user" tenant deaf
check "without kill: the user goes on after hold_max" touch_card 2
check_fails "without kill the borrower is not dead" gone deaf
remove deaf

agent_kill
must "without sys_ptrace it starts" start '' sys_ptrace
check_fails "without sys_ptrace: it has it not" has sys_ptrace
remove other
must "without sys_ptrace: a container of another user is given a card" other_holder
check_fails "without sys_ptrace it is not watched" watched other 5

agent_kill
no_start 'needs CAP_NET_ADMIN' net_admin '' net_admin
plan
