#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the node's disk, and builds all of ours that a boot puts on it.
#
#	build.sh KERNEL OUTDIR	OUTDIR/install (what `make install` installs) and OUTDIR/node (test
#	                        programs and modules), without symbols
#
# KERNEL is a name from tests/vm/kernels. The disk is kept in the cache, by a hash of what it is
# made from. Status 77: this machine can't make it; the reason is on stdout.
set -euo pipefail
# shellcheck source=tests/node/lib/common.sh
source "$(dirname "$0")/lib/common.sh"

(($# == 2)) || {
	echo "usage: build.sh KERNEL OUTDIR" >&2
	exit 2
}
((EUID == 0)) || {
	echo "needs root"
	exit 77
}
unset MAKEFLAGS MFLAGS MAKELEVEL
kernel_get "$1"
initramfs_base
image_get
if [[ -n $NODE_WHY ]]; then
	echo "$NODE_WHY"
	exit 77
fi
mkdir -p "$2"
out=$(cd "$2" && pwd)
"$VM_DIR/build.sh" "$1" "$out"
make -s --no-print-directory -C "$VM_TOP" -j"$(nproc)" WERROR=1 all >&2
rm -rf "$out/install"
make -s --no-print-directory -C "$VM_TOP" WERROR=1 DESTDIR="$out/install" PREFIX=/usr install >&2
# They are copied at every boot, and symbols are most of them.
find "$out/install" -type f -perm /111 -exec strip {} + 2>/dev/null || true
node_programs "$out"
rm -rf "$out/install/usr/share/man"
