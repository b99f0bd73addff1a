# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What agent.sh shows, where cgroups are of version 1: borrowers are killed process by process
# there, and it is the devices controller that systemd writes rules to.
# kernels: 5.10 6.1
# boot: --cgroup v1
# seconds: 600
source /vm/suite/lib.sh
source /vm/suite/agent.inc

is "cgroups are version 1" "$(node_cgroups)" v1
check "the agent is up, and looks often" agent_config
containerd_rounds

rm -r /etc/gpushare
check "the agent takes its own configuration again" systemctl restart gpushared
plan
