# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# gpushared on the node of a test cluster, and gpushare-controller beside the control plane.

# agent_config: our configuration, with a vendor whose inventory are files: cards without a driver
# have no other. It calls its cards as vendor_plugin_start does.
agent_config() {
	local number
	mkdir -p "$NODE_DIR/vendors"
	cp "$GS_TOP"/vendors/*.json "$NODE_DIR/vendors"
	"$GS_PYTHON" - "$GS_TOP/vendors/nvidia.json" "$NODE_DIR" <<-'EOT'
		import json, sys
		vendor, node = json.load(open(sys.argv[1])), sys.argv[2]
		vendor["inventory"] = {
		    "source": "files", "cards": node + "/cards/card[0-9]*",
		    "nodes": ["/dev/nvidia{number}"], "id": "{uuid}", "select": "{uuid}",
		    "fields": {"uuid": "uuid", "number": "index"}}
		vendor["load"] = {
		    "source": "files", "busy": "load", "memory_used": "mem_used",
		    "memory_total": "mem_total", "processes": "open-files"}
		json.dump(vendor, open(node + "/vendors/nvidia.json", "w"))
	EOT
	for number in 0 1; do
		mkdir -p "$NODE_DIR/cards/card$number"
		(
			cd "$NODE_DIR/cards/card$number" || exit
			echo "card-$number" >uuid
			echo "$number" >index
			echo 0 >load
			echo 0 >mem_used
			echo 1000 >mem_total
		)
	done
	config_write "controller=$(
		cat <<-EOT
			{"namespace": "gpushare-system", "address": "$CLUSTER_IP",
			 "platform_users": [
			  "system:serviceaccount:gpushare-system:gpushare-controller"],
			 "shadow": {"image": "$IMAGE_PAUSE", "quiet": "5s"},
			 "kubernetes": {"server": "$CLUSTER_SERVER",
			                "ca_file": "$NODE_DIR/pki/ca.crt",
			                "token_file": "$NODE_DIR/controller.token"}}
		EOT
	)" "vendor_dirs=[\"$NODE_DIR/vendors\"]" "agent=$(
		cat <<-EOT
			{"probe": "$GS_BIN/gpushare-probe", "load_period": "500ms",
			 "kubernetes": {"server": "$CLUSTER_SERVER", "node": "$CLUSTER_NODE",
			                "ca_file": "$NODE_DIR/pki/ca.crt",
			                "token_file": "$NODE_DIR/agent.token"}}
		EOT
	)"
}

# manifests_apply [FILE…]: what packaging/k8s brings to a cluster, or these files of it. Its
# controllers are made by nobody: they have no image here.
manifests_apply() {
	local file files=("$@") base=$GS_TOP/packaging/k8s/base
	(($# > 0)) || mapfile -t files < <(awk '/^  - / { print $2 }' "$base/kustomization.yaml")
	for file in "${files[@]}"; do
		sed 's/^  replicas: .*/  replicas: 0/' "$base/$file" |
			kubectl apply -f - >/dev/null
	done
}

# agent_manifests: the agent's account and rights.
agent_manifests() {
	manifests_apply namespace.yaml agent-rbac.yaml agent-policy.yaml
}

# agent_token [ACCOUNT]: prints one that is bound to the node, which has to be there.
agent_token() {
	kubectl create token -n gpushare-system "${1:-gpushare-agent}" \
		--bound-object-kind=Node --bound-object-name="$CLUSTER_NODE"
}

# agent_account: of the node, which is there.
agent_account() {
	agent_manifests
	agent_token >"$NODE_DIR/agent.token"
}

# agent_start: may be called again after agent_stop.
agent_start() {
	node_spawn gpushared "$GS_BIN/gpushared"
	node_wait 30 gpushared "$GS_BIN/gpusharectl" status
}

agent_stop() {
	node_end gpushared "${1:-TERM}"
}

