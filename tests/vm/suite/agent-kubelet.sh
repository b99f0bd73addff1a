# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# Spot containers that the kubelet lets in: on a card that nobody holds, on one whose user is away,
# on both; until the kubelet gives the card to somebody, or its user is back. A kubelet and an agent
# that come and go meanwhile. (A small program plays the kubelet; tests/k8s plays all of it.)
# kernels: 6.1
# boot: --agent --mem 768
# seconds: 1200
# shellcheck disable=SC2034,SC2086,SC2154
. /vm/suite/lib.sh
. /vm/suite/containers.inc
. /vm/suite/story.inc
. /vm/suite/agent.inc

kubelet=$node/kubelet
uses=$node/uses
cri=containerd
holding=uid-main/main

# kubelet_start, kubelet_kill: one that gives out all cards, and says what stands in $uses.
kubelet_start() {
	mkdir -p $kubelet/device-plugins $kubelet/pod-resources
	rm -f $kubelet/device-plugins/*
	kubelet serve $kubelet $uses >>$node/kubelet.out 2>&1 &
	kubelet_pid=$!
}

kubelet_kill() {
	kill -9 $kubelet_pid
	wait $kubelet_pid
}

# gives POD/CONTAINER RESOURCE DEVICE...: the kubelet gave it these. takes_back POD: and has them
# again.
gives() {
	local pod=${1%/*} container=${1#*/} resource=$2 one
	shift 2
	for one; do
		echo "default $pod $container $resource $one" >>$uses
	done
}

takes_back() {
	sed -i "/^default $1 /d" $uses
}

# uuid CARD: as the kubelet calls it.
uuid() {
	cat /sys/class/fakegpu/fakegpu$1/uuid
}

# allocate CARD...: the name of the grant for these cards is in $node/grant. Fails where one of them
# is not healthy.
allocate() {
	local devices='' one
	for one; do
		devices="$devices $(card $one)"
	done
	kubelet allocate $kubelet/device-plugins/gpushare-spot.sock $devices >$node/grant
}

healthy() {
	allocate "$@" 2>/dev/null
}

unhealthy() {
	! healthy "$@"
}

# spot_pod NAME CARDS STEP...: a spot container by that grant, which the kubelet gave these cards.
spot_pod() {
	local name=$1 devices='' one
	for one in $2; do
		devices="$devices $(card $one)"
	done
	gives $name/$name gpushare/spot-gpu $devices
	shift 2
	bundle $name $name '' "\"gpushare.k8s.io/grant\": \"$(cat $node/grant)\"" fgpu "$@" &&
		cp $node/grant $node/bundles/$name/grant && start $name
}

# start NAME: as the kubelet does, which tries again, with a new bundle: what creates a container
# ends after fifteen seconds of waiting, and a busy machine may need more for the rest of it.
start() {
	local try
	cp $node/bundles/$1/config.json $node/new.json
	for try in 1 2 3 4 5 6; do
		cp $node/new.json $node/bundles/$1/config.json
		if runtime run $1; then
			return 0
		fi
		cat $node/$1.out
		gpushare-runtime delete -f $1 >/dev/null 2>&1
	done
	return 1
}

# reserved NAME CARD: a pod with that card, which the kubelet gave it.
reserved() {
	gives $1/$1 fakegpu.example/card "$(uuid $2)"
	bundle $1 $1 $2 '"gpushare.k8s.io/lend": "true"' sleep 100000 && start $1
}

# ended NAME: the spot container is dead, and its grant is no good.
ended() {
	check "$1 is dead" wait_for $long gone $1
	check "its grant is revoked" wait_for $long revoked $1
	remove $1
	takes_back $1
}

must "the node comes up" node_up
for one in 0 1; do
	echo "- - - fakegpu.example/card $(uuid $one)" >>$uses
done
agent_config "\"device_plugins\": {\"kubelet_dir\": \"$kubelet\"}"
must "the agent starts, and no kubelet is there" agent_start
kubelet_start
check "both plugins register" wait_for $long \
	sh -c "[ \$(grep -c ^registered $node/kubelet.out) -ge 2 ]"

# ---- A card that nobody holds.
must "a card that nobody holds is healthy" wait_for $long healthy 0
must "a spot container runs on it, without a source" \
	spot_pod one 0 alloc /dev/fakegpu0 $mib64 , hold
