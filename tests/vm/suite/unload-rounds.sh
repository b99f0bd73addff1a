# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Loads and unloads the module, ROUNDS times (50), while several processes use the card as hard as
# they can: a member's, a host's, and in every other round a borrower's, with its lender held.
# seconds: 900
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc
# shellcheck source=tests/vm/suite/calls.inc
. /vm/suite/calls.inc

rounds=${ROUNDS:-50}
member='' quiet='' other='' # containers
agent=''

# Unhooking waits for tasks that were preempted in the kernel, which the hammers keep from running:
# minutes where everything is checked, and who unhooks is a hung task then. (That nobody else is one
# shows unhook-slow.)
hung=/proc/sys/kernel/hung_task_timeout_secs
hung_before=$(cat $hung 2>/dev/null)
[ -z "$hung_before" ] || echo 0 >$hung

# One round: the hammers are at work all the while. $1: its number. Prints what is wrong.
round() {
	local held=''
	insmod /vm/modules/gpushare.ko && kt hook /dev/fakegpu0 /dev/fakegpu1 >/dev/null &&
		kt holding h /dev/fakegpu0 lend_after=20 && kt member m h "pid=$member" || return 1
	if [ $(($1 % 2)) = 1 ]; then
		agent_up
		kt holding q /dev/fakegpu1 lend_after=20 hold_max=60000 &&
			kt member q q "pid=$quiet" && lent q && container other &&
			kt borrower b q "pid=$other" || return 1
		rm -f /tmp/borrowed
		inside "$other" hammer /dev/fakegpu1 procs=2 pause=1000 until=/tmp/borrowed \
			>/dev/null 2>&1 &
		inside "$quiet" fgpu echo /dev/fakegpu1 "$1" >/tmp/quiet 2>&1 &
		held=$!
		# Held, unless the borrower was slow to come.
		kt wait q returning 5000 >/dev/null || kt state q
	fi
	# Somewhere in the round of others, and never at the same place.
	usleep $(($1 * 7919 % 50000))
	[ "$(kt watch m touches)" -gt 0 ] || echo "nothing was counted"
	# While the agent reads a dump the module is in use.
	wait_for 5 rmmod gpushare || rmmod gpushare
	touch /tmp/borrowed
	[ -z "$held" ] || wait $held || cat /tmp/quiet
	[ -z "$held" ] || kill -9 "$agent"
	# Its borrower was killed, as nobody would send it away.
	end "$other"
}

rm -f /tmp/stop
insmod /vm/modules/fakegpu.ko log_size=1000
container member
container quiet
inside "$member" hammer /dev/fakegpu0 procs=3 pause=1000 until=/tmp/stop >/tmp/member 2>&1 &
hammer1=$!
hammer /dev/fakegpu0 procs=1 pause=1000 until=/tmp/stop >/tmp/host 2>&1 &
hammer2=$!
check "the card is in use" wait_for 20 grep -q working /tmp/member /tmp/host

n=0
wrong=''
while [ $n -lt "$rounds" ] && [ -z "$wrong" ]; do
	n=$((n + 1))
	[ $((n % 100)) != 0 ] || note "round $n of $rounds"
	wrong=$(round $n 2>&1) || wrong="failed: $wrong"
done
is "the module is loaded and unloaded $rounds times" "$n $wrong" "$rounds "
is "nothing is hooked" "$(hooked_any)" ""
touch /tmp/stop
wait $hammer1
status1=$?
wait $hammer2
status2=$?
is "no call of the member's failed, or was served twice" "$status1 $(tail -n 1 /tmp/member)" \
	"0 $(tail -n 1 /tmp/member | sed 's/failed=.*/failed=0 errno=0 wrong=0/')"
is "nor of the host's" "$status2 $(tail -n 1 /tmp/host)" \
	"0 $(tail -n 1 /tmp/host | sed 's/failed=.*/failed=0 errno=0 wrong=0/')"
made=$(cat /tmp/member /tmp/host | sed -n 's/.*ioctls=\([0-9]*\).*/\1/p' |
	awk '{ n += $1 } END { print n }')
served=$(sed -n 's/^dev=fakegpu0 .* WORK_ECHO=\([0-9]*\) .*/\1/p' /sys/kernel/debug/fakegpu/stats)
is "the driver has served each of them" "$served" "$made"
end "$member" "$quiet"
check "the driver is unloaded" wait_for 5 rmmod fakegpu
[ -z "$hung_before" ] || echo "$hung_before" >$hung
plan
