#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The whole of sharing: a Deployment flips one switch, and two pods have one card. Webhook,
# scheduler, controller, kubelet, device plugin and runtime, each the real one.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	kubelet_wants || return 0
	cluster_sharing
}

setup() {
	skip_if_lacking
}

teardown() {
	[[ -z ${WHY_SKIPPED:-} ]] || return 0
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$NODE_DIR/log/gpushared" "$NODE_DIR/log/controller" >&2
		kubectl get pods -A -o wide >&2
	fi
	kubectl uncordon "$CLUSTER_NODE" >/dev/null
	kubectl delete deployments -A --all --now >/dev/null
	pods_delete
	# A kubelet refuses pods that the scheduler sends by shares there were before.
	within 90 node_has gpushare/share-gpu 0
}

teardown_file() {
	node_stop
}

# shadows N: so many shadow pods are there.
shadows() {
	(($(kubectl get pods -n gpushare-system -o name | wc -l) == $1))
}

# partitions WORD…: these are the partitions and phases of the shadow pods, sorted.
partitions() {
	equals "$(kubectl get pods -n gpushare-system -o json | json - "sorted(
		p['metadata']['annotations']['gpushare.k8s.io/partition'] + ' ' +
		p['status']['phase'] for p in d['items'])" | xargs)" "$*"
}

# tenant NAME: a namespace whose pods are of the partition of that name.
tenant() {
	kubectl create namespace "$1" >/dev/null
	kubectl label namespace "$1" gpushare.k8s.io/inherit=true >/dev/null
	kubectl annotate namespace "$1" "gpushare.k8s.io/partition=$1" >/dev/null
}

# evicted NAMESPACE/POD: as a drain asks for it.
evicted() {
	kubectl create --raw "/api/v1/namespaces/${1%/*}/pods/${1#*/}/eviction" -f - <<-EOT
		{"apiVersion": "policy/v1", "kind": "Eviction",
		 "metadata": {"namespace": "${1%/*}", "name": "${1#*/}"}}
	EOT
}

@test "switch: a drain takes share pods first, and the shadow pod when nobody shares its card" {
	local pod shadow
	service 2
	service_runs 2
	shadow=$(kubectl get pods -n gpushare-system -o 'jsonpath={.items[*].metadata.name}')
	within 30 eval '[[ $(kubectl get pdb gpushare-shadow-pods -n gpushare-system \
		-o "jsonpath={.status.currentHealthy}") == 1 ]]'
	kubectl cordon "$CLUSTER_NODE" >/dev/null
	fails_with 'disruption budget' evicted "gpushare-system/$shadow"
	for pod in $(kubectl get pods -o 'jsonpath={.items[*].metadata.name}'); do
		evicted "default/$pod" >/dev/null
	done
	within 60 eval '! kubectl get pod -n gpushare-system '"$shadow"' 2>/dev/null'
}

@test "switch: two pods of a Deployment share one card, a third one brings a second card" {
	local pod seen
	service 2
	service_runs 2
	shadows 1
	seen=$(for pod in $(kubectl get pods -o name); do
		kubectl exec "$pod" -- /bin/probe /dev/nvidia0 /dev/nvidia1
	done | grep -c ENXIO)
	equals "$seen" 2
	equals "$(kubectl get pods -o 'jsonpath={.items[*].spec.containers[*].resources.limits}')" \
		'{"gpushare/share-gpu":"1"} {"gpushare/share-gpu":"1"}'

	kubectl scale deployment/service --replicas=3 >/dev/null
	service_runs 3
	shadows 2
	kubectl delete deployment/service --now >/dev/null
	within 60 shadows 0
}

@test "switch: a partition's pods get no share of another's card, but a shadow pod of their own" {
	local gold
	tenant gold
	tenant silver
	kubectl label node "$CLUSTER_NODE" gpushare.k8s.io/partition=gold >/dev/null
	service 1 gold
	service_runs 1 gold
	partitions gold Running

	# One share is left, and a whole card.
	service 1 silver
	within 30 waits_for_its_nodes silver
	kubectl scale -n gold deployment/service --replicas=2 >/dev/null
	service_runs 2 gold
	partitions gold Running

	# Now there is a node for it, whose shares are gold's.
	kubectl label node "$CLUSTER_NODE" --overwrite gpushare.k8s.io/partition=silver >/dev/null
	service_runs 1 silver
	partitions gold Running silver Running
	gold=$(card_of gold)
	equals "$(grep -c ENXIO <<<"$gold")" 1
	equals "$(grep -c ENXIO <<<"$(card_of silver)")" 1
	[[ $(card_of silver) != "$gold" ]]
}

# card_of NAMESPACE: what one of its service's pods sees of the cards.
card_of() {
	kubectl exec -n "$1" deployment/service -- /bin/probe /dev/nvidia0 /dev/nvidia1
}

# waits_for_its_nodes NAMESPACE: the scheduler says so of a pod there.
waits_for_its_nodes() {
	kubectl get pods -n "$1" -o json | json - "[c['message'] for p in d['items']
		for c in p['status'].get('conditions', ()) if c['type'] == 'PodScheduled']" |
		grep -q "didn't match Pod's node affinity"
}

@test "switch: what only the platform may write is refused, made, changed or added" {
	POD_ANNOTATIONS='gpushare.k8s.io/lend: "true"' pod_spec forged >"$NODE_DIR/pod.yaml"
	fails_with 'denied the request.*lend' kubectl create -f "$NODE_DIR/pod.yaml"
	pod_spec plain | kubectl create -f - >/dev/null
	fails_with 'denied the request.*lend' kubectl annotate pod plain gpushare.k8s.io/lend=true
	kubectl annotate pod plain somebody.example/lend=true >/dev/null

	# It waits for a card for ever; a privileged container is none that may borrow.
	pod_spec spot gpushare/spot-gpu=1 cpu=100m memory=16Mi | kubectl create -f - >/dev/null
	fails_with 'denied the request.*privileged' \
		kubectl debug spot --profile=sysadmin --image="$IMAGE" --container=added -- true
	sed 's/^    image:/    securityContext: {privileged: true}\n&/' \
		<(pod_spec forged gpushare/spot-gpu=1 cpu=100m memory=16Mi) >"$NODE_DIR/pod.yaml"
	fails_with 'denied the request.*privileged' kubectl create -f "$NODE_DIR/pod.yaml"
}
