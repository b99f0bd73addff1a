# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# Two hundred containers and eight cards: the agent watches all of them, tells of them, comes back
# to them after a kill, and a card is lent and comes back among them. Each card's pod has a holder
# and 24 containers that received the card from him; they go through the runtime, our hook and the
# registry as any container does, but are made by `sleeper`.
# runs: deep
# boot: --append fakegpu.cards=8
# seconds: 1500
source /vm/suite/lib.sh
source /vm/suite/agent.inc

count=${CONTAINERS:-200} cards=8
each=$((count / cards))
lender=3
bundles=$NODE_DIR/bundles
# As long as people's names are, so that an answer of the agent needs more than one packet.
tail=$(printf 'of-a-team-with-a-long-name-%.0s' {1..6})machine

# pod N, id N I: names of the pod of card N, and of its container I.
pod() {
	echo "team/dev-$1-$tail"
}

id() {
	printf '%032x%032x' "$1" "$2"
}

# pid N I
pid() {
	cat "$bundles/$(id "$1" "$2")/pid"
}

# make N I: that container; I is 0 for the holder.
make() {
	local n=$1 i=$2 id pod name=main more devices='' rules=''
	id=$(id "$n" "$i") pod=$(pod "$n")
	if ((i == 0)); then
		more="\"gpushare.k8s.io/lend\": \"$([[ $n == "$lender" ]] && echo true)\",
		 \"gpushare.k8s.io/lend-after\": \"2s\""
		devices=${device[$n]},${device[ctl]},${device[-uvm]}
		rules=", ${rule[$n]}, ${rule[ctl]}, ${rule[-uvm]}"
	else
		name=side$i
		more="\"gpushare.k8s.io/container-devices-from.$name\": \"_/_/main\""
	fi
	mkdir -p "$bundles/$id"
	cat >"$bundles/$id/config.json" <<-END
		{"ociVersion": "1.0.2", "root": {"path": "/"},
		 "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "args": ["/bin/sleep", "1"],
		  "env": ["PATH=/bin"]},
		 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
		 "annotations": {"gpushare.k8s.io/identity": "$pod/$name", $more},
		 "linux": {"cgroupsPath": "/gs/$id", "devices": [$devices],
		  "resources": {"devices": [{"allow": false, "access": "rwm"}$rules]},
		  "namespaces": [{"type": "pid"}, {"type": "mount"}]}}
	END
	(cd "$bundles/$id" && "$NODE_DIR/gpushare-many" create --bundle . --pid-file pid "$id")
}

# Device nodes as a container's config.json has them.
declare -A device rule
for which in {0..7} ctl -uvm; do
	node=/dev/fakegpu$which
	number=$(printf '"type": "c", "major": %d, "minor": %d' "0x$(stat -c %t "$node")" \
		"0x$(stat -c %T "$node")")
	device[$which]="{\"path\": \"$node\", $number}"
	rule[$which]="{\"allow\": true, $number, \"access\": \"rwm\"}"
done

# make_all FROM TO: those of every pod.
make_all() {
	local n i
	for ((i = $1; i < $2; i++)); do
		for ((n = 0; n < cards; n++)); do
			make $n $i || return
		done
	done
}

# watches: how many the module has.
watches() {
	kt dump | grep -c '^watch '
}

# watched COUNT: is it that many?
watched() {
	[[ $(watches) == "$1" ]]
}

# ask WORDS... -- PYTHON: what gpusharectl says in JSON, as d, put into that expression.
ask() {
	local words=()
	while [[ $1 != -- ]]; do
		words+=("$1")
		shift
	done
	gpusharectl "${words[@]}" -o json | "$GS_PYTHON" -c 'import json, sys
text = sys.stdin.read()
d = json.loads(text)
print(eval(sys.argv[1]))' "$2"
}

# touch N I TOKEN: the container uses its card.
touch_card() {
	nsenter -p -t "$(pid "$1" "$2")" fgpu echo "/dev/fakegpu$1" "$3"
}

# touches N: how many the module has seen on that card.
touches() {
	ask inspect "$(card "$1")" -- 'd[0]["touches"]'
}

main_pid() {
	systemctl show -p MainPID --value gpushared
}

is "there are eight cards" "$(find /sys/class/fakegpu -name 'fakegpu[0-9]' | wc -l)" $cards
check "the agent is up" agent_config '"cri": "none",
	"profiles": {"gpushare-many": {"next": ["/vm/suite/sleeper"]}},'
ln -s /usr/bin/gpushare-runtime "$NODE_DIR/gpushare-many"
check "$((cards * 2)) containers start, of which each that receives a card waits for its watch" \
	make_all 0 2
