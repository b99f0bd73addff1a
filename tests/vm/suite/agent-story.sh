# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The promise: a card whose user is away is lent to a spot container, and back before the first call
# of whichever process of the user's reaches the driver.
# runs: short
# kernels: 5.10 6.1 6.12 7.3
# boot: --agent --mem 768
# seconds: 600
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc
# shellcheck disable=SC2154
: "$agent_status"

# back NAME TOKEN: what must be true once the held call with that token has returned.
back() {
	check "$1: the held call is served once, with no memory left on the card" \
		served_clean "$2" 0
	check "$1: the borrower is dead" gone "$1"
	check "$1: its grant is revoked" revoked "$1"
}

must "the node comes up" node_up
must "the agent starts" agent_start
must "a container is given a card" holder main 0
must "so is a second one of its pod" target side main
main=$(pid_of main)
side=$(pid_of side)
inside "$main" fgpu echo /dev/fakegpu0 40 >/dev/null
is "a card in use is not held" "$(served 40 | wc -l)" 1

# ---- Each of the user's processes brings the card back.
must "one: the idle card is lent, and a spot container has memory on it" borrow one
check "one: the lent card's file names the borrower's cgroup" \
	grep -q /sys/fs/cgroup/gs/one "/run/gpushare/lent/$(card 0)"
check "the user is back" inside "$main" fgpu echo /dev/fakegpu0 41
back one 41
check "its callers go on, says the log" wait_for 10 logged '"msg":"callers go on".*"callers":"1"'

must "two: it is lent again" borrow two
check "the user's second container is back" inside "$side" fgpu echo /dev/fakegpu0 42
back two 42

must "three: and again" borrow three
check "a process of a namespace below the container is back" \
	inside "$main" unshare -p -f fgpu echo /dev/fakegpu0 43
back three 43
is "three callers were held, no more" "$(kt status held)" 3

check "without a borrower it is lent, too" is_lent main
returns=$(told '"to":"returning"')
check "nobody waits then" inside "$main" fgpu echo /dev/fakegpu0 44
is "that was no return" "$(told '"to":"returning"')" "$returns"
is "nor was anybody held" "$(kt status held)" 3

agent_kill -TERM
is "SIGTERM ends the agent" "$agent_status" 0
plan
