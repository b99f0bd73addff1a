# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, again and again with runc, which takes three times as long as crun.
# runs: deep
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 3600
# shellcheck disable=SC2034
ROUNDS=${ROUNDS:-10}
lend_after=50ms load_period=100ms
echo 1 >/sys/kernel/rcu_expedited
. /vm/suite/agent-borrowers.sh
