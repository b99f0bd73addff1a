# shellcheck shell=bash disable=SC2154 # of agent.inc
# SPDX-License-Identifier: Apache-2.0
# The promise on a whole node: a card whose user is away is lent to a spot container, and is his
# before his first call reaches the driver, which comes from a container inside docker-in-docker.
# With containerd and runc, systemd's cgroup driver and cgroup v2, then with podman and crun. At
# each step systemd reloads, and so writes anew what it knows of devices.
# runs: short
# seconds: 900
source /vm/suite/lib.sh
source /vm/suite/agent.inc

is "cgroups are version 2" "$(node_cgroups)" v2
check "the agent is up, and looks often" agent_config

containerd_rounds

# podman: who a container is, it says itself.
pod=team/dev
check "the agent is up, and believes annotations" \
	agent_config '"cri": "none", "next": ["/usr/bin/crun"],'
check "podman and crun start a container with a card" podman_holder 2s
check "... by crun" test -d "/run/crun/$(podman inspect --format '{{.Id}}' main)"
check "... and one beside it, which was given none" podman_run side \
	--annotation gpushare.k8s.io/identity=$pod/side \
	--annotation gpushare.k8s.io/container-devices-from.side=$pod/main

by_podman
side() {
	podman_exec side "$@"
}
rounds "podman" 1 side main
podman_remove main side

rm -r /etc/gpushare
check "the agent takes its own configuration again" systemctl restart gpushared
plan
