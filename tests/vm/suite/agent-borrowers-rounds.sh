# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers of every kind, again and again. crun makes them, as runc takes three times as long
# where processors are emulated; one does it, as two wait for each other there.
# kernels: 6.1
# boot: --agent --mem 768 --smp 1
# seconds: 1500
# shellcheck disable=SC2034
ROUNDS=${ROUNDS:-20}
next=/usr/bin/crun lend_after=50ms load_period=100ms
# Half of what a container takes is grace periods.
echo 1 >/sys/kernel/rcu_expedited
. /vm/suite/agent-borrowers.sh
