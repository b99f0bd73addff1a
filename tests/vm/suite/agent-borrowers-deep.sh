# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, again and again on the kernels where agent-borrowers-rounds.sh
# does not: crun, cgroup v2. README.md tells what else is a part of the thousand.
# runs: deep
# kernels: 5.10 6.12 7.3
# boot: --agent --mem 768
# seconds: 3600
# shellcheck disable=SC2034
ROUNDS=${ROUNDS:-20}
next=/usr/bin/crun lend_after=50ms load_period=100ms
# Half of what a container takes is grace periods.
echo 1 >/sys/kernel/rcu_expedited
. /vm/suite/agent-borrowers.sh
