# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# A part of tests/bench/bench-agent.sh: the user's return takes a card from a spot pod, and, in
# turns, the API server is asked to delete such a pod, which does not end by itself, with the grace
# that pods have by default. Prints "# NAME VALUE" lines, in microseconds. CLUSTER_PAIRS (3): how
# often.
# runs: cluster
# boot: --cluster --mem 3072
# seconds: 3000
source /vm/suite/lib.sh
source /vm/suite/agent.inc
source /vm/suite/cluster.inc

us() {
	echo $((${EPOCHREALTIME/./} + 0))
}

reserved_pods
check "a spot Deployment is made" spot_deployment
for ((pair = 1; pair <= ${CLUSTER_PAIRS:-3}; pair++)); do
	check "pair $pair: a spot pod has the card" wait_for 300 spot_runs
	spot=$(spot_pod)
	echo 1 >/sys/kernel/debug/fakegpu/clear
	said=$(in_pod dev fgpu echo "/dev/fakegpu$n" $((4000 + pair)))
	check "pair $pair: the user's call is served, with nobody's memory on the card" \
		served_clean "$n" $((4000 + pair))
	echo "# return_us ${said##*us=}"
	check "pair $pair: that pod is gone" wait_for 180 pod_gone "$spot"

	check "pair $pair: another one has the card" wait_for 300 spot_runs
	begin=$(us)
	kubectl delete pod "$(spot_pod)" --wait=false >/dev/null
	check "pair $pair: it is deleted, and its memory is free" wait_for 180 uses "$n" 0
	echo "# delete_us $(($(us) - begin))"
done
kubectl delete deployment job --now >/dev/null
kubectl delete pods --all --force --grace-period=0 >/dev/null 2>&1
plan
