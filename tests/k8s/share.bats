#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One card for several pods: gpushared's device plugin at a real kubelet, under a real scheduler.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	kubelet_wants || return 0
	node_start
	control_start
	devices_create
	agent_config
	kubelet_start
	agent_account
	vendor_plugin_start
	agent_start
	within 60 node_has nvidia.com/gpu 2
	kubectl apply -f "$GS_TOP/packaging/k8s/base/runtimeclass.yaml"
	export POD_CLASS=gpushare
}

setup() {
	skip_if_lacking
}

teardown() {
	[[ -z ${WHY_SKIPPED:-} ]] || return 0
	if [[ -z ${BATS_TEST_COMPLETED:-} ]]; then
		tail -n 20 "$NODE_DIR/log/gpushared" >&2
	fi
	pods_delete
}

teardown_file() {
	node_stop
}

# shadow NAME: a pod that holds a card for others.
shadow() {
	POD_ANNOTATIONS='gpushare.k8s.io/shadow: "true"' pod_start "$1" nvidia.com/gpu=1
}

@test "share: two pods get the card that a shadow pod holds, a third one waits" {
	local answers
	shadow shadow
	within 60 node_has gpushare/share-gpu 2
	pod_start one gpushare/share-gpu=1
	pod_start two gpushare/share-gpu=1
	answers=$(pod_probe shadow /dev/nvidia0 /dev/nvidia1)
	equals "$(grep -c ENXIO <<<"$answers")" 1
	equals "$(pod_probe one /dev/nvidia0 /dev/nvidia1)" "$answers"
	equals "$(pod_probe two /dev/nvidia0 /dev/nvidia1)" "$answers"

	pod_spec three gpushare/share-gpu=1 | kubectl create -f - >/dev/null
	within 30 events_say three 'Insufficient gpushare/share-gpu'
	kubectl delete pod one --now >/dev/null
	pod_runs three
}

@test "share: pods end with the shadow pod whose card they have, and say so" {
	shadow shadow
	within 60 node_has gpushare/share-gpu 2
	pod_start one gpushare/share-gpu=1
	kubectl delete pod shadow --now >/dev/null
	within 60 node_has gpushare/share-gpu 0
	within 60 gone one
	matches "$(kubectl events --for pod/one)" GpuReclaimed
}

# gone POD
gone() {
	! kubectl get pod "$1" 2>/dev/null
}

@test "share: pods outlive agent and kubelet, and others come after them" {
	local before card fields='{.items[*].status.containerStatuses[0].containerID}'
	shadow shadow
	within 60 node_has gpushare/share-gpu 2
	pod_start one gpushare/share-gpu=1
	before=$(kubectl get pods -o "jsonpath=$fields")
	card=$(pod_probe shadow /dev/nvidia0 /dev/nvidia1)
	agent_stop KILL
	kubelet_stop
	kubelet_run
	agent_start
	within 60 node_has gpushare/share-gpu 2
	pod_start two gpushare/share-gpu=1
	equals "$(pod_probe two /dev/nvidia0 /dev/nvidia1)" "$card"
	kubectl delete pod two --now >/dev/null
	equals "$(kubectl get pods -o "jsonpath=$fields")" "$before"
	equals "$(pod_probe one /dev/nvidia0 /dev/nvidia1)" "$card"
}

@test "share: who names another pod's card without having been given it is refused" {
	shadow shadow
	POD_ANNOTATIONS='gpushare.k8s.io/container-devices-from.main: default/shadow/main' \
		pod_spec thief | kubectl create -f - >/dev/null
	within 60 events_say thief 'gpushare.*grant'
	fails_with . kubectl wait --for=condition=Ready --timeout=1s pod/thief
}

@test "share: a plugin whose socket is deleted is back by itself" {
	local dir=/var/lib/kubelet/device-plugins
	shadow shadow
	within 60 node_has gpushare/share-gpu 2
	node_exec /bin/rm "$dir/gpushare-share.sock"
	within 60 node_exec /usr/bin/test -S "$dir/gpushare-share.sock"
	pod_start one gpushare/share-gpu=1
}