must "it has memory there" wait_for $long uses 0 $mib64
check "the other card is not in it" sh -c '! grep -q fakegpu1 '$node/bundles/one/config.json
check "its card's file names its cgroup" grep -q /sys/fs/cgroup/gs/one \
	"/run/gpushare/lent/$(card 0)"

# Whoever comes and goes, it is its.
kubelet_kill
agent_kill
must "the agent is killed, and starts while there is no kubelet" agent_start
sleep 3
check "the spot container runs on" sh -c "! [ -z \"\$(cat /sys/fs/cgroup/gs/one/cgroup.procs)\" ]"
kubelet_start
check "the plugins are there for the next kubelet" wait_for $long healthy 1

must "the kubelet gives the card to a reserved pod, which starts" reserved main 0
main=$(pid_of main)
is "no memory was left on the card" "$(used 0)" 0
ended one
check "the reserved pod's first call is no return" touch_card 41
is "and nobody was held" "$(kt status held)" 0
busy_user
check "a card in use is not to be had" wait_for $long unhealthy 0
quiet_user

# ---- A card whose user is away.
must "the idle card is lent" is_lent $holding
must "it is healthy then" wait_for $long healthy 0
must "a spot container runs on it" spot_pod two 0 alloc /dev/fakegpu0 $mib64 , hold
must "it has memory there" wait_for $long uses 0 $mib64
check "the user is back" inside $main fgpu echo /dev/fakegpu0 42
check "the call is served once, with no memory left on the card" served_clean 42 0
ended two

# ---- One of each kind.
must "the idle card is lent again" is_lent $holding
must "both cards are to be had" wait_for $long healthy 0 1
must "a spot container runs on both" \
	spot_pod three '0 1' alloc /dev/fakegpu0 $mib64 , alloc /dev/fakegpu1 $mib64 , hold
must "it has memory on both" wait_for $long sh -c "[ \$(cat \
	/sys/class/fakegpu/fakegpu[01]/mem_used | grep -c ^$mib64) = 2 ]"
check "the user is back" inside $main fgpu echo /dev/fakegpu0 43
check "the call is served once, with no memory left on the card" served_clean 43 0
ended three
is "nor on the other card" "$(used 1)" 0

must "again" is_lent $holding
must "both cards are to be had again" wait_for $long healthy 0 1
must "a spot container runs on both again" \
	spot_pod four '0 1' alloc /dev/fakegpu0 $mib64 , alloc /dev/fakegpu1 $mib64 , hold
must "it has memory on the free one" wait_for $long uses 1 $mib64
must "the kubelet gives the free one away" reserved other 1
is "no memory is left on it" "$(used 1)" 0
ended four
remove other
takes_back other

# ---- One who says that a card is his, where the operator has such ones refused.
sed -i 's|^{|&"refuse_unconfirmed": true, |' /etc/gpushare/config.json
busy_user
bundle impostor impostor 0 '' sleep 100000
check_fails "a pod that names its neighbour's card is refused" runtime run impostor
check "it is told why" grep -q "the kubelet did not give card $(card 0) to its pod" \
	$node/impostor.out
is "its neighbour's card stays his neighbour's" "$(kt dump | grep -c '^watch .*impostor')" 0
check "that is counted" sh -c "wget -qO- http://127.0.0.1:9479/metrics |
	grep -q '^gpushare_unconfirmed_total{outcome=\"refused\"} [1-9]'"
quiet_user
bundle impostor impostor 1 '' sleep 100000
check_fails "nor may he take one that nobody has" runtime run impostor
gives impostor/sidecar fakegpu.example/card "$(uuid 1)"
check "his pod is given it: he starts" start impostor
remove impostor
takes_back impostor
sed -i 's|"refuse_unconfirmed": true, ||' /etc/gpushare/config.json

# ---- The agent ends between its promise and the grant.
must "the free card is to be had" wait_for $long healthy 1
grant=$(cat $node/grant)
check "the grant is written" wait_for $long test -e /var/lib/gpushare/grants/$grant.json
agent_kill
rm /var/lib/gpushare/grants/$grant.json
must "the next agent starts" agent_start
check "the card is lent still, or again" is_lent "free/$(card 1)"
must "a spot container claims its grant" spot_pod five 1 alloc /dev/fakegpu1 $mib64 , hold
must "it has memory there" wait_for $long uses 1 $mib64

agent_kill -TERM
is "SIGTERM ends the agent" "$agent_status" 0
kubelet_kill
plan
