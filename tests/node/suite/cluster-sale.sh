# shellcheck shell=bash disable=SC2086,SC2154
# SPDX-License-Identifier: Apache-2.0
# CPU and memory sold once more: data jobs run on a node that is sold out, on what its pods leave
# unused. When those want it back, the jobs' CPU is squeezed, and for their memory the youngest one
# is evicted.
# runs: cluster
# boot: --cluster --mem 3072
# seconds: 3000
source /vm/suite/lib.sh
source /vm/suite/agent.inc
# Of the node's 3 GiB one stays free, whatever happens here.
# shellcheck disable=SC2034 # of cluster_join
oversale='"memory_floor": "1Gi"'
source /vm/suite/cluster.inc

# wants WHAT: the reserved pod begins to use it: memory, or processors (1 or 0).
wants() {
	in_pod service /bin/sh -c "mkdir -p /tmp && echo $2 >/tmp/$1"
}

# job NAME: a data job with a tenth of a processor and 450 MiB, of which it uses 400.
job() {
	POD_PRIORITY=gpushare-data pod_spec "$1" '{"cpu": "100m", "memory": "450Mi"}' '' \
		/bin/sh -c 'dd if=/dev/zero bs=400M count=1 2>/dev/null | sleep 1000000' |
		kubectl create -f - >/dev/null
}

# job_uses NAME: it has its memory.
job_uses() {
	(($(container_limit "$1" memory.current) > 400 << 20))
}

# pod_may_use NAME QUOTA: microseconds of each 100 ms, by its cgroup's limit.
pod_may_use() {
	local has
	has=$(container_limit "$1" ../cpu.max)
	echo "$1: $has"
	[[ $has == "$2 100000" ]]
}

# pod_may_have NAME BYTES: of memory, by its cgroup's limit.
pod_may_have() {
	[[ $(container_limit "$1" ../memory.max) == "$2" ]]
}

# evictions: how many the agent counts.
evictions() {
	agent_get /metrics | sed -n 's/^gpushare_oversale_evictions_total{resource="memory"} //p'
}

check "the node is in the cluster" cluster_join
pod_spec service '{"cpu": "1900m", "memory": "2000Mi"}' '' /bin/sh -c '
	while sleep 1; do
		if [ -e /tmp/memory ]; then
			rm /tmp/memory
			dd if=/dev/zero bs=700M count=1 | sleep 1000000 &
		fi
		while [ "$(cat /tmp/processors)" = 1 ]; do
			n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done &
			n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done
		done
	done 2>/dev/null' | kubectl create -f - >/dev/null
check "the reserved pod runs" wait_for 120 pod_phase service Running
pod_spec more '{"cpu": "500m"}' | kubectl create -f - >/dev/null
check "the node is sold out" wait_for $long events_say pod/more 'Insufficient cpu'
kubectl delete pod more --now >/dev/null

for name in old young; do
	job $name
	check "a data job runs all the same: $name" wait_for 300 pod_phase $name Running
	check "... and uses its memory" wait_for 120 job_uses $name
done
is "its container is limited to the CPU that it asked for" \
	"$(container_limit old cpu.max)" "10000 100000"
is "... and to the memory" "$(container_limit old memory.max)" $((450 << 20))
check "the agent sees to it, too" wait_for $long pod_may_use old 10000
check "... and to the memory" wait_for $long pod_may_have old $((450 << 20))

wants processors 1
check "the others want their processors: the jobs are squeezed" wait_for 240 pod_may_use old 1000
check "... both" wait_for $long pod_may_use young 1000
wants processors 0
check "no more: the jobs have what they bought" wait_for 240 pod_may_use old 10000

is "nobody was evicted so far" "$(evictions)" ""
wants memory 1
check "the others want their memory: the youngest job goes" wait_for 240 pod_gone young
check "... and its Event says why" \
	events_say pod/young 'OversaleReclaimed.*want over-sold memory back'
sleep 25
is "nobody else does" "$(evictions)" 1
check "the other job goes on" job_uses old
is "... in its first container" \
	"$(kubectl get pod old -o 'jsonpath={.status.containerStatuses[0].restartCount}')" 0
job next
check "the next one finds no room" wait_for $long events_say pod/next 'Insufficient gpushare/v'

kubectl delete pods --all --force --grace-period=0 >/dev/null 2>&1
plan
