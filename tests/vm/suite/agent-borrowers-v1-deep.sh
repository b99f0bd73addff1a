# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, again and again with crun, where cgroups are of version 1: no
# cgroup.kill, and a freezer that SIGKILL does not pass.
# runs: deep
# kernels: 5.10
# boot: --agent --mem 768 --cgroup v1
# seconds: 3600
# shellcheck disable=SC2034
ROUNDS=${ROUNDS:-20}
next=/usr/bin/crun lend_after=50ms load_period=100ms
echo 1 >/sys/kernel/rcu_expedited
. /vm/suite/agent-borrowers.sh
