#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# All of packaging/k8s as it is shipped, in a real cluster: controller and agent run from our images
# as the pods that the manifests make of them. The node has our runtime, as from its package.

source "$BATS_TEST_DIRNAME/cluster.sh"

setup_file() {
	kubelet_wants || return 0
	images_want || return 0
	node_start
	network_start
	control_start
	devices_create
	# On a real node systemd does that.
	node_exec /bin/mount --make-rshared /
	kubelet_start
	network_plugins
	packaged_files
	installed_driver
	containerd_ctr -n k8s.io images import "$OUR_IMAGES" >/dev/null
	vendor_plugin_start
	within 60 node_has nvidia.com/gpu 2
	packaged_overlay
	kubectl label node "$CLUSTER_NODE" gpushare.k8s.io/agent=true >/dev/null
	kubectl apply -k "$NODE_DIR/overlay" >/dev/null
	export POD_CLASS=gpushare
}

setup() {
	skip_if_lacking
}

teardown() {
	[[ -z ${WHY_SKIPPED:-} && -z ${BATS_TEST_COMPLETED:-} ]] || return 0
	kubectl get pods -A -o wide >&2
	ours_say >&2
	kubectl exec -n gpushare-system daemonset/gpushare-agent -- gpusharectl status >&2
}

teardown_file() {
	node_stop
}

# installed_driver: one more vendor, whose library is on the node alone, behind a link as it is
# there; of its two cards one has a node.
installed_driver() {
	local dir=/opt/acme
	node_exec /bin/mkdir -p "$dir/usr/lib64" "$dir/current"
	node_exec /bin/cp "$GS_TOP/build/programs/libfakenvml.so" "$dir/current/libacme.so.7"
	node_exec /bin/ln -s /current/libacme.so.7 "$dir/usr/lib64/libacme.so"
	node_exec /bin/mknod /dev/acme3 c 1 3
	node_exec /bin/sh -c 'cat >/var/lib/gpushare/vendors/acme.json' <<-'EOT'
		{"name": "acme", "title": "x", "mount_roots": ["", "/opt/acme"],
		 "nodes": [{"glob": "/dev/acme[0-9]*", "kind": "card"}],
		 "inventory": {"source": "nvml", "library": "libacme.so", "id": "{uuid}"},
		 "load": {"source": "nvml", "library": "libacme.so", "processes": "nvml"}}
	EOT
}

# ours_say: what controller and agent wrote.
ours_say() {
	kubectl logs -n gpushare-system -l app.kubernetes.io/name=gpushare-controller --tail=-1
	kubectl logs -n gpushare-system -l app.kubernetes.io/name=gpushare-agent --tail=-1
}

# cards: what each of its pods sees of them.
cards() {
	local pod
	for pod in $(kubectl get pods -l app=service -o name); do
		kubectl exec "$pod" -- /bin/probe /dev/nvidia0 /dev/nvidia1 | xargs
	done
}

# containers: the service's, by name and id.
containers() {
	kubectl get pods -l app=service -o json | json - "[
		p['metadata']['name'] + ' ' + c.get('containerID', '')
		for p in d['items'] for c in p['status'].get('containerStatuses', ())]"
}

@test "daemonset: controller and agent are ready" {
	kubectl wait -n gpushare-system --timeout=100s daemonset/gpushare-agent \
		--for='jsonpath={.status.numberReady}=1'
	kubectl wait -n gpushare-system --timeout=100s deployment/gpushare-controller \
		--for='jsonpath={.status.readyReplicas}=2'
}

@test "daemonset: the agent finds cards by a library that is on the node alone" {
	within 30 agent_shows acme-GPU-0000
}

# agent_shows CARD
agent_shows() {
	kubectl exec -n gpushare-system daemonset/gpushare-agent -- gpusharectl inspect |
		grep -q "$1"
}

@test "daemonset: the Helm chart would change nothing in it" {
	"$GS_PYTHON" - "$GS_TOP/tests/k8s" >"$NODE_DIR/chart.yaml" <<-'EOT'
		import json, sys, yaml
		sys.path.insert(0, sys.argv[1])
		import manifests
		objects = manifests.keyed(manifests.chart())
		del objects["ConfigMap", "gpushare-config", manifests.SYSTEM]
		# CEL knows both quotes.
		text = json.dumps(list(objects.values()))
		text = text.replace('[\\"gpushare-data\\"]', "['gpushare-data']")
		yaml.safe_dump_all(json.loads(text), sys.stdout)
	EOT
	kubectl diff -f "$NODE_DIR/chart.yaml"
}

@test "daemonset: two pods share a card, by the switch, the class and the agent's plugins" {
	service 2
	service_runs 2
	equals "$(node_offers)" 2
	equals "$(cards | grep -c ENXIO)" 2
	equals "$(cards | sort -u | wc -l)" 1
}

# node_offers: how many shares.
node_offers() {
	kubectl get node "$CLUSTER_NODE" -o json |
		json - "d['status']['allocatable'].get('gpushare/share-gpu')"
}

@test "daemonset: pods outlive the agent's pod and the controller's, and others come after them" {
	local before
	before=$(containers)
	kubectl rollout restart -n gpushare-system daemonset/gpushare-agent \
		deployment/gpushare-controller >/dev/null
	kubectl rollout status -n gpushare-system --timeout=60s daemonset/gpushare-agent
	kubectl rollout status -n gpushare-system --timeout=60s deployment/gpushare-controller
	kubectl scale deployment/service --replicas=3 >/dev/null
	service_runs 3
	equals "$(containers | grep -Fxf <(echo "$before"))" "$before"
}

@test "daemonset: an agent ends its node's pods, tells why, writes its view; nothing is denied" {
	local first
	first=$(containers | head -n 1)
	kubectl delete pods -n gpushare-system -l app.kubernetes.io/managed-by=gpushare-controller \
		--now >/dev/null
	within 60 has_gone "${first##* }"
	within 20 eval 'kubectl events | grep -q GpuReclaimed'
	service_runs 3
	within 20 kubectl get configmap -n gpushare-system "gpushare-node-$CLUSTER_NODE"
	matches "$(ours_say)" "the kubelet took a device plugin.*a pod is deleted"
	lacks "$(ours_say)" "answers 40[13]|orbidden|denied"
}

# has_gone CONTAINER
has_gone() {
	lacks "$(containers)" "$1"
}

@test "daemonset: its deletion leaves nothing in the cluster, and hurts no pod that has a card" {
	local kinds left state fields='{.status.containerStatuses[0].containerID} {.status.phase}'
	kubectl delete deployment/service --now >/dev/null
	pod_start plain nvidia.com/gpu=1
	state=$(kubectl get pod plain -o "jsonpath=$fields")
	kubectl delete -k "$NODE_DIR/overlay" --timeout=100s >/dev/null

	kinds=$(kubectl api-resources --verbs=list -o name | paste -sd ,)
	left=$(kubectl get "$kinds" -A -o name 2>/dev/null)
	matches "$left" pod/plain
	lacks "$left" gpushare
	within 30 node_has gpushare/share-gpu 0
	# Nobody is asked any more.
	export POD_CLASS='' POD_ANNOTATIONS='gpushare.k8s.io/share: "true"'
	pod_start after nvidia.com/gpu=1
	equals "$(kubectl get pod plain -o "jsonpath=$fields")" "$state"
}
