#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A cluster whose node is a machine in QEMU, with cards, the module and the agent as a unit; the
# control plane and gpushare-controller run on this machine. Runs a suite script in the node,
# prints TAP.
#
#	vm.sh KERNEL SCRIPT	SCRIPT: from tests/node/suite, with `# runs: cluster` in its head
#
# Everything is one skipped test where such a cluster can't be made.
set -euo pipefail
# shellcheck source=tests/k8s/cluster.sh
source "$(dirname "$0")/cluster.sh"

(($# == 2)) || {
	sed -n '/^#\t/s/^#//p' "$0" >&2
	exit 2
}
kernel=$1 script=$(basename "$2" .sh)

# Beside a suite of the node alone.
export NODE_OUT=$GS_TOP/build/cluster
# Outside of the node's namespaces, where everything has its place.
build=0
control_wants || {
	[[ -n ${WHY_SKIPPED:-} ]] || exit 1
	echo "1..0 # SKIP $WHY_SKIPPED"
	exit 0
}
[[ -n ${NODE_BUILT:-} ]] ||
	why=$("$GS_TOP/tests/node/build.sh" "$kernel" "$NODE_OUT/$kernel") || build=$?
if ((build != 0)); then
	((build == 77)) || exit 1
	echo "1..0 # SKIP $why"
	exit 0
fi
export IMAGE_PAUSE=localhost/gpushare/pause:1 # the disk has it

trap node_stop EXIT
{
	node_start
	CLUSTER_DIR=$NODE_DIR
	CLUSTER_NODE_IP=10.99.0.2
	export CLUSTER_DIR KUBE
	control_start
	node_exec /bin/busybox ip address add "$CLUSTER_NODE_IP/32" dev lo
	kubelet_config "cgroupDriver: systemd" >"$NODE_DIR/kubelet.yaml"
	mkdir "$NODE_DIR/vendorplugin" "$NODE_DIR/bin"
	cp "$GS_TOP"/tests/k8s/{vendorplugin,protos}.py "$(command -v busybox)" "$NODE_DIR/bin"
	"$GS_PYTHON" -c 'import sys
sys.path.insert(0, sys.argv[1])
import protos
protos.make(sys.argv[2])' "$GS_TOP/tests/k8s" "$NODE_DIR/vendorplugin"
	SHADOW_CARD=fakegpu.example/card controller_packaged admin
	kubectl_serve
} >&2
rc=0
node_exec /usr/bin/env -C "$GS_TOP" NODE_BUILT=1 tests/node/run.sh "$kernel" "$script" || rc=$?
if ((rc != 0)); then
	tail -n 20 "$NODE_DIR/log/controller" >&2
fi
exit "$rc"
