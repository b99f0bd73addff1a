# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# An unhook that takes very long: it waits for a grace period of RCU-tasks, which a pod whose
# threads are always ready to run, and hardly may, makes last for minutes. Nobody's return waits for
# that.
# kernels: 6.1
# seconds: 240
# shellcheck source=tests/vm/suite/lib.sh
. /vm/suite/lib.sh
# shellcheck source=tests/vm/suite/containers.inc
. /vm/suite/containers.inc

spot=/sys/fs/cgroup/spot
member='' borrower='' # set by container

cards
agent_up lend release
check "a holding of one node, while another node is hooked too" kt holding h /dev/fakegpu0 \
	lend_after=300 hold_max=60000
container member
container borrower
kt member m h pid="$member"
kt wait h lent 20000 >/dev/null
check "it is lent" kt borrower b h pid="$borrower" kill

mkdir $spot
echo "1000 100000" >$spot/cpu.max
sh -c "echo \$\$ >$spot/cgroup.procs; exec spin 500" >/tmp/spin 2>&1 &
wait_for 60 grep -q spinning /tmp/spin
# Who waits for the grace period is a hung task to the kernel, as with any user of ftrace. Those of
# ours who wait for him are none.
hung_after=$(cat /proc/sys/kernel/hung_task_timeout_secs)
echo -1 >/proc/sys/kernel/hung_task_warnings
expect_kernel "task kt:.* blocked for more than"
dmesg -c >/dev/null
echo 1 >/proc/sys/kernel/hung_task_timeout_secs
# hung WHO: the kernel has told of such a task.
hung() {
	dmesg | grep -q "INFO: task $1:.* blocked for more than"
}
(
	kt unhook /dev/fakegpu-uvm
	: >/tmp/unhooked
) &
sleep 2
check "the unhook has begun, and is not over" test ! -e /tmp/unhooked
check "a user comes back" inside "$member" fgpu ping /dev/fakegpu0
check "his call was let go by the agent's word, not for want of it" \
	test "$(kt status settled) $(kt status hold_max) $(kt status returns)" = "0 0 1"
check "the borrower is dead" wait_for 20 sh -c "! kill -0 $borrower"
check "who asks gets an answer" kt state h
check "the kernel tells of the task that waits" wait_for 20 hung kt
kt state h >/dev/null
sleep 3
check "... and of none that waits for it" sh -c "! dmesg | grep -q 'INFO: task kworker'"
echo "$hung_after" >/proc/sys/kernel/hung_task_timeout_secs
check "all that before the unhook was over" test ! -e /tmp/unhooked

echo 1 >$spot/cgroup.kill
check "it ends when it can" wait_for 120 test -e /tmp/unhooked
wait_for 20 rmdir $spot
agent_down
end "$member"
check "all can be unloaded" no_cards
plan
