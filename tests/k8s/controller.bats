#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-controller and the manifests of packaging/k8s, with the rights that these give, at a real
# API server that asks its webhook.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	control_wants || return 0
	node_start
	control_start
	controller_packaged
}

setup() {
	skip_if_lacking
}

teardown_file() {
	node_stop
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

@test "controller: who misspells a key is warned, and has the pod" {
	run pod warned ', "annotations": {"gpushare.k8s.io/shaer": "true"}' '' ''
	[ "$status" = 0 ]
	matches "$output" 'Warning: gpushare:.*"gpushare.k8s.io/shaer" is none.*pod/warned created'
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

# admitted TESTS: those of admitted.py, at this API server.
admitted() {
	node_exec "$GS_PYTHON" "$GS_TOP/tests/k8s/admitted.py" "$@"
}

@test "controller: whoever steals its token can make and delete shadow pods, and no more" {
	admitted token
}

@test "controller: its metrics are for accounts that may get them" {
	admitted metrics
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

@test "controller: the overlay and the configuration that its page shows" {
	local dir=$NODE_DIR/gpushare
	mkdir "$dir"
	doc_block docs/controller.md overlay |
		sed "s#\.\./gpushare-base#$(realpath --relative-to "$dir" \
			"$GS_TOP/packaging/k8s/base")#" >"$dir/kustomization.yaml"
	doc_block docs/controller.md cluster-config >"$dir/config.json"
	# it fails for want of an installed catalogue
	run "$GS_BIN/gpusharectl" config check "$dir/config.json"
	matches "$output" "/config.json: ok"
	kubectl create configmap gpushare-config -n gpushare-system --dry-run=client -o yaml \
		--from-file="$dir/config.json" >"$dir/config.yaml"
	kubectl kustomize "$dir" >"$dir/rendered"
	equals "$(sed -n 's/^ *image: \(.*\):.*/\1/p' "$dir/rendered" | sort | xargs)" \
		"registry.example/gpushare-agent registry.example/gpushare-controller"
	grep -q '"image": "registry.example/pause:3.9"' "$dir/rendered"
}

@test "controller: the pods that the page for their authors shows" {
	"$GS_PYTHON" - "$GS_TOP/docs/pod-author.md" >"$NODE_DIR/shown.yaml" <<-'EOT'
		import re, sys, yaml
		blocks = re.findall(r"^```yaml\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S)
		shown = [yaml.safe_load(b) for b in blocks if b.startswith("apiVersion:")]
		pod = {"apiVersion": "v1", "kind": "Pod"}
		for o in shown: o["metadata"]["namespace"] = "default"
		# what their controllers would make of them
		shown += [dict(pod, metadata=dict(o["spec"]["template"].get("metadata", {}),
		                                  name=o["metadata"]["name"], namespace="default"),
		               spec=dict(o["spec"]["template"]["spec"], restartPolicy="Never"))
		          for o in shown if "template" in o["spec"]]
		yaml.safe_dump_all(shown, sys.stdout)
	EOT
	run kubectl create --dry-run=server -f "$NODE_DIR/shown.yaml" -o name
	equals "$(xargs <<<"$output")" \
		"pod/dev deployment.apps/serve job.batch/batch pod/serve pod/batch"
}

# limited QUOTA: the API server has counted what is there, and refuses what is beyond it.
limited() {
	[[ -n $(kubectl get resourcequota "$1" -n team-a -o 'jsonpath={.status.hard}') ]]
}

@test "controller: spot pods, data jobs and share pods, and the quotas that its page shows" {
	local asks=', "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}'
	local computes='"limits": {"cpu": "2", "memory": "1Gi"' in_team=', "namespace": "team-a"'
	kubectl create namespace team-a >/dev/null
	# The numbers smaller, so that one pod is too much. doc_block would take indentation away.
	sed -n '/<!-- test: quota -->/,/^```$/{/^<!--\|^```/d; p}' "$GS_TOP/docs/controller.md" |
		sed 's/requests.cpu: "100"/requests.cpu: "1"/; s/share-gpu: "8"/share-gpu: "1"/
			s/vcpu: 100k/vcpu: 3k/' >"$NODE_DIR/quota.yaml"
	kubectl create -f "$NODE_DIR/quota.yaml" >/dev/null
	within 20 limited computing
	within 20 limited cards
	fails_with "exceeded quota: computing" \
		pod plain "$in_team" '' ", \"resources\": {$computes}}"
	pod job "$in_team" ', "priorityClassName": "gpushare-data"' "$asks"
	fails_with "exceeded quota: cards, requested: requests.gpushare/vcpu=2k" \
		pod another "$in_team" ', "priorityClassName": "gpushare-data"' "$asks"
	fails_with "exceeded quota: cards, requested: requests.gpushare/share-gpu=2" \
		pod shares "$in_team, \"annotations\": {\"gpushare.k8s.io/share\": \"true\"}" '' \
		', "resources": {"limits": {"nvidia.com/gpu": "2"}}'
}

@test "controller: while none runs, others' changes go on, and nobody gets past the webhook" {
	pod before ', "annotations": {"gpushare.k8s.io/share": "true"}' '' \
		', "resources": {"limits": {"nvidia.com/gpu": "1"}}'
	node_end controller
	admitted away
}

@test "controller: an agent lists its own node's pods alone, where the API server is told so" {
	# doc_block would take its indentation away
	sed -n '/<!-- test: authorization -->/,/^```$/{/^<!--\|^```/d; p}' \
		"$GS_TOP/docs/controller.md" |
		sed "s|/etc/kubernetes|$NODE_DIR|" >"$NODE_DIR/authorization"
	cat >"$NODE_DIR/nobody.conf" <<-'EOT'
		apiVersion: v1
		kind: Config
		clusters: [{name: nobody, cluster: {server: "https://127.0.0.1:1"}}]
		contexts: [{name: nobody, context: {cluster: nobody, user: ""}}]
		current-context: nobody
	EOT
	apiserver_stop
	apiserver_start "$NODE_DIR/authorization"
	admitted agent
}
