#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Kubernetes cluster of one node, all of it real but for the cards: etcd, API server, controller
# manager, scheduler, kubelet, containerd. Nothing of it is left on the machine.
#
#	source tests/k8s/cluster.sh          for tests: cluster_start … node_stop
#	tests/k8s/cluster.sh --build         only builds Kubernetes, unless the cache has it
#	tests/k8s/cluster.sh --build-beside COMMAND…
#	                                     the same while that runs, behind it in priority
#	tests/k8s/cluster.sh [COMMAND…]      a cluster for as long as that runs (a shell), with
#	                                     agent, controller and two cards; kubectl, which knows
#	                                     it, and kubectl gpushare are in its PATH

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

# cluster_sharing: the same with agent, controller and a vendor's device plugin. Pods need no
# runtime class.
cluster_sharing() {
	node_start
	control_start
	devices_create
	agent_config
	CONTAINERD_DEFAULT=gpushare kubelet_start
	agent_account
	vendor_plugin_start
	agent_start
	controller_start
	within 60 node_has nvidia.com/gpu 2
}

# cluster_build_beside COMMAND…: tests wait for most of their time, and building takes ten minutes
# of a processor. Whoever needs it then waits for the rest, or finds out why there is none.
cluster_build_beside() {
	local rc=0
	# a group of its own, so that all of it can be ended
	set -m
	nice -n 5 "${BASH_SOURCE[0]}" --build </dev/null >/dev/null 2>&1 &
	set +m
	# shellcheck disable=SC2064 # this one
	trap "kill -- -$! 2>/dev/null || true" EXIT
	"$@" || rc=$?
	return "$rc"
}

cluster_main() {
	local rc=0 wants=kubelet_wants
	case ${1:-} in
	--build-beside)
		shift
		cluster_build_beside "$@"
		return
		;;
	--build) wants=control_wants ;;
	*) trap node_stop EXIT ;;
	esac
	"$wants" || {
		echo "cluster.sh: ${WHY_SKIPPED:-it should have worked}" >&2
		# Where it can't be built the tests say that they are skipped.
		[[ $wants == control_wants && -n ${WHY_SKIPPED:-} ]]
		return
	}
	[[ $wants != control_wants ]] || return 0
	cluster_sharing
	mkdir "$NODE_DIR/bin"
	ln -s "$KUBE/kube" "$NODE_DIR/bin/kubectl"
	ln -s "$GS_BIN/gpusharectl" "$NODE_DIR/bin/kubectl-gpushare"
	(($# > 0)) || set -- /bin/bash
	cat >&2 <<-EOT
		cluster.sh: it runs; its logs are in $NODE_DIR/log
		cluster.sh: no image can be pulled; pods that sleep have image: $IMAGE
	EOT
	node_exec /usr/bin/env "PATH=$NODE_DIR/bin:$PATH" "KUBECONFIG=$NODE_DIR/admin.conf" \
		"KUBECACHEDIR=$NODE_DIR/kubectl" \
		/bin/sh -c 'cd "$0" && exec "$@"' "$PWD" "$@" || rc=$?
	return "$rc"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	set -euo pipefail
	cluster_main "$@"
fi
