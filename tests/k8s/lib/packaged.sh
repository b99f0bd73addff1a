# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What packaging/k8s brings to a cluster, as pods that run: images, a network for pods, and where
# kube-proxy would lead.

# images_want: for setup_file, as control_wants. Makes OUR_IMAGES, an archive with both images;
# GPUSHARE_IMAGES names one that is there already.
images_want() {
	export OUR_IMAGES=${GPUSHARE_IMAGES:-}
	[[ -z $OUR_IMAGES ]] || return 0
	needs podman dh debootstrap /usr/lib/cni/ptp || return 1
	OUR_IMAGES=$BATS_FILE_TMPDIR/images.tar
	"$GS_TOP/tests/packages/image.sh" "$OUR_IMAGES" >"$BATS_FILE_TMPDIR/images.log" 2>&1 || {
		cat "$BATS_FILE_TMPDIR/images.log" >&2
		return 1
	}
}

# network_start: between node_start and control_start. Pods have an address each and reach the API
# server at its Service's, which is the node's own. Nothing else of kube-proxy is needed: the API
# server itself finds a webhook's pods.
network_start() {
	export CLUSTER_SERVER=https://$CLUSTER_IP:443
	node_exec /bin/busybox ip address add "$CLUSTER_SERVICE_IP/32" dev lo
	node_exec /bin/mkdir -p /etc/cni/net.d
	# Before 10-none.json.
	node_exec /bin/sh -c 'cat >/etc/cni/net.d/05-pods.conflist' <<-'EOT'
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {
		  "type": "host-local", "ranges": [[{"subnet": "10.98.0.0/24"}]],
		  "routes": [{"dst": "0.0.0.0/0"}]}}]}
	EOT
}

# network_plugins: after kubelet_surroundings, before there are pods.
network_plugins() {
	node_exec /bin/cp /usr/lib/cni/{ptp,host-local} /opt/cni/bin
}

# packaged_files: after kubelet_surroundings; files that an agent in a pod finds, and the node's
# runtime with it: cards without a driver have no other inventory. See agent_config.
packaged_files() {
	local dir=/var/lib/gpushare
	agent_config
	sed -i "s#$NODE_DIR#$dir#g" "$NODE_DIR/vendors/nvidia.json"
	node_exec /bin/mkdir "$dir"
	node_exec /bin/cp -r "$NODE_DIR/vendors" "$NODE_DIR/cards" "$dir"
	config_write "vendor_dirs=[\"$dir/vendors\"]" "lib_dir=\"$dir\""
}

# packaged_overlay: makes $NODE_DIR/overlay, which is the kustomize base with a configuration.
packaged_overlay() {
	local dir=$NODE_DIR/overlay
	mkdir "$dir"
	"$GS_PYTHON" - "$GS_TOP/packaging/k8s/base" "$IMAGE_PAUSE" >"$dir/config.yaml" <<-'EOT'
		import json, sys, yaml
		map = yaml.safe_load(open(sys.argv[1] + "/config.yaml"))
		config = json.loads(map["data"]["config.json"])
		config["vendor_dirs"] = [
		    "/usr/share/gpushare/vendors.d", "/var/lib/gpushare/vendors"]
		config["controller"]["shadow"] = {"image": sys.argv[2], "quiet": "5s"}
		config["agent"] = {"load_period": "500ms"}
		map["data"]["config.json"] = json.dumps(config)
		yaml.safe_dump(map, sys.stdout)
	EOT
	cat >"$dir/kustomization.yaml" <<-EOT
		apiVersion: kustomize.config.k8s.io/v1beta1
		kind: Kustomization
		resources: [$(realpath --relative-to "$dir" "$GS_TOP/packaging/k8s/base")]
		patches: [{path: config.yaml}]
	EOT
}
