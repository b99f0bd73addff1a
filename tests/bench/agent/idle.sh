# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The guest's second part of bench-agent.sh: an agent whose node has many containers and eight
# cards, and nothing happens. Prints "NAME VALUE" lines. CONTAINERS, IDLE: see there. PLUGINS=1: a
# kubelet has its device plugins.
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

node_up cards=8 || wrong "no node"
kubelet=$node/kubelet section='' cri=none
if [ -n "$PLUGINS" ]; then
	mkdir -p $kubelet/device-plugins $kubelet/pod-resources
	# The kubelet's word is taken on who holds a card.
	i=0
	while [ $i -lt "$CONTAINERS" ]; do
		name=$([ $i -lt 8 ] && echo first$i || echo c$i)
		echo "default $name $name fakegpu.example/card" \
			"$(cat /sys/class/fakegpu/fakegpu$((i % 8))/uuid)"
		i=$((i + 1))
	done >$node/uses
	cri=containerd
	kubelet serve $kubelet $node/uses >$node/kubelet.out 2>&1 &
	section="\"agent\": {\"device_plugins\": {\"kubelet_dir\": \"$kubelet\"}},"
fi
cat >/etc/gpushare/config.json <<-END
	{"next": ["/vm/extra/sleeper"], "cri": "$cri", "vendor_dirs": ["$node/vendors.d"], $section
	 "log": {"level": "info", "file": "$agent_log"}}
END

# One container of each card is made as every container is. The others are those once more, with
# ids of their own: to start a process and copy a record takes a hundredth of the time.
i=0
while [ $i -lt 8 ]; do
	bundle first$i first$i $i '' sleep 100000
	(cd $node/bundles/first$i && gpushare-runtime create --pid-file pid first$i) \
		>/dev/null 2>&1 || wrong "container $i"
	i=$((i + 1))
done
while [ $i -lt "$CONTAINERS" ]; do
	like=first$((i % 8))
	mkdir $node/bundles/c$i
	sed "s/$like/c$i/g" /run/gpushare/containers/$like.json \
		>/run/gpushare/containers/c$i.json
	/vm/extra/sleeper create --pid-file $node/bundles/c$i/pid c$i
	i=$((i + 1))
done
cut -d' ' -f1 /proc/uptime | sed 's/^/setup_s /'
agent_start || wrong "no agent"
watched() {
	[ "$(kt dump | grep -c '^watch ')" = "$CONTAINERS" ]
}
wait_for 120 watched || wrong "$(kt dump | grep -c '^watch ') of $CONTAINERS are watched"
cut -d' ' -f1 /proc/uptime | sed 's/^/watched_s /'
both_registered() {
	[ "$(grep -c ^registered $node/kubelet.out)" -ge 2 ]
}
[ -z "$PLUGINS" ] || wait_for 120 both_registered || wrong "no device plugins"
# The first looks meet what is new.
sleep 30
# ns PID...: of processor time that these have had, with all of their threads.
ns() {
	local pid
	for pid; do
		cat /proc/$pid/task/*/schedstat
	done | awk '{ sum += $1 } END { printf "%.0f", sum }'
}
ours="$agent $(pidof gpushare-probe) $(cat /proc/$agent/task/$agent/children)"
ours=$(echo "$ours" | tr ' ' '\n' | sort -u)
before=$(ns $agent) all_before=$(ns $ours) begin=$(cut -d' ' -f1 /proc/uptime)
sleep "$IDLE"
after=$(ns $agent) all_after=$(ns $ours) end=$(cut -d' ' -f1 /proc/uptime)
[ "$(kt dump | grep -c '^watch ')" = "$CONTAINERS" ] ||
	wrong "$(kt dump | grep -c "^watch ") of $CONTAINERS are watched still"
echo "idle_ns $((after - before))"
echo "idle_ns_all $((all_after - all_before))"
echo "idle_s $(echo "$begin $end" | awk '{ print $2 - $1 }')"
rss() {
	awk '/^Rss/ { sum += $2 } END { print sum }' "/proc/$1/smaps_rollup"
}
echo "rss_kib $(rss $agent)"
awk '/^VmHWM/ { print "rss_peak_kib", $2 }' /proc/$agent/status
echo "probe_rss_kib $(rss "$(pidof gpushare-probe | cut -d' ' -f1)")"
exit 0
