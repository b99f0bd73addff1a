# shellcheck shell=bash disable=SC2034,SC2086,SC2154 # of agent.inc
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, again and again, on a whole node: ROUNDS (8) with containerd and
# runc, and as many with podman and crun.
# runs: deep
# seconds: 7200
source /vm/suite/lib.sh
source /vm/suite/agent.inc
source /vm/suite/borrowers.inc
ROUNDS=${ROUNDS:-8}

some_rounds() { # NAME N USER
	local round
	for ((round = 1; round <= ROUNDS; round++)); do
		kinds "$1 $round:" "$2" "$3"
	done
}

# ---- containerd and runc, with systemd's cgroup driver.
pod=team/dev
check "the agent is up, and looks often" borrowers_config
check "a pod with a card runs" pod_run $pod --annotation gpushare.k8s.io/lend=true \
	--annotation gpushare.k8s.io/lend-after=1s
check "... its main container" container_run $pod main --device /dev/fakegpu0
by_containerd
some_rounds containerd 0 main
check "the pod ends" pod_remove $pod

# ---- podman and crun.
check "the agent is up, and believes annotations" \
	borrowers_config '"cri": "none", "next": ["/usr/bin/crun"],'
check "podman and crun start a container with a card" podman_holder 1s
by_podman --security-opt seccomp=unconfined
some_rounds podman 1 main
podman_remove main

is "nothing ended in quarantine" "$(kt status quarantine)" 0
is "no user was let go at hold_max" "$(kt status hold_max)" 0
rm -r /etc/gpushare
check "the agent takes its own configuration again" systemctl restart gpushared
plan
