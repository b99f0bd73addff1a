# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# The whole of lending, on a node whose cards and processors are all sold: kubelet, scheduler, API
# server and containerd are the real ones. A user is away, and a Deployment's spot pod is scheduled
# on his card; he is back, is held, the spot pod is killed and deleted, and the next one waits. Then
# the same while the API server is away for a minute, and a spot pod on a card that nobody holds,
# until somebody is given it.
# runs: cluster
# boot: --cluster --mem 3072
# seconds: 3000
source /vm/suite/lib.sh
source /vm/suite/agent.inc
source /vm/suite/cluster.inc

reserved_pods
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
check "$say: it runs, says the API" wait_for $long pod_phase "$spot" Running
is "$say: it has the CPU that it asked for, over-sold, as its limit" \
	"$(container_limit "$spot" cpu.max)" "50000 100000"
is "$say: ... and the memory" "$(container_limit "$spot" memory.max)" $((32 << 20))
is "$say: of the node's own it has none" "$(kubectl get pod "$spot" \
	-o 'jsonpath={.spec.containers[0].resources.requests} {.status.qosClass}')" \
	'{"gpushare/spot-gpu":"1","gpushare/vcpu":"500","gpushare/vmem":"32"} BestEffort'
returns 4000
check "$say: the spot pod is deleted" wait_for $long pod_gone "$spot"
check "$say: with the reason why" wait_for $long events_say "pod/$spot" GpuReclaimed
check "$say: the Deployment's next pod waits for a card" wait_for $long spot_waits
check "$say: no card is offered" wait_for $long node_offers gpushare/spot-gpu 0
is "$say: the user's pod was not touched" "$(kubectl get pod dev \
	-o 'jsonpath={.status.containerStatuses[0].restartCount} {.status.phase}')" "0 Running"

say="API away"
check "$say: the user goes away" goes_away
check "$say: the pod that waited has the card" wait_for 240 spot_runs
spot=$(spot_pod)
check "$say: the API server can't be reached" cluster_away
returns 4001
sleep 60
cluster_back
check "$say: the spot pod is deleted when it can" wait_for 180 pod_gone "$spot"

say="free card"
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
kubectl delete pods --all --force --grace-period=0 >/dev/null 2>&1
plan
