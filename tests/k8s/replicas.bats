#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Two controllers at a real API server, one, and none: who leads is killed or sleeps, and there are
# never two shadow pods for one need; with none, nobody waits but whom the webhook concerns.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	control_wants || return 0
	node_start
	control_start
	controller_packaged
	again second
}

setup() {
	skip_if_lacking
}

teardown() {
	[[ -z ${WHY_SKIPPED:-} || -n ${BATS_TEST_COMPLETED:-} ]] || return 0
	tail -n 20 "$NODE_DIR"/log/{controller,second} >&2
}

teardown_file() {
	node_stop
}

share=', "resources": {"limits": {"gpushare/share-gpu": "1"}}'
card=', "resources": {"limits": {"nvidia.com/gpu": "1"}}'

# waits NAME PLACE: a share pod that can't be placed anywhere else, nor there.
waits() {
	pod "$1" '' ", \"nodeSelector\": {\"place\": \"$2\"}" "$share" >/dev/null
	kubectl patch pod "$1" --subresource=status --type=merge -p '{"status": {"conditions": [
		{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
		 "message": "0/1 nodes are available: 1 Insufficient gpushare/share-gpu."}]}}' \
		>/dev/null
}

# again NAME: it is started again.
again() {
	controller_run "$1" "$(port "$1")"
}

port() {
	if [[ $1 == controller ]]; then
		echo 8443
	else
		echo 8444
	fi
}

# leader: which of the two.
leader() {
	kubectl get lease -n gpushare-system gpushare-controller \
		-o 'jsonpath={.spec.holderIdentity}' | sed 's/_.*//'
}

leads() {
	[[ $(leader) == "$1" ]]
}

# ever PLACE: the shadow pods that were ever made there.
ever() {
	sort -u "$NODE_DIR/log/shadows" | grep " $1\$"
}

# both_serve: the two controllers are there, and the one that does not lead is the one that is
# asked. Sets $first, who leads, and $other.
both_serve() {
	first=$(leader) other=second
	[[ $first == controller ]] || other=controller
	controller_asked "$(port "$other")"
}

@test "replicas: whose leader dies, or sleeps, has one shadow pod for each need" {
	local first other place
	node_spawn shadows "$KUBE/kube" kubectl --kubeconfig "$NODE_DIR/admin.conf" \
		get pods -n gpushare-system --watch \
		-o 'jsonpath={.metadata.name} {.spec.nodeSelector.place}{"\n"}'

	# Killed while it makes one,
	both_serve
	waits a1 dies
	node_end "$first" KILL
	waits b1 dies
	within 60 leads "$other"
	within 30 ever dies
	again "$first"

	# killed when it made one,
	both_serve
	waits a2 made
	within 30 ever made
	node_end "$first" KILL
	waits b2 made
	within 60 leads "$other"
	again "$first"

	# and asleep for longer than its Lease.
	both_serve
	waits a3 sleeps
	pkill -STOP -P "$(<"$NODE_DIR/$first.pid")"
	waits b3 sleeps
	within 60 leads "$other"
	within 30 ever sleeps
	# nsenter stopped with it, and wakes it.
	kill -CONT "$(<"$NODE_DIR/$first.pid")"
	within 30 grep -q "no longer leading" "$NODE_DIR/log/$first"
	sleep 5
	leads "$other"
	for place in dies made sleeps; do
		equals "$(ever "$place" | wc -l)" 1
	done
	kubectl delete pods --all --grace-period=0 --force 2>/dev/null
	within 40 eval '[[ -z $(kubectl get pods -n gpushare-system -o name) ]]'
}

@test "replicas: with none, pods without our keys are made, changed, placed and deleted" {
	local name
	pod before '' '' "$share"
	kubectl create namespace lent >/dev/null
	kubectl label namespace lent gpushare.k8s.io/inherit=true >/dev/null
	for name in controller second; do
		node_end "$name" KILL
	done

	# Also those with a whole card, of no business of ours.
	pod plain '' '' "$card"
	kubectl annotate pod plain somebody.example/key=value
	kubectl create --raw /api/v1/namespaces/default/pods/plain/binding -f - <<-EOT
		{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "plain"},
		 "target": {"apiVersion": "v1", "kind": "Node", "name": "somewhere"}}
	EOT
	equals "$(kubectl get pod plain -o 'jsonpath={.spec.nodeName}')" somewhere
	kubectl delete pod plain --grace-period=0 --force
	kubectl create deployment plain --image=none
	within 30 eval 'kubectl get pods -l app=plain -o name | grep -q pod/'
	kubectl run plain -n lent --image=none

	# Nobody slips through, by no way,
	fails_with "failed calling webhook" pod share '' '' "$share"
	fails_with "failed calling webhook" \
		pod switch ', "annotations": {"gpushare.k8s.io/share": "true"}' '' ''
	fails_with "failed calling webhook" pod card ', "namespace": "lent"' '' "$card"
	fails_with "failed calling webhook" kubectl annotate pod before gpushare.k8s.io/lend=true
	# and what was let in can end.
	kubectl patch pod before --subresource=status --type=merge \
		-p '{"status": {"phase": "Failed"}}'
	kubectl delete pod before --grace-period=0 --force

	again controller
	controller_asked 8443
	pod share '' '' "$share"
}
