# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# A million rounds of LEND against touches at the same moment: twenty minutes to two hours. ROUNDS
# is how many.
# runs: deep
# kernels: 6.1
# boot: --append mitigations=off
# seconds: 14400
. /vm/suite/lib.sh
. /vm/suite/play.inc
. /vm/suite/lendrace.inc

# The card's log of so many calls is of no use.
stage log_size=1024 || exit 1
echo 0 >/sys/kernel/rcu_expedited
rounds "never lent over a touch" "$((${ROUNDS:-1000000} / 500))" before inside after held silent
echo 1 >/sys/kernel/rcu_expedited
rounds "never lent over a touch, with quick grace periods" "${ROUNDS:-1000000}" \
	before inside after held woke silent
strike
check "all can be unloaded" test ! -e /sys/module/fakegpu
plan
