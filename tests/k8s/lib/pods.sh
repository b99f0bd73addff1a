# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Pods of a test cluster, and what they see.

# vendor_plugin_start: a vendor's device plugin with two cards, card-0 and card-1, which are
# devices.sh's.
vendor_plugin_start() {
	mkdir -p "$NODE_DIR/vendorplugin"
	node_spawn vendorplugin "$GS_PYTHON" "$GS_TOP/tests/k8s/vendorplugin.py" \
		"$NODE_DIR/vendorplugin" nvidia.com/gpu NVIDIA_VISIBLE_DEVICES \
		/dev/nvidiactl,/dev/nvidia-uvm,/dev/nvidia-uvm-tools \
		card-0=/dev/nvidia0 card-1=/dev/nvidia1
}

# pod_spec NAME [RESOURCE=NUMBER…]: prints a pod that sleeps, with one container, main. POD_CLASS
# is its runtime class, POD_ANNOTATIONS are members of its annotations.
pod_spec() {
	local name=$1 resource limits=
	shift
	for resource; do
		limits+="${limits:+, }${resource%%=*}: \"${resource#*=}\""
	done
	cat <<-EOT
		apiVersion: v1
		kind: Pod
		metadata: {name: $name, annotations: {${POD_ANNOTATIONS:-}}}
		spec:
		  runtimeClassName: ${POD_CLASS:-}
		  terminationGracePeriodSeconds: 0
		  automountServiceAccountToken: false
		  containers:
		  - name: main
		    image: $IMAGE
		    imagePullPolicy: Never
		    resources: {limits: {$limits}}
	EOT
}

# pod_start NAME [RESOURCE=NUMBER…]: makes it and waits until it runs.
pod_start() {
	pod_spec "$@" | kubectl create -f - >/dev/null
	pod_runs "$1"
}

# pod_runs NAME [SECONDS]
pod_runs() {
	kubectl wait --for=condition=Ready --timeout="${2:-60}s" "pod/$1" >/dev/null || {
		kubectl describe pod "$1" >&2
		return 1
	}
}

# pod_probe NAME PATH|NUMBER…: what opening them answers in its first container.
pod_probe() {
	local name=$1
	shift
	kubectl exec "$name" -- /bin/probe "$@"
}

# node_has RESOURCE NUMBER: that many can be allocated on the node.
node_has() {
	[[ $(kubectl get node "$CLUSTER_NODE" -o json |
		json - "d['status']['allocatable'].get('$1')") == "$2" ]]
}

# events_say POD PATTERN: an Event on it does.
events_say() {
	kubectl events --for "pod/$1" | grep -q "$2"
}

# pods_delete: all of the namespace default; waits until they are gone.
pods_delete() {
	kubectl delete pods --all --now --timeout=60s >/dev/null
}

# service REPLICAS [NAMESPACE]: an inference service with the switch on. POD_CLASS is as above.
service() {
	kubectl create -n "${2:-default}" -f - >/dev/null <<-EOT
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: service}
		spec:
		  replicas: $1
		  selector: {matchLabels: {app: service}}
		  template:
		    metadata:
		      labels: {app: service}
		      annotations: {gpushare.k8s.io/share: "true"}
		    spec:
		      runtimeClassName: ${POD_CLASS:-}
		      terminationGracePeriodSeconds: 0
		      containers:
		      - name: main
		        image: $IMAGE
		        resources: {limits: {nvidia.com/gpu: 1}}
	EOT
}

# service_runs REPLICAS [NAMESPACE]: so many pods do.
service_runs() {
	kubectl wait -n "${2:-default}" --for="jsonpath={.status.readyReplicas}=$1" --timeout=90s \
		deployment/service >/dev/null
}
