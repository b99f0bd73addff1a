#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Says which kernels the suite `vm` of tests/suites runs on, by one empty file each in
# build/vm/kernels. Two, KERNEL+module and KERNEL+agent, where many scripts are the agent's: they
# run side by side then.
#
#	choose.sh [KERNEL...]	without names: all that CI takes
set -euo pipefail
# shellcheck source=tests/vm/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/kernel.sh"
source "$VM_DIR/lib/suite.sh"

full=${VM_LEVEL:-}
[[ $# == 0 ]] || full=${full:-full}
if (($# == 0)); then
	mapfile -t names < <(kernel_names never)
	set -- "${names[@]}"
fi
files=()
for name; do
	kernel_line "$name"
	level=${full:-$K_CI}
	suite_begin "$name" "$VM_DIR/suite" "$name"
	mapfile -t scripts < <(suite_choose "$level" | suite_part agent)
	if ((${#scripts[@]} > 3)); then
		files+=("$name+agent" "$name+module")
	else
		files+=("$name")
	fi
done
cd "$VM_TOP"
rm -rf build/vm/kernels
mkdir -p build/vm/kernels
cd build/vm/kernels
touch "${files[@]}"
