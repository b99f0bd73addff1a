# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Pods whose containers share a PID namespace: whose touch it is, the cgroup tells.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 600
# shellcheck disable=SC2034,SC2046,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

# sandbox NAME: a pod's first container, which has the namespace; its pid in $sandbox. The pod's
# containers are made while $pid_ns names it.
sandbox() {
	pid_ns=''
	bundle $1 $1 '' '' sleep 100000
	runtime run $1 || return 1
	sandbox=$(pid_of $1)
	pid_ns=/proc/$sandbox/ns/pid
}

# call CONTAINER DEVICE TOKEN: from a process of that container.
call() {
	gpushare-runtime exec $1 fgpu echo /dev/$2 $3
}

# by_cgroup CONTAINER: is its watch about that cgroup, and about no namespace?
by_cgroup() {
	[ "$(kt watch $1 pidns) $(kt watch $1 cgroup)" = "0 $(stat -c %i /sys/fs/cgroup/gs/$1)" ]
}

# touches HOLDING: how often its members have touched a card.
touches() {
	kt state $1 touches
}

# more_touches NAME HOLDING COMMAND...: that is a touch.
more_touches() {
	local name=$1 of=$2 before
	before=$(touches $2)
	shift 2
	check "$name" "$@"
	[ "$(touches $of)" -gt $before ]
	is "$name: it counts for $of" $? 0
}

# same_touches NAME HOLDING COMMAND...: that is none.
same_touches() {
	local name=$1 of=$2 before
	before=$(touches $2)
	shift 2
	check "$name" "$@"
	is "$name: it does not count for $of" "$(touches $of)" $before
}

# stays_lent NAME: so it does, and the borrower `tenant` runs on.
stays_lent() {
	is "$1: the card stays lent" "$(kt state $holding state)" lent
	check_fails "$1: and borrowed" gone tenant
}

# returned NAME TOKEN: that call has taken the card back.
returned() {
	check "$1: it is served once, with no memory left on the card" served_clean $2 0
	check "$1: the borrower is dead" wait_for "$long" gone tenant
	remove tenant
}

# below CONTAINER COMMAND...: in a cgroup below the container's, and in its namespace.
below() {
	local name=$1
	shift
	mkdir -p /sys/fs/cgroup/gs/$name/below
	sh -c "echo \$\$ >/sys/fs/cgroup/gs/$name/below/cgroup.procs
		exec nsenter -t $sandbox -p $*"
}

cri=containerd
holding=uid-pod/main
must "the node comes up" node_up
must "the agent starts" agent_start
must "a pod's sandbox" sandbox pod
must "main is given a card" holder main 0 pod/uid-pod/main
bundle side pod/uid-pod/side '' '"gpushare.k8s.io/container-devices-from.side": "_/_/main"' \
	sleep 100000
must "side is given main's card" runtime run side
must "other is given the other card" holder other 1 pod/uid-pod/other
for name in main side other; do
	check "$name is watched by its cgroup" wait_for "$long" by_cgroup $name
done
is "they do share the namespace" "$(readlink /proc/$(pid_of main)/ns/pid)" \
	"$(readlink /proc/$sandbox/ns/pid)"

# ---- Whose touch it is. All of them use the control node.
more_touches "a call of main" $holding call main fakegpu0 1
more_touches "a call of side, which is a member" $holding call side fakegpu0 2
same_touches "a call of other, which is not" $holding call other fakegpuctl 3
more_touches "a call of other" uid-pod/other call other fakegpuctl 4
same_touches "a call from the namespace, of no container" $holding \
	inside $sandbox fgpu echo /dev/fakegpu0 5
more_touches "a call from a cgroup below main's" $holding below main fgpu echo /dev/fakegpu0 6

# Whose cards they are, and what borrows them, need not be alike.
share=$pid_ns
pid_ns=''
# spot_of_main: a spot container with memory on card 0.
spot_of_main() {
	is_lent $holding && spot_bundle tenant 0 pod/main fgpu alloc /dev/fakegpu0 $mib64 , hold &&
		runtime run tenant && wait_for "$long" uses 0 $mib64
}

must "a call of other: the card is borrowed" spot_of_main
check "a call of other" call other fakegpuctl 10
stays_lent "a call of other"
check "a call of no container" inside $sandbox fgpu echo /dev/fakegpu0 11
is "a call of no container: it is not held" "$(echo_of 11 | grep -c " mem=$mib64 ret=0")" 1
stays_lent "a call of no container"
check "a call of side" call side fakegpu0 12
returned "a call of side" 12

must "a call of main: the card is borrowed" spot_of_main
check "a call of main" call main fakegpu0 13
returned "a call of main" 13

must "a call from below: the card is borrowed" spot_of_main
check "a call from below" below main fgpu echo /dev/fakegpu0 14
returned "a call from below" 14
rmdir /sys/fs/cgroup/gs/main/below

# ---- A restart under the same name: another cgroup.
must "restarted: the card is lent" is_lent $holding
agent_kill
pid_ns=$share
kill -9 "$(pid_of side)"
wait_for "$long" gone side
gpushare-runtime delete side
must "restarted, with no agent there" runtime run side
pid_ns=''
must "restarted: the agent starts" agent_start
# What it did meanwhile nobody saw: the card comes back, and is lent once more.
check "restarted: by its new cgroup" wait_for "$long" by_cgroup side
must "restarted: the card is borrowed" spot_of_main
check "restarted: a call of side" call side fakegpu0 15
returned "restarted: a call of side" 15

# ---- A spot pod of that kind.
must "a spot pod that shares a namespace: its sandbox" sandbox spot
bundle beside spot/uid-spot/beside '' '' sleep 100000
must "a spot pod that shares a namespace: a sidecar" runtime run beside
must "a spot pod that shares a namespace: a borrower" spot_of_main
check "a spot pod that shares a namespace: the borrower is watched by its cgroup" by_cgroup tenant
check "a spot pod that shares a namespace: the user is back" call main fakegpu0 16
returned "a spot pod that shares a namespace" 16
check_fails "a spot pod that shares a namespace: its sandbox lives" gone spot
check_fails "a spot pod that shares a namespace: its sidecar lives" gone beside
plan
