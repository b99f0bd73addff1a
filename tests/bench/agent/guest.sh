# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The guest's part of bench-agent.sh: prints "NAME VALUE" lines. PAIRS, CONTAINERS, IDLE: see there.
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
		>$node/bare.out 2>&1 && wait_for $long uses 0 $mib64 || wrong "no bare container"
	krelease kill "$(pid_of bare)" | tr = ' ' || wrong "no bare end"
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
rm -rf /run/gpushare

# ---- Many containers, eight cards, and nothing happens.
rmmod gpushare && rmmod fakegpu
insmod /vm/modules/fakegpu.ko cards=8 || wrong "no eight cards"
insmod /vm/modules/gpushare.ko || wrong "no module"
cat >/etc/gpushare/config.json <<-END
	{"next": ["/vm/extra/sleeper"], "cri": "none", "vendor_dirs": ["$node/vendors.d"],
	 "log": {"level": "info", "file": "$agent_log"}}
END
agent_start || wrong "no agent"
i=0
while [ $i -lt "$CONTAINERS" ]; do
	i=$((i + 1))
	bundle c$i c$i $((i % 8)) '' sleep 100000
	(cd $node/bundles/c$i && gpushare-runtime create --pid-file pid c$i) >/dev/null 2>&1 ||
		wrong "container $i"
done
watched() {
	[ "$(kt dump | grep -c '^watch ')" = "$CONTAINERS" ]
}
wait_for 120 watched || wrong "not all are watched"
usleep 3000000
# Clock ticks of the agent, its spawner and the probes.
ticks() {
	for pid in $agent $(pidof gpushare-probe) $(cat /proc/$agent/task/$agent/children); do
		sed 's/^.*) //' /proc/$pid/stat | awk '{ print $12 + $13 }'
	done | sort -u | awk '{ sum += $1 } END { print sum + 0 }'
}
own_ticks() {
	sed 's/^.*) //' /proc/$agent/stat | awk '{ print $12 + $13 }'
}
before=$(own_ticks) all_before=$(ticks) begin=$(cut -d' ' -f1 /proc/uptime)
sleep "$IDLE"
after=$(own_ticks) all_after=$(ticks) end=$(cut -d' ' -f1 /proc/uptime)
echo "idle_ticks $((after - before))"
echo "idle_ticks_all $((all_after - all_before))"
echo "idle_s $(echo "$begin $end" | awk '{ print $2 - $1 }')"
awk '/^VmRSS/ { print "rss_kib", $2 } /^VmHWM/ { print "rss_peak_kib", $2 }' /proc/$agent/status
awk '/^VmRSS/ { print "probe_rss_kib", $2 }' /proc/"$(pidof gpushare-probe | cut -d' ' -f1)"/status
exit 0