is "... and has it" "$(watches)" $((cards * 2))
# The agent would look at all of them for each that comes.
systemctl stop gpushared
check "$((count - cards * 2)) more start while there is no agent" make_all 2 $each
check "it starts" systemctl start gpushared
check "... and all are watched" wait_for $long watched "$count"

is "status tells of all of them" \
	"$(ask status -- 'sum(len(h["members"]) for h in d["holdings"])')" "$count"
is "... by holding" "$(ask status -- '{len(h["members"]) for h in d["holdings"]}')" "{$each}"
is "... and that they run" \
	"$(ask status -- '{m["running"] for h in d["holdings"] for m in h["members"]}')" "{True}"
check "... which is more than a packet" test "$(ask status -- 'len(text)')" -gt 65536
is "... and nothing is wrong" "$(ask status -- 'd["problems"]')" "[]"
is "inspect tells of all" "$(ask inspect -- '[len(c["holders"]) + len(c["sharers"]) for c in d]')" \
	"$("$GS_PYTHON" -c "print([$each] * $cards)")"
check "... for people, too" gpusharectl inspect
check "... of one" grep -q "side$((each - 1))" <<<"$(gpusharectl inspect "$(pod 5)/main")"
is "containers lists all" "$(gpusharectl containers -o json | "$GS_PYTHON" -c \
	'import json, sys; print(len(json.load(sys.stdin)))')" "$count"

five=$(touches 5) six=$(touches 6)
check "one of them uses its card" touch_card 5 $((each - 1)) 77
check "... which is counted" test "$(touches 5)" -gt "$five"
is "... for no other" "$(touches 6)" "$six"

metrics=$(agent_get /metrics)
is "metrics tell of each container" "$(grep -c '^gpushare_pod_card_memory_bytes{' <<<"$metrics")" \
	"$count"
is "... and of each card" "$(awk '/^gpushare_cards{/ { sum += $2 } END { print sum }' \
	<<<"$metrics")" $cards
is "... and that no call was refused" "$(grep '^gpushare_syscalls_denied_total' <<<"$metrics")" ""

# ---- One card is lent, and comes back.
spot_run() { # GRANT
	ctr_run job --annotation gpushare.k8s.io/identity=spot/job/job \
		--annotation "gpushare.k8s.io/container-devices-from.job=$(pod $lender)/main" \
		--annotation "gpushare.k8s.io/grant=$1" -- "${spot_command[@]}"
}
spot_exec() {
	ctr_exec job "$@"
}
spot_pid() {
	ctr_pid job
}
spot_remove() {
	ctr_remove job
	! ctr container info job >/dev/null 2>&1
}
side() {
	nsenter -p -t "$(pid $lender $((each - 1)))" "$@"
}
main() {
	nsenter -p -t "$(pid $lender 0)" "$@"
}
rounds "among $count" $lender side main
is "no other card was lent" "$(ask status -- 'sorted({h["lend"] for h in d["holdings"]})')" \
	"[False, True]"
is "all are still watched" "$(watches)" "$count"

# ---- Another agent, and the end of some.
old=$(main_pid)
kill -KILL "$old"
check "killed, the agent comes back to all of them" wait_for $long eval \
	'[[ $(ask status -- "sum(len(h[\"members\"]) for h in d[\"holdings\"])") == "$count" ]]'
check "... another one" test "$(main_pid)" != "$old"
is "... and nobody was forgotten meanwhile" "$(watches)" "$count"
for ((i = 0; i < each; i++)); do
	echo 1 >"/sys/fs/cgroup/gs/$(id 7 $i)/cgroup.kill"
done
check "a pod of $each ends without a word: they are forgotten" \
	wait_for $long watched $((count - each))
is "... and nobody else is" "$(ask status -- 'len(d["holdings"])')" $((cards - 1))
is "... its card is free" "$(ask inspect "$(card 7)" -- 'd[0]["state"]')" free

for folder in /sys/fs/cgroup/gs/*/; do
	echo 1 >"$folder/cgroup.kill"
done
for folder in "$bundles"/*; do
	(cd "$folder" && "$NODE_DIR/gpushare-many" delete --force "${folder##*/}")
done
check "all end: nobody is watched" wait_for $long watched 0
is "... nor in the registry" "$(find /run/gpushare/containers -name '*.json' | wc -l)" 0
find /sys/fs/cgroup/gs -depth -type d -exec rmdir {} +
rm -r /etc/gpushare
check "the agent takes its own configuration again" systemctl restart gpushared
plan
