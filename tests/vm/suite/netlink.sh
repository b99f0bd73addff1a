# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Who may speak to the module, what becomes of wrong requests, how much there may be of everything.
# runs: short
# seconds: 240
# shellcheck disable=SC2086,SC2154 # nodes is a list; container sets variables
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc

# ${FUZZ:=N}: requests of the fuzzer; netlink-deep.sh has more.
: "${FUZZ:=4000}" "${SEED:=1}" "${HOOKS:=2}"

# ---- Parameters.

parameters="lend_after_ms hold_max_ms settle_ms"
modinfo /vm/modules/gpushare.ko >/tmp/modinfo
for parameter in $parameters; do
	check "modinfo says what $parameter is" grep -q "^parm: *$parameter:.*default" /tmp/modinfo
done
check "modinfo says the version" grep -qE '^version: +[0-9]' /tmp/modinfo

insmod /vm/modules/fakegpu.ko cards=64
insmod /vm/modules/gpushare.ko lend_after_ms=1234 hold_max_ms=5678 settle_ms=91
is "parameters at load take effect" \
	"$(kt status lend_after) $(kt status hold_max_ms) $(kt status settle)" "1234 5678 91"
kt holding p 250:1
is "a holding without times of its own gets them" \
	"$(kt state p lend_after) $(kt state p hold_max) $(kt state p settle)" "1234 5678 91"
kt holding p 250:1 lend_after=50
is "and keeps what is given" "$(kt state p lend_after) $(kt state p hold_max)" "50 5678"
echo 4321 >/sys/module/gpushare/parameters/lend_after_ms
kt holding q 250:1
is "changed later, they are a new holding's, and no old one's" \
	"$(kt state q lend_after) $(kt state p lend_after)" "4321 50"
rmmod gpushare

for wrong in lend_after_ms=abc hold_max_ms=-1 hold_max_ms=4294967296 settle_ms= settle_ms=1,2; do
	insmod /vm/modules/gpushare.ko $wrong 2>/dev/null && break
done
check_fails "what is no number: not loaded" test -e /sys/module/gpushare

# What is a number and makes no sense is brought to what a holding could be given.
in_bounds() {
	local nodes=/dev/fakegpu0
	insmod /vm/modules/gpushare.ko lend_after_ms=$1 hold_max_ms=$1 settle_ms=$1 || return 1
	kt hook $nodes && kt holding p $nodes || return 1
	kt state p
	[ "$(kt state p lend_after)" -ge 1 ] && [ "$(kt state p lend_after)" -le 604800000 ] &&
		[ "$(kt state p hold_max)" -ge 1 ] && [ "$(kt state p hold_max)" -le 600000 ] &&
		[ "$(kt state p settle)" -le 60000 ] || return 1
	# Changed behind its back, also.
	echo $((4294967295 - $1)) >/sys/module/gpushare/parameters/hold_max_ms
	kt holding q $nodes && [ "$(kt state q hold_max)" -ge 1 ] &&
		[ "$(kt state q hold_max)" -le 600000 ] || return 1
	kt holding-del p q && whole_story && rmmod gpushare
}
check "parameters of 0 are harmless" in_bounds 0
check "parameters of 4294967295 are harmless" in_bounds 4294967295

# ---- Senders.

insmod /vm/modules/gpushare.ko
kt hook /dev/fakegpuctl /dev/fakegpu0 >/dev/null
results nlfrom /dev/fakegpu1 /dev/fakegpuctl /dev/fakegpu0
rmmod gpushare

# A dump that does not fit into its reader's buffer waits there, with the module in use.

# asks_full WHO: one such reader, in the background; its pid is $reader.
asks_full() {
	nlfrom full "$1" >/tmp/full 2>&1 &
	reader=$!
	wait_for 10 grep -q asked /tmp/full
}

insmod /vm/modules/gpushare.ko
kt hook $nodes >/dev/null
asks_full root
check_fails "root's dump that is not read keeps the module" rmmod gpushare
kill -9 $reader
check "not longer than it lives" wait_for 5 rmmod gpushare
insmod /vm/modules/gpushare.ko
kt hook $nodes >/dev/null
asks_full nobody
check "an unprivileged user's keeps nothing" rmmod gpushare
kill -9 $reader

# ---- Requests.

insmod /vm/modules/gpushare.ko
container someone
results nlbad /dev/fakegpu1 $someone
end $someone
rmmod gpushare

# ---- How much.

insmod /vm/modules/gpushare.ko
results dumpcheck limits /dev
rmmod gpushare
insmod /vm/modules/gpushare.ko
results dumpcheck names /dev/fakegpu0
rmmod gpushare
insmod /vm/modules/gpushare.ko
results dumpcheck large
rmmod gpushare
insmod /vm/modules/gpushare.ko
results dumpcheck moving 3
if [ "${WATCHES:-}" ]; then
	rmmod gpushare
	insmod /vm/modules/gpushare.ko
	results dumpcheck watches
fi
rmmod gpushare

# ---- Nonsense.

insmod /vm/modules/gpushare.ko
kt hook $nodes >/dev/null
story "the whole story before"
results nlfuzz requests=$FUZZ seed=$SEED hooks=$HOOKS $nodes
kt hook $nodes >/dev/null
story "the whole story after"
kt status
check "the module unloads" rmmod gpushare
rmmod fakegpu

plan
