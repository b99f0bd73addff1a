# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# The whole of lending, on a node whose cards and processors are all sold: kubelet, scheduler, API
# server and containerd are the real ones. A user is away, and a Deployment's spot pod is scheduled
# on his card; he is back, is held, the spot pod is killed and deleted, and the next one waits. Then
# the same while the API server is away, and a spot pod on a card that nobody holds, until somebody
# is given it.
# runs: cluster
# boot: --cluster --mem 3072
# seconds: 1800
source /vm/suite/lib.sh
source /vm/suite/agent.inc
source /vm/suite/cluster.inc

lend='"gpushare.k8s.io/lend": "true", "gpushare.k8s.io/lend-after": "3s"'
# All of the node's processors, between the two of them.
sold='{"fakegpu.example/card": "1", "cpu": "950m", "memory": "64Mi"}'

# The spot pods of a Deployment. They ignore being told to end.
spot_deployment() {
	kubectl create -f - <<-END
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "job"},
		 "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "job"}},
		  "template": {"metadata": {"labels": {"app": "job"}},
		   "spec": $(pod_template \
			'{"gpushare/spot-gpu": "1", "cpu": "500m", "memory": "32Mi"}' /bin/sh -c \
			"trap '' TERM; for n in 0 1; do [ -e /dev/fakegpu\$n ] && exec fgpu alloc \
			/dev/fakegpu\$n 512M , hold /dev/fakegpu\$n; done")}}}
	END
}

# spot_pod: the name of the only one that is not on its way out.
spot_pod() {
	kubectl get pods -l app=job -o json | "$GS_PYTHON" -c 'import json, sys
print(*[p["metadata"]["name"] for p in json.load(sys.stdin)["items"]
        if "deletionTimestamp" not in p["metadata"]])'
}

# spot_runs: and has its memory on the card $n.
spot_runs() {
	kubectl get pods -o wide
	uses "$n" $mib512
}

spot_waits() {
	local pod
	pod=$(spot_pod)
	[[ -n $pod && $pod != "$spot" ]] && events_say "pod/$pod" 'Insufficient gpushare/spot-gpu'
}

pod_gone() {
	! kubectl get pod "$1" 2>&1
}

# away USER: the card of that pod is lent.
away() {
	wait_for $long state_is "$n" lent
}

# returns TOKEN: his call, and how it was.
returns() {
	echo 1 >/sys/kernel/debug/fakegpu/clear
	before=$(held)
	check "$say: the user is back, and his call is served" \
		in_pod dev fgpu echo "/dev/fakegpu$n" "$1"
	is "$say: he was held" $(($(held) - before)) 1
	check "$say: it reached the driver once, when the spot pod's memory was free" \
		served_clean "$n" "$1"
}

check "the node is in the cluster, with kubelet, agent and the vendor's plugin" cluster_join
check "it offers two cards" wait_for $long node_offers $resource 2
kubectl get node "$CLUSTER_NODE" -o yaml | sed 's/^/# /'

pod_spec dev "$sold" "$lend" | kubectl create -f - >/dev/null
pod_spec busy "$sold" | kubectl create -f - >/dev/null
for pod in dev busy; do
	check "the reserved pod $pod runs" wait_for 120 pod_phase $pod Running
done
n=0
in_pod dev fgpu try open /dev/fakegpu0 >/dev/null || n=1
check "its user uses the card" in_pod dev fgpu echo "/dev/fakegpu$n" 1
pod_spec more '{"cpu": "500m"}' | kubectl create -f - >/dev/null
check "all processors are sold" wait_for $long events_say pod/more 'Insufficient cpu'
kubectl delete pod more --now >/dev/null

say=lent
check "$say: the user is away" away
check "$say: his card is offered to spot pods, the other one is not" \
	wait_for $long node_offers gpushare/spot-gpu 1
check "$say: a spot Deployment is made" spot_deployment
check "$say: its pod is scheduled and has the card" wait_for 180 spot_runs
spot=$(spot_pod)
returns 4000
check "$say: the spot pod is deleted" wait_for $long pod_gone "$spot"
check "$say: with the reason why" wait_for $long events_say "pod/$spot" GpuReclaimed
check "$say: the Deployment's next pod waits for a card" wait_for $long spot_waits
check "$say: no card is offered" wait_for $long node_offers gpushare/spot-gpu 0
is "$say: the user's pod was not touched" "$(kubectl get pod dev \
	-o 'jsonpath={.status.containerStatuses[0].restartCount} {.status.phase}')" "0 Running"

say="API away"
check "$say: the user is away, and the pod that waited has the card" wait_for 240 spot_runs
spot=$(spot_pod)
check "$say: the API server can't be reached" cluster_away
returns 4001
cluster_back
check "$say: the spot pod is deleted when it can" wait_for 180 pod_gone "$spot"

say="free card"
in_pod dev /bin/sh -c "while fgpu echo /dev/fakegpu$n 2; do sleep 1; done" >/dev/null &
check "$say: its user is at work" wait_for $long state_is $n active
kubectl delete pod busy --now >/dev/null
n=$((1 - n))
check "$say: the spot pod has the card that nobody holds" wait_for 240 spot_runs
spot=$(spot_pod)
pod_spec new "$sold" | kubectl create -f - >/dev/null
check "$say: who is given it by the kubelet has it" wait_for 180 pod_phase new Running
check "$say: ... for himself" in_pod new fgpu echo "/dev/fakegpu$n" 3
check "$say: the spot pod is deleted" wait_for $long pod_gone "$spot"
check "$say: the next one waits" wait_for $long spot_waits

kubectl delete deployment job --now >/dev/null
kubectl delete pods --all --now --force >/dev/null 2>&1
plan
