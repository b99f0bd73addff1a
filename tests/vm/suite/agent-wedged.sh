# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# A driver that hangs in open(2), where not even SIGKILL helps: the agent goes on without it, and
# hooks it when it has come to itself.
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 300
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

parameters=/sys/module/fakegpu/parameters

must "a node is up" node_up
echo 1 >$parameters/open_hard
echo 600000 >$parameters/open_ms
gpushared >>$node/agent.out 2>&1 &
agent=$!
must "the agent answers all the same" wait_for $long gpusharectl status
opening() {
	grep -l 'State:.D' /proc/[0-9]*/status 2>/dev/null | xargs grep -l gpushare-probe
}
check "somebody else hangs in the driver" wait_for $long opening
check "the agent tells of it" wait_for $long logged '"not hooked".*did not open it within'
check "and answers still" gpusharectl status
check "nobody waits for its end" agent_kill -TERM
must "and a new one starts" agent_start

echo 0 >$parameters/open_ms
wake
all_hooked() {
	[ "$(kt dump | grep -c '^node ')" -ge 3 ]
}
check "every node is hooked when the driver goes on" wait_for $long all_hooked
must "a card can be held" holder main 0
check "and is in use, or lent, like any other" wait_for $long sh -c \
	'case $(kt state main state) in active | idle | lent) ;; *) exit 1 ;; esac'
plan
