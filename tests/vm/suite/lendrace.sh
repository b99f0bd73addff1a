# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# LEND against touches at the same moment: never lent over a touch. Hundreds of rounds: some with
# grace periods as they are, when a LEND takes long and most touches come into the middle of it, and
# more with quick ones. ROUNDS and QUICK_ROUNDS are how many.
# seconds: 600
. /vm/suite/lib.sh
. /vm/suite/play.inc
. /vm/suite/lendrace.inc

stage || exit 1
echo 0 >/sys/kernel/rcu_expedited
rounds "never lent over a touch" "${ROUNDS:-150}" inside after
echo 1 >/sys/kernel/rcu_expedited
rounds "never lent over a touch, with quick grace periods" "${QUICK_ROUNDS:-600}" \
	before inside after held silent
strike
check "all can be unloaded" test ! -e /sys/module/fakegpu
plan
