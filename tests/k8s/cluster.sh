#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Kubernetes cluster of one node, all of it real but for the cards: etcd, API server, controller
# manager, scheduler, kubelet, containerd. Nothing of it is left on the machine.
#
#	source tests/k8s/cluster.sh          for tests: cluster_start … node_stop
#	tests/k8s/cluster.sh --build         only builds Kubernetes, unless the cache has it
#	tests/k8s/cluster.sh [COMMAND…]      a cluster for as long as that runs (a shell); kubectl
#	                                     is in its PATH, and knows it

# shellcheck source=tests/lib/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/lib.sh"
for file in certs control client kubelet pods agent packaged; do
	# shellcheck source=/dev/null
	source "$GS_TOP/tests/k8s/lib/$file.sh"
done

# cluster_start: control plane and node, with cards that have no driver and our runtime.
cluster_start() {
	node_start
	control_start
	devices_create
	config_write
	kubelet_start
}

cluster_main() {
	local rc=0
	trap node_stop EXIT
	kubelet_wants || {
		echo "cluster.sh: ${WHY_SKIPPED:-it should have worked}" >&2
		# Where it can't be built the tests say that they are skipped.
		[[ ${1:-} == --build && -n ${WHY_SKIPPED:-} ]]
		return
	}
	[[ ${1:-} != --build ]] || return 0
	cluster_start
	mkdir "$NODE_DIR/bin"
	ln -s "$KUBE/kube" "$NODE_DIR/bin/kubectl"
	(($# > 0)) || set -- /bin/bash
	echo "cluster.sh: it runs; its logs are in $NODE_DIR/log" >&2
	node_exec /usr/bin/env "PATH=$NODE_DIR/bin:$PATH" "KUBECONFIG=$NODE_DIR/admin.conf" \
		"KUBECACHEDIR=$NODE_DIR/kubectl" \
		/bin/sh -c 'cd "$0" && exec "$@"' "$PWD" "$@" || rc=$?
	return "$rc"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	set -euo pipefail
	cluster_main "$@"
fi
