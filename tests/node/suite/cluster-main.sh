# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# The main story of each part, one after the other, on one node, under a real control plane: two
# pods share a card; a spot pod has a card that nobody holds, until somebody is given it; a spot pod
# has two cards, a free one and that of a user who is away, and goes when either is wanted; a data
# job runs on a node that is sold out. The other cluster scripts go into each of these.
# runs: cluster
# boot: --cluster --mem 3072
# seconds: 1200
source /vm/suite/lib.sh
source /vm/suite/agent.inc
source /vm/suite/cluster.inc

# switch_deployment: two pods that ask for a card each, with the switch on.
switch_deployment() {
	kubectl create -f - <<-END
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "service"},
		 "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "service"}},
		  "template": {"metadata": {"labels": {"app": "service"},
		                            "annotations": {"gpushare.k8s.io/share": "true"}},
		   "spec": $(pod_template "{\"$resource\": \"1\"}" /bin/sleep 1000000)}}}
	END
}

# switch_runs: both do.
switch_runs() {
	[[ $(kubectl get deployment service -o 'jsonpath={.status.readyReplicas}') == 2 ]]
}

# shadows NUMBER: of shadow pods.
shadows() {
	local names
	names=$(kubectl get pods -n gpushare-system -o name)
	echo "$names"
	(($(grep -c shadow- <<<"$names") == $1))
}

# card_of POD: the numbers of the cards that it can use.
card_of() {
	local n
	for n in 0 1; do
		! in_pod "$1" fgpu ping "/dev/fakegpu$n" >/dev/null 2>&1 || echo $n
	done
}

# spot_has NUMBER...: spot pods have memory on these cards, and on no other.
spot_has() {
	local n used=()
	for n in 0 1; do
		! uses $n $mib512 || used+=("$n")
	done
	[[ ${used[*]} == "$*" ]]
}

# spot_has_one: on any one.
spot_has_one() {
	spot_has 0 || spot_has 1
}

# job_may_use QUOTA: microseconds of each 100 ms, by its pod's cgroup.
job_may_use() {
	[[ $(container_limit data ../cpu.max) == "$1 100000" ]]
}

check "the node is in the cluster, with kubelet, agent and the vendor's plugin" cluster_join
check "it offers two cards" wait_for $long node_offers $resource 2

say="switch"
check "$say: a Deployment of two is made" switch_deployment
check "$say: both pods run" wait_for 400 switch_runs
check "$say: one shadow pod holds a card for them" shadows 1
mapfile -t names < <(kubectl get pods -l app=service -o name | sed 's,^pod/,,')
cards=$(card_of "${names[0]}")
check "$say: the first one has a card" test "${#cards}" = 1
is "$say: ... and the other one the same" "$(card_of "${names[1]}")" "$cards"
kubectl delete deployment service --now >/dev/null
# Its pods would have their grace.
kubectl delete pods -l app=service --now >/dev/null
check "$say: when they are gone it goes, too" wait_for $long shadows 0

say="free card"
check "$say: all cards are offered to spot pods" wait_for $long node_offers gpushare/spot-gpu 2
check "$say: a spot Deployment is made" spot_deployment
check "$say: its pod has one that nobody holds" wait_for 120 spot_has_one
spot=$(spot_pod)
reserve
check "$say: the spot pod is deleted" wait_for $long pod_gone "$spot"
check "$say: with the reason why" wait_for $long events_say "pod/$spot" GpuReclaimed
kubectl delete deployment job --now >/dev/null

say="sold out"
pod_spec more '{"cpu": "500m"}' | kubectl create -f - >/dev/null
check "$say: no pod has room" wait_for $long events_say pod/more 'Insufficient cpu'
kubectl delete pod more --now >/dev/null
POD_PRIORITY=gpushare-data pod_spec data '{"cpu": "100m", "memory": "64Mi"}' |
	kubectl create -f - >/dev/null
check "$say: a data job runs all the same" wait_for 180 pod_phase data Running
is "$say: on what is sold once more" "$(kubectl get pod data \
	-o 'jsonpath={.spec.containers[0].resources.requests}')" \
	'{"gpushare/vcpu":"100","gpushare/vmem":"64"}'
is "$say: its limit is the CPU that it asked for" \
	"$(container_limit data cpu.max)" "10000 100000"
is "$say: ... and the memory" "$(container_limit data memory.max)" $((64 << 20))
check "$say: the agent sees to it, too" wait_for $long job_may_use 10000
for name in dev busy; do
	in_pod $name /bin/sh -c 'while [ ! -e /tmp/idle ]; do :; done' &
done
check "$say: who was sold the CPU wants it: the job is squeezed" wait_for 180 job_may_use 1000
for name in dev busy; do
	in_pod $name /bin/sh -c 'mkdir -p /tmp && : >/tmp/idle'
done
kubectl delete pod data --now >/dev/null

say="two cards"
kubectl delete pod busy --now >/dev/null
check "$say: the user is away" away
check "$say: his card and the free one are offered" wait_for $long node_offers gpushare/spot-gpu 2
check "$say: a spot Deployment is made" spot_deployment 2
check "$say: its pod has both" wait_for 180 spot_has 0 1
spot=$(spot_pod)
returns 4000
check "$say: the spot pod is deleted" wait_for $long pod_gone "$spot"
check "$say: it has left the free card, too" wait_for $long spot_has
check "$say: the next one waits" wait_for $long spot_waits

say="two cards again"
check "$say: the user goes away" goes_away
check "$say: the pod that waited has both" wait_for 180 spot_has 0 1
spot=$(spot_pod)
reserve_pod busy
check "$say: the free one is given to a pod, which runs" wait_for 180 reserved_runs busy
check "$say: the spot pod is deleted" wait_for $long pod_gone "$spot"
check "$say: it has left the user's card, too" wait_for $long spot_has
is "$say: the user's pod was not touched" "$(kubectl get pod dev \
	-o 'jsonpath={.status.containerStatuses[0].restartCount} {.status.phase}')" "0 Running"

kubectl delete deployment job --now >/dev/null
kubectl delete pods --all --force --grace-period=0 >/dev/null 2>&1
plan
