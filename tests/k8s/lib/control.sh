# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A real control plane in a test node (tests/lib/node.sh), whose network it has alone: its ports are
# the usual ones, and nothing of it can be reached from the machine.
#
#	node_start; control_start; kubectl get nodes; node_stop

# Not 127.0.0.1: the API server and the kubelet refuse to be known by it.
export CLUSTER_IP=10.99.0.1 CLUSTER_NODE=node-1
# The node's; it is another one where the node is a machine of its own (vm.sh).
export CLUSTER_NODE_IP=$CLUSTER_IP
export CLUSTER_SERVICES=10.96.0.0/16 CLUSTER_SERVICE_IP=10.96.0.1
export CLUSTER_SERVER=https://$CLUSTER_IP:6443

# For setup_file: why there is no cluster on this machine goes into WHY_SKIPPED.
control_wants() {
	needs busybox openssl || return 1
	tools_want KUBE kubernetes
}

# control_start: everything but a node. Returns when the API can be used.
control_start() {
	node_exec /bin/busybox ip address add "$CLUSTER_IP/32" dev lo
	certs_make
	etcd_start
	apiserver_start
	controllers_start
	scheduler_start
	# Pods are refused in a namespace that has no service account yet.
	node_wait 60 kube-controller-manager \
		"$KUBE/kube" kubectl --kubeconfig "$NODE_DIR/admin.conf" \
		--cache-dir "$NODE_DIR/kubectl" get serviceaccount default
}

# kubectl ARGUMENT…, as an administrator. (With input: the node's commands have none.)
kubectl() {
	node_exec "$KUBE/kube" kubectl --kubeconfig "$NODE_DIR/admin.conf" \
		--cache-dir "$NODE_DIR/kubectl" "$@"
}

# kubectl_serve: the same for a node that is a slow machine, whose processors each call would take
# for seconds.
kubectl_serve() {
	node_spawn kubectl "$GS_PYTHON" "$GS_TOP/tests/k8s/remote.py" "$CLUSTER_IP" 8001 \
		"$KUBE/kube" kubectl --kubeconfig "$NODE_DIR/admin.conf" \
		--cache-dir "$NODE_DIR/kubectl"
}

# Nothing here has to outlive a power cut.
etcd_start() {
	node_spawn etcd "$KUBE/kube" etcd --data-dir "$NODE_DIR/etcd" --unsafe-no-fsync \
		--listen-client-urls http://127.0.0.1:2379 \
		--advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380 --log-level warn
}

# apiserver_start [AUTHORIZATION-CONFIG]: may be called again after apiserver_stop, with all that
# was stored.
apiserver_start() {
	local pki=$NODE_DIR/pki authorization=(--authorization-mode 'Node,RBAC')
	(($# == 0)) || authorization=(--authorization-config "$1")
	node_spawn kube-apiserver "$KUBE/kube" kube-apiserver \
		--etcd-servers http://127.0.0.1:2379 \
		--advertise-address "$CLUSTER_IP" --secure-port "${CLUSTER_SERVER##*:}" \
		--tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
		--client-ca-file "$pki/ca.crt" \
		--kubelet-certificate-authority "$pki/ca.crt" \
		--kubelet-client-certificate "$pki/apiserver-client.crt" \
		--kubelet-client-key "$pki/apiserver-client.key" \
		--kubelet-preferred-address-types InternalIP \
		--service-account-issuer https://kubernetes.default.svc \
		--service-account-key-file "$pki/service-accounts.pub" \
		--service-account-signing-key-file "$pki/service-accounts.key" \
		--service-cluster-ip-range "$CLUSTER_SERVICES" \
		"${authorization[@]}" --enable-admission-plugins NodeRestriction \
		--enable-aggregator-routing --allow-privileged
	node_wait 120 kube-apiserver "$KUBE/kube" kubectl --kubeconfig "$NODE_DIR/admin.conf" \
		--cache-dir "$NODE_DIR/kubectl" get --raw /readyz
}

# As if the power had failed: asked to end, it waits a minute for who watches.
apiserver_stop() {
	node_end kube-apiserver KILL
}

controllers_start() {
	node_spawn kube-controller-manager "$KUBE/kube" kube-controller-manager \
		--kubeconfig "$NODE_DIR/kube-controller-manager.conf" --leader-elect=false \
		--bind-address 127.0.0.1 --cert-dir "$NODE_DIR/kube-controller-manager" \
		--root-ca-file "$NODE_DIR/pki/ca.crt" \
		--service-account-private-key-file "$NODE_DIR/pki/service-accounts.key" \
		--use-service-account-credentials
}

scheduler_start() {
	node_spawn kube-scheduler "$KUBE/kube" kube-scheduler \
		--kubeconfig "$NODE_DIR/kube-scheduler.conf" --leader-elect=false \
		--bind-address 127.0.0.1 --cert-dir "$NODE_DIR/kube-scheduler"
}
