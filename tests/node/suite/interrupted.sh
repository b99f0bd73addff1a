# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# A card is lent, and what stands around it is restarted: containerd, the agent, systemd itself.
# Nothing is lost by it. Then its user comes back while containerd, or the agent, is not there.
# seconds: 900
source /vm/suite/lib.sh
source /vm/suite/agent.inc
pod=team/dev
# For nobody needs containerd here: whoever comes back does so by himself.
user() {
	nsenter -p -t "$user" "$@"
}

spot_run() { # GRANT
	cri_spot "$1" /bin/fgpu alloc /dev/fakegpu0 512M , hold /dev/fakegpu0
}

# lend_it SAY: its user goes away, and a spot container has his card.
lend_it() {
	check "$1: he is away, and the card is lent" wait_for $long state_is 0 lent
	grant=$(gpusharectl grant --spot --card "$(card 0)")
	check "$1: a spot container runs, with a grant" spot_run "$grant"
	spot=$(container_pid spot/job job)
	check "$1: it has 512 MiB of the card's memory" wait_for $long uses 0 $mib512
	echo 1 >/sys/kernel/debug/fakegpu/clear
	held=$(held)
}

active() {
	gpusharectl grant --list | grep "^${grant:0:6}.* active "
}

# as_it_was SAY: nobody noticed.
as_it_was() {
	check "$1: the agent answers" wait_for $long gpusharectl status
	# A new agent answers before it knows the cards, and renews leases when it does.
	check "$1: the card is lent still" wait_for $long state_is 0 lent
	check "$1: the spot container runs, with its memory" eval 'kill -0 $spot && uses 0 $mib512'
	check "$1: the card's file is there" test -s "/run/gpushare/lent/$(card 0)"
	check "$1: its grant is in force" wait_for $long active
	is "$1: nobody was held" $(($(held) - held)) 0
}

# back SAY TOKEN: the user comes back.
back() {
	check "$1: he is back, and his call is served" user fgpu echo /dev/fakegpu0 "$2"
	is "$1: he was held" $(($(held) - held)) 1
	check "$1: ... until the spot container's memory was free" served_clean 0 "$2"
	check "$1: the spot container is gone" wait_for $long eval '! kill -0 $spot'
}

# over SAY: and all is as if nothing had been amiss.
over() {
	check "$1: the grant is revoked" wait_for $long revoked "$grant"
	check "$1: the spot pod is removed" pod_remove spot/job
	check "$1: with its grant it does not start again" refused_spot "$grant"
	pod_remove spot/job
	check "$1: containerd starts what uses the card" container_exec $pod main fgpu ping \
		/dev/fakegpu0
}

main_pid() {
	systemctl show -p MainPID --value gpushared
}

# another PID: systemd has started another agent.
another() {
	[[ $(main_pid) != "$1" ]] && systemctl --quiet is-active gpushared
}

check "the agent is up, and looks often" agent_config
check "a pod with a card runs" pod_run $pod \
	--annotation gpushare.k8s.io/lend=true --annotation gpushare.k8s.io/lend-after=2s
check "... its container" container_run $pod main --device /dev/fakegpu0
user=$(container_pid $pod main)
check "its user uses the card" user fgpu echo /dev/fakegpu0 1

lend_it "first"
check "containerd restarts" systemctl restart containerd
check "... and answers" wait_for $long cri pods -q
as_it_was "containerd restarted"
check "... and knows the containers" container_exec $pod main /bin/true
check "... the spot container too" container_exec spot/job job /bin/fgpu ping /dev/fakegpu0
check "the agent restarts" systemctl restart gpushared
as_it_was "the agent restarted"
agent=$(main_pid)
kill -KILL "$agent"
check "killed, it comes back" wait_for $long another "$agent"
as_it_was "the agent killed"
check "systemd starts itself anew" systemctl daemon-reexec
as_it_was "systemd anew"
# Longer than a lease.
sleep 16
as_it_was "a lease later"
check "containerd ends" systemctl stop containerd
back "without containerd" 4001
check "containerd starts" systemctl start containerd
check "... and answers" wait_for $long cri pods -q
over "with containerd"

lend_it "again"
check "the agent ends" systemctl stop gpushared
back "without the agent" 4002
check "the agent starts" systemctl start gpushared
check "... and answers" wait_for $long gpusharectl status
over "with the agent"
check "the card is lent a third time" wait_for $long state_is 0 lent
is "no unit has failed" "$(systemctl is-system-running)" running
check "the pod ends" pod_remove $pod
rm -r /etc/gpushare
check "the agent takes its own configuration again" systemctl restart gpushared
plan
