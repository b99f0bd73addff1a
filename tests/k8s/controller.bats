#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-controller and the manifests of packaging/k8s, with the rights that these give, at a real
# API server that asks its webhook.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	local file host=gpushare-controller.gpushare-system.svc path
	control_wants || return 0
	node_start
	control_start
	local base=$GS_TOP/packaging/k8s/base
	for file in $(awk '/^  - / { print $2 }' "$base/kustomization.yaml"); do
		kubectl apply -f - <"$base/$file"
	done
	# There is no node to run it and no proxy for its Service: one process, found by its name.
	node_exec /bin/sh -c "echo '127.0.0.1 $host' >>/etc/hosts"
	for path in 0 1; do
		kubectl patch mutatingwebhookconfiguration gpushare --type=json -p \
			"[{'op':'replace','path':'/webhooks/$path/clientConfig','value':{
			'url':'https://$host:8443/admit'}}]"
	done
	kubectl create token -n gpushare-system gpushare-controller >"$NODE_DIR/controller.token"
	cat >"$NODE_DIR/controller.json" <<-EOT
		{"vendor_dirs": ["$GS_TOP/vendors"], "controller": {
		  "namespace": "gpushare-system", "data_classes": ["gpushare-data"],
		  "platform_users": ["system:serviceaccount:gpushare-system:gpushare-controller"],
		  "kubernetes": {"server": "$CLUSTER_SERVER", "ca_file": "$NODE_DIR/pki/ca.crt",
		                 "token_file": "$NODE_DIR/controller.token"}}}
	EOT
	node_spawn controller "$GS_BUILD/gpushare-controller" --config "$NODE_DIR/controller.json"
	within 40 grep -q "authorities are written" "$NODE_DIR/log/controller"
}

setup() {
	skip_if_lacking
}

teardown_file() {
	node_stop
}

# pod NAME METADATA SPEC RESOURCES: JSON members.
pod() {
	kubectl create -f - <<-EOT
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1" $2}, "spec": {
		  "schedulerName": "nobody" $3,
		  "containers": [{"name": "main", "image": "none" $4}]}}
	EOT
}

@test "controller: the switch, by way of the API server" {
	pod switch ', "annotations": {"gpushare.k8s.io/share": "true"}' '' \
		', "resources": {"limits": {"nvidia.com/gpu": "1"}}'
	run kubectl get pod switch -o 'jsonpath={.spec.containers[0].resources.limits}'
	[ "$output" = '{"gpushare/share-gpu":"1"}' ]
}

@test "controller: forged keys and a privileged spot pod are refused, on creation and on a change" {
	fails_with "only the platform may" \
		pod forged ', "annotations": {"gpushare.k8s.io/partition": "gold"}' '' ''
	pod changed '' '' ''
	fails_with "only the platform may" kubectl annotate pod changed gpushare.k8s.io/grant=x
	fails_with "may not be privileged" pod spot '' '' ',
		"securityContext": {"privileged": true},
		"resources": {"limits": {"gpushare/spot-gpu": "1", "cpu": "1", "memory": "1Gi"}}'
}

@test "controller: who has no room to share gets a shadow pod, for as long as it waits" {
	local uid why="0/1 nodes are available: 1 Insufficient gpushare/share-gpu."
	pod share '' '' ', "resources": {"limits": {"gpushare/share-gpu": "1"}}'
	uid=$(kubectl get pod share -o 'jsonpath={.metadata.uid}')
	kubectl patch pod share --subresource=status --type=merge -p "{
		\"status\": {\"conditions\": [
		{\"type\": \"PodScheduled\", \"status\": \"False\", \"reason\": \"Unschedulable\",
		 \"message\": \"$why\"}]}}"
	within 20 kubectl get pod -n gpushare-system "shadow-$uid"
	run kubectl get pod -n gpushare-system "shadow-$uid" -o 'jsonpath={.status.qosClass}'
	[ "$output" = Guaranteed ]
	within 20 eval 'kubectl get events | grep -q WaitsForCard'
	kubectl delete pod share --grace-period=0 --force
	within 20 eval '! kubectl get pod -n gpushare-system "shadow-'"$uid"'"'
}

@test "controller: an agent's account deletes no pod without a token of that pod's node" {
	pod kept '' '' ''
	fails_with "pods of its own node alone" kubectl delete pod kept \
		--as=system:serviceaccount:gpushare-system:gpushare-agent
}

@test "controller: an agent's account writes no ConfigMap without a node's token" {
	local name agent=system:serviceaccount:gpushare-system:gpushare-agent
	for name in gpushare-node-n1 other; do
		fails_with "its own node's view alone" kubectl create configmap "$name" \
			-n gpushare-system --as="$agent"
	done
	fails_with "its own node's view alone" kubectl replace -n gpushare-system --as="$agent" \
		-f "$GS_TOP/packaging/k8s/base/config.yaml"
	run kubectl auth can-i get configmaps -n gpushare-system --as="$agent"
	[ "$output" = no ]
}
