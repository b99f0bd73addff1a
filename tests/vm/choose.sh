#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Says which kernels the suite `vm` of tests/suites runs on, by one empty file each in
# build/vm/kernels.
#
#	choose.sh [KERNEL...]	without names: all that CI takes
set -euo pipefail
# shellcheck source=tests/vm/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/kernel.sh"

if (($# == 0)); then
	mapfile -t names < <(kernel_names never)
	set -- "${names[@]}"
fi
for name; do
	kernel_line "$name"
done
cd "$VM_TOP"
rm -rf build/vm/kernels
mkdir -p build/vm/kernels
cd build/vm/kernels
touch "$@"
