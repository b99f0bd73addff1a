# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The guest's first part of bench-agent.sh: prints "NAME VALUE" lines. PAIRS: see there.
# shellcheck disable=SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/callers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

wrong() {
	echo "wrong: $*" >&2
	tail -n 20 $agent_log >&2
	exit 1
}

# borrow NAME: a spot container that has memory of card 0, as soon as that is lent.
borrow() {
	is_lent main && spot $1 0 main fgpu alloc /dev/fakegpu0 $mib64 , hold &&
		wait_for $long uses 0 $mib64
}

# ---- The bare end of a borrower's container, with the module loaded and nothing hooked.
export lend_after=50ms
node_up || wrong "no node"
i=0
while [ $i -lt "$PAIRS" ]; do
	i=$((i + 1))
	bundle bare bare 0 '' fgpu alloc /dev/fakegpu0 $mib64 , hold
	(cd $node/bundles/bare && runc run --no-pivot --pid-file pid -d bare </dev/null) \
		>$node/bare.out 2>&1 || wrong "no bare container"
	wait_for $long uses 0 $mib64 || wrong "the bare container uses nothing"
	krelease kill "$(pid_of bare)" | tr '=' ' ' || wrong "no bare end"
	runc delete -f bare
	rm -rf $node/bundles/bare
done

# ---- A return of a user, with one that borrows.
agent_start || wrong "no agent"
holder main 0 || wrong "no holder"
wait_for $long state_is main active || wait_for $long state_is main lent
main=$(pid_of main)
i=0
while [ $i -lt "$PAIRS" ]; do
	i=$((i + 1))
	borrow spot$i >/dev/null || wrong "round $i: nobody borrowed"
	said=$(inside $main fgpu echo /dev/fakegpu0 $((1000 + i))) || wrong "round $i: $said"
	[ "$(served $((1000 + i)) | wc -l)" = 1 ] || wrong "round $i: not served once"
	echo "return_ns $((${said##*us=} * 1000))"
	remove spot$i
done
sed -n 's/.*"a borrower is ended".*"own_us":"\([0-9]*\)".*/own_us \1/p' $agent_log
agent_kill -TERM
remove main
exit 0
