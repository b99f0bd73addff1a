# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, 200 rounds on each of these kernels: crun, cgroup v2. README.md
# tells of how many others that are a part.
# runs: deep
# kernels: 5.10 6.1 6.12 7.3
# boot: --agent --mem 768
# seconds: 14400
# shellcheck disable=SC2034
ROUNDS=${ROUNDS:-200}
next=/usr/bin/crun lend_after=50ms load_period=100ms
# Half of what a container takes is grace periods.
echo 1 >/sys/kernel/rcu_expedited
. /vm/suite/agent-borrowers.sh
