#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A real kubelet and containerd with our runtime, under a real control plane.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	kubelet_wants || return 0
	cluster_start
	vendor_plugin_start
	within 60 node_has nvidia.com/gpu 2
	kubectl apply -f "$GS_TOP/packaging/k8s/base/runtimeclass.yaml"
}

setup() {
	skip_if_lacking
}

teardown() {
	[[ -z ${WHY_SKIPPED:-} ]] || return 0
	pods_delete
}

teardown_file() {
	node_stop
}

@test "node: a pod with a card sees that one, a pod without sees none" {
	local answers
	pod_start with nvidia.com/gpu=1
	pod_start without
	answers=$(pod_probe with /dev/nvidia0 /dev/nvidia1)
	equals "$(grep -c ENXIO <<<"$answers")" 1
	absent_in "$(pod_probe without /dev/nvidia0 /dev/nvidia1)" /dev/nvidia0 /dev/nvidia1
	denied_in "$(pod_probe without c:195:0 c:195:1)" c:195:0 c:195:1
}

@test "node: a container gets its neighbour's card, as the annotation asks" {
	local answers
	kubectl create -f - >/dev/null <<-EOT
		apiVersion: v1
		kind: Pod
		metadata:
		  name: dev
		  annotations: {gpushare.k8s.io/container-devices-from.dind: _/_/main}
		spec:
		  runtimeClassName: gpushare
		  terminationGracePeriodSeconds: 0
		  containers:
		  - name: main
		    image: $IMAGE
		    resources: {limits: {nvidia.com/gpu: 1}}
		  - name: dind
		    image: $IMAGE
	EOT
	pod_runs dev
	answers=$(kubectl exec dev -c main -- /bin/probe /dev/nvidia0 /dev/nvidia1)
	equals "$(grep -c ENXIO <<<"$answers")" 1
	equals "$(kubectl exec dev -c dind -- /bin/probe /dev/nvidia0 /dev/nvidia1)" "$answers"
}

@test "node: pods and the vendor's cards outlive a restart of the kubelet" {
	local before
	pod_start with nvidia.com/gpu=1
	before=$(kubectl get pod with -o 'jsonpath={.status.containerStatuses[0].containerID}')
	kubelet_stop
	kubelet_run
	within 60 registered 2
	within 60 node_has nvidia.com/gpu 2
	pod_start second nvidia.com/gpu=1
	equals "$(kubectl get pod with -o 'jsonpath={.status.containerStatuses[0].containerID}')" \
		"$before"
	pod_spec third nvidia.com/gpu=1 | kubectl create -f - >/dev/null
	within 30 events_say third 'Insufficient nvidia.com/gpu'
}

# registered N: so often the vendor's plugin was taken by a kubelet.
registered() {
	(($(grep -c registered "$NODE_DIR/log/vendorplugin") == $1))
}
