#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds for one kernel, boots a node, runs suite scripts inside, prints one TAP stream.
#
#	run.sh KERNEL [SCRIPT...]	SCRIPT: a name from tests/node/suite, without .sh
#
# Without names: those of the level VM_LEVEL (short, full, deep; default: short, as CI does) whose
# heads name the kernel, or no kernel and it is 6.1. A script's head may have the lines that
# tests/vm/lib/suite.sh tells of; options are those of boot.sh. NODE_SLOW (1): how much longer than
# on an idle machine all may take. NODE_BUILT=1: it is built already.
#
# Everything is one skipped test where a node can't be made.
set -euo pipefail
# shellcheck source=tests/node/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/suite.sh"

if (($# == 0)) || [[ $1 == -* ]]; then
	sed -n '/^#\t/,/^# tells/s/^#//p' "$0" >&2
	exit 2
fi
kernel=${1##*/}
shift
kernel_line "$kernel"
out=$NODE_OUT/$kernel

suite_boot() {
	"$NODE_DIR/boot.sh" "$kernel" "$@"
}

suite_begin "node $kernel" "$NODE_DIR/suite" "$kernel"
rc=0
[[ -n ${NODE_BUILT:-} ]] || why=$("$NODE_DIR/build.sh" "$kernel" "$out") || rc=$?
case $rc in
0) suite_result ok "builds" ;;
77)
	echo "1..0 # SKIP $why"
	exit 0
	;;
*)
	suite_result "not ok" "builds"
	suite_finish
	;;
esac
if (($# == 0)); then
	mapfile -t names < <(suite_choose "${VM_LEVEL:-short}" 6.1)
	set -- "${names[@]}"
fi
slow=${NODE_SLOW:-1}
suite_run "$out" "$slow" $((90 * slow)) "bash /vm/suite/runner" "$@"
suite_finish