# controller_start: with all manifests; returns when pods are admitted by it. It is none of the
# cluster's pods: where its Service leads to is written by hand.
controller_start() {
	manifests_apply
	kubectl apply -f - >/dev/null <<-EOT
		apiVersion: discovery.k8s.io/v1
		kind: EndpointSlice
		metadata:
		  name: gpushare-controller
		  namespace: gpushare-system
		  labels: {kubernetes.io/service-name: gpushare-controller}
		addressType: IPv4
		endpoints: [{addresses: [$CLUSTER_IP], conditions: {ready: true}}]
		ports: [{name: https, port: 8443, protocol: TCP}]
	EOT
	kubectl create token -n gpushare-system gpushare-controller >"$NODE_DIR/controller.token"
	node_spawn controller "$GS_BIN/gpushare-controller"
	within 60 controller_is_asked
}

# Nobody but the platform may write this; pods of our own namespace are asked about, too.
controller_is_asked() {
	local said
	said=$(POD_ANNOTATIONS='gpushare.k8s.io/vcpu: "1"' pod_spec probe |
		kubectl create --dry-run=server -f - 2>&1) || true
	[[ $said == *'denied the request'* ]]
}

# controller_packaged [PLATFORM-USER…]: gpushare-controller with the rights that these manifests
# give, asked by their webhook; those users may write what only the platform may. SHADOW_CARD is the
# resource of the cards that are shared, if not NVIDIA's.
controller_packaged() {
	local user users=''
	for user in system:serviceaccount:gpushare-system:gpushare-controller "$@"; do
		users+="${users:+, }\"$user\""
	done
	manifests_apply
	node_exec /bin/sh -c "echo '127.0.0.1 $CONTROLLER_HOST' >>/etc/hosts"
	controller_asked 8443
	kubectl create token -n gpushare-system gpushare-controller >"$NODE_DIR/controller.token"
	cat >"$NODE_DIR/controller.json" <<-EOT
		{"vendor_dirs": ["$GS_TOP/vendors", "$GS_TOP/tests/fakegpu"], "controller": {
		  "namespace": "gpushare-system", "data_classes": ["gpushare-data"],
		  "platform_users": [$users], "port": 8443,
		  "shadow": {"image": "${IMAGE_PAUSE:-none}", "quiet": "5s",
		             "card": "${SHADOW_CARD:-nvidia.com/gpu}"},
		  "kubernetes": {"server": "$CLUSTER_SERVER", "ca_file": "$NODE_DIR/pki/ca.crt",
		                 "token_file": "$NODE_DIR/controller.token"}}}
	EOT
	controller_run controller 8443
	within 40 grep -q "authorities are written" "$NODE_DIR/log/controller"
}

# pod NAME METADATA SPEC RESOURCES: JSON members, to be reviewed. No scheduler looks at it.
pod() {
	kubectl create -f - <<-EOT
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1" $2}, "spec": {
		  "schedulerName": "nobody" $3,
		  "containers": [{"name": "main", "image": "none" $4}]}}
	EOT
}

# There is no proxy for its Service: controllers are processes beside the control plane, found by
# its name, and one of them is asked.
CONTROLLER_HOST=gpushare-controller.gpushare-system.svc

# controller_asked PORT: it is that one.
controller_asked() {
	local client="{service: null, url: 'https://$CONTROLLER_HOST:$1/admit'}"
	kubectl patch mutatingwebhookconfiguration gpushare -p "webhooks:
- {name: pods.gpushare.k8s.io, clientConfig: $client}
- {name: inherit.gpushare.k8s.io, clientConfig: $client}" >/dev/null
}

# controller_run NAME PORT: one more of those, or one that was ended again. Returns when it can be
# asked.
controller_run() {
	sed "s/\"port\": 8443/\"port\": $2/" "$NODE_DIR/controller.json" >"$NODE_DIR/$1-run.json"
	node_spawn "$1" /usr/bin/env "POD_NAME=$1" "$GS_BUILD/gpushare-controller" \
		--config "$NODE_DIR/$1-run.json"
	within 40 grep -q "showing the Secret's certificate" "$NODE_DIR/log/$1"
}
