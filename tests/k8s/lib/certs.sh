# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The certificates of a test cluster, in $NODE_DIR/pki: an authority of its own, a server's and a
# client's for each part. What each is called decides what RBAC lets it do: "PKI certificates and
# requirements", Kubernetes documentation.

# certs_make: all of them, for a control plane at $CLUSTER_IP and a node at $CLUSTER_NODE_IP.
certs_make() {
	local dir=$NODE_DIR/pki
	mkdir -m 0700 "$dir"
	certs_key "$dir/ca"
	openssl req -x509 -new -key "$dir/ca.key" -days 2 -subj /CN=kubernetes \
		-addext keyUsage=critical,keyCertSign,digitalSignature -out "$dir/ca.crt"
	certs_key "$dir/service-accounts"
	openssl pkey -in "$dir/service-accounts.key" -pubout -out "$dir/service-accounts.pub"

	certs_sign apiserver /CN=kube-apiserver serverAuth "IP:$CLUSTER_IP,IP:127.0.0.1,$(
		)IP:$CLUSTER_SERVICE_IP,DNS:kubernetes.default.svc,DNS:localhost"
	certs_sign kubelet-server "/O=system:nodes/CN=system:node:$CLUSTER_NODE" serverAuth \
		"IP:$CLUSTER_NODE_IP,DNS:$CLUSTER_NODE"
	# The API server itself, towards the kubelet (logs, exec).
	certs_sign apiserver-client /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth

	certs_client admin /O=system:masters/CN=admin
	certs_client kube-controller-manager /CN=system:kube-controller-manager
	certs_client kube-scheduler /CN=system:kube-scheduler
	certs_client kubelet "/O=system:nodes/CN=system:node:$CLUSTER_NODE"
}

certs_key() {
	openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"
}

# certs_sign NAME SUBJECT USAGE [ALTERNATIVE-NAMES]
certs_sign() {
	local dir=$NODE_DIR/pki name=$1 subject=$2 usage=$3 names=${4:-}
	certs_key "$dir/$name"
	openssl req -new -key "$dir/$name.key" -subj "$subject" |
		openssl x509 -req -days 2 -CA "$dir/ca.crt" -CAkey "$dir/ca.key" \
			-CAcreateserial -out "$dir/$name.crt" -extfile <(
			echo "extendedKeyUsage=$usage"
			[[ -z $names ]] || echo "subjectAltName=$names"
		) 2>/dev/null
}

# certs_client NAME SUBJECT: a certificate, and $NODE_DIR/NAME.conf, a kubeconfig that uses it.
certs_client() {
	local dir=$NODE_DIR/pki
	certs_sign "$1" "$2" clientAuth
	cat >"$NODE_DIR/$1.conf" <<-EOT
		apiVersion: v1
		kind: Config
		clusters:
		- name: test
		  cluster: {server: "$CLUSTER_SERVER", certificate-authority: $dir/ca.crt}
		users:
		- name: $1
		  user: {client-certificate: $dir/$1.crt, client-key: $dir/$1.key}
		contexts:
		- name: test
		  context: {cluster: test, user: $1}
		current-context: test
	EOT
}
