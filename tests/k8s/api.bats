#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The agent's API client against a real API server: two implementations meet.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	control_wants || return 0
	image_build
	node_start
	control_start
	agent_manifests
	kubectl create serviceaccount stranger -n gpushare-system
	kubectl apply -f - <<-EOT
		# Pods of a node that is not there would be collected.
		apiVersion: v1
		kind: Node
		metadata: {name: $CLUSTER_NODE}
	EOT
}

setup() {
	skip_if_lacking
	client_start
}

teardown() {
	[[ -z ${WHY_SKIPPED:-} ]] || return 0
	client_end
	kubectl delete pods --all --grace-period=0 --force --wait=false >/dev/null 2>&1
}

teardown_file() {
	node_stop
}

# pod NAME [NODE]: makes one that no kubelet runs; sets $uid.
pod() {
	kubectl create -f - >/dev/null <<-EOT
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, annotations: {gpushare.k8s.io/lend: "true"}}
		spec:
		  nodeName: ${2:-$CLUSTER_NODE}
		  containers: [{name: main, image: none}]
	EOT
	uid=$(kubectl get pod "$1" -o 'jsonpath={.metadata.uid}')
}

# etcd_ask PATH JSON: a call of etcd's own, behind the API server's back.
etcd_ask() {
	node_exec "$GS_PYTHON" -c '
import sys, urllib.request
url, body = "http://127.0.0.1:2379" + sys.argv[1], sys.argv[2].encode()
print(urllib.request.urlopen(url, body, 30).read().decode())' "$@"
}

@test "API: pods of this node are told, as they come, change and go; others are not" {
	local uid late
	pod early
	client_order watch
	client_tells "pod default/early $uid Pending"
	client_tells synced
	pod late
	client_tells "pod default/late $uid Pending"
	late=$uid
	pod far another-node
	kubectl patch pod late --subresource=status --type=merge -p '{"status":{"phase":"Failed"}}'
	client_tells "pod default/late $late Failed"
	kubectl delete pod late --grace-period=0 --force
	client_tells "gone default/late $late.*"
	equals "$(client_told '.*default/far.*')" 0
	equals "$(client_told 'bad: .*')" 0
}

@test "API: a pod is deleted at once, and only the one that was meant" {
	local uid first
	pod same
	first=$uid
	client_order delete default same "$first"
	client_tells "deleted same 0 "
	fails_with NotFound kubectl get pod same

	# Another one came under its name.
	pod same
	client_order delete default same "$first"
	client_tells "deleted same 0 "
	within 20 test "$(client_told 'deleted same 0 ')" = 2
	equals "$(kubectl get pod same -o 'jsonpath={.metadata.uid}')" "$uid"
}

@test "API: what RBAC forbids is not done, and said in the server's words" {
	local uid
	client_end
	client_start stranger
	pod guarded
	client_order delete default guarded "$uid"
	client_tells 'bad: DELETE .* answers 403: .*cannot delete resource "pods".*'
	kubectl get pod guarded
	# A watch has to be told apart: the first complaint is the only one.
	client_end
	client_start stranger
	client_order watch
	client_tells 'bad: GET .* answers 403: .*cannot list resource "pods".*'
}

@test "API: an Event is on its pod, and the same one again raises its count" {
	local uid
	pod told
	client_order event default told "$uid" Warning GpuReclaimed 'its "user" came back'
	within 20 event_is told 1 Warning 'its "user" came back'
	client_order event default told "$uid" Warning GpuReclaimed 'its "user" came back'
	within 20 event_is told 2 Warning 'its "user" came back'
	matches "$(kubectl events --for pod/told)" 'GpuReclaimed'
	equals "$(client_told 'note: .*')" 0
}

# event_is POD COUNT TYPE MESSAGE: of the one Event on it, and it comes from this node.
event_is() {
	[[ $(kubectl get events --field-selector "involvedObject.name=$1" \
		-o "jsonpath={range .items[*]}{.count} {.type} {.message} {.source.host}{end}") == \
		"$2 $3 $4 $CLUSTER_NODE" ]]
}

@test "API: a token that is no good any more is read again" {
	local uid token
	pod early
	token=$(<"$NODE_DIR/client.token")
	echo not-a-token >"$NODE_DIR/client.token"
	client_order watch
	client_tells 'bad: .*401.*'
	echo "$token" >"$NODE_DIR/client.token"
	client_tells "pod default/early $uid Pending"
	client_tells well
}

@test "API: when its connection breaks the watch goes on where it was" {
	local uid
	pod early
	client_order watch
	client_tells synced
	client_order cut
	client_tells 'cut [1-9]'
	pod late
	client_tells "pod default/late $uid Pending"
	# Not by a second list.
	equals "$(client_told synced)" 1
	equals "$(client_told "pod default/early .*")" 1
}

@test "API: what was asked for while the server was away is done when it is back" {
	local early uid
	pod early
	early=$uid
	client_order watch
	client_tells synced
	apiserver_stop
	client_order delete default early "$early"
	client_tells 'bad: .*'
	apiserver_start
	client_tells "deleted early 0 "
	client_tells "gone default/early $early.*"
	pod late
	client_tells "pod default/late $uid Pending"
}

@test "API: what happened while the server was away, and is forgotten, is found by a new list" {
	local uid key revision
	pod early
	client_order watch
	client_tells "pod default/early $uid Pending"
	client_tells synced
	apiserver_stop
	key=$(printf %s /registry/pods/default/early | base64 -w0)
	revision=$(etcd_ask /v3/kv/deleterange "{\"key\":\"$key\"}" |
		json - 'd["header"]["revision"]')
	etcd_ask /v3/kv/compaction "{\"revision\":\"$revision\",\"physical\":true}"
	apiserver_start
	client_tells "gone default/early $uid.*"
	equals "$(client_told synced)" 2
}
