#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds for one kernel, boots it, runs suite scripts inside, prints one TAP stream.
#
#	run.sh KERNEL [SCRIPT...]	SCRIPT: a name from tests/vm/suite, without .sh
#
# Without names: those of the level VM_LEVEL (short, full, deep; default: what tests/vm/kernels says
# of the kernel). KERNEL+agent and KERNEL+module are those of them that need the agent, and those
# that do not. A script's head may have
#
#	# runs: LEVEL       the first level at which it runs (default: full)
#	# kernels: NAME...  the only ones that it runs on (default: all)
#	# boot: OPTIONS     of boot.sh; scripts with the same options share one boot
#	# seconds: N        how long it may take (default: 120)
#
# A kernel's level `build` means: no boot, only one test, that all builds.
set -euo pipefail
# shellcheck source=tests/vm/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/kernel.sh"
source "$VM_DIR/lib/suite.sh"

if (($# == 0)) || [[ $1 == -* ]]; then
	sed -n '/^#\t/,/^# A kernel/s/^#//p' "$0" >&2
	exit 2
fi
kernel=${1##*/} # or a file of choose.sh
shift
part=''
[[ $kernel != *+* ]] || part=${kernel#*+}
kernel=${kernel%+*}
[[ $part =~ ^(|agent|module)$ ]] || die "no part '$part' of a kernel's suite"
kernel_line "$kernel"
level=${VM_LEVEL:-${K_CI/never/full}}
# How much longer everything takes than on a distribution's kernel.
slow=1
[[ $K_TOOLCHAIN != source ]] || slow=5
out=$VM_TOP/build/vm/$kernel

suite_boot() {
	"$VM_DIR/boot.sh" "$kernel" "$@"
}

suite_begin "$kernel" "$VM_DIR/suite" "$kernel"
mkdir -p "$out"
if ! flock "$out/lock" "$VM_DIR/build.sh" "$kernel" "$out"; then
	suite_result "not ok" "builds"
	suite_finish
fi
suite_result ok "builds without a warning"
if (($# == 0)); then
	mapfile -t names < <(suite_choose "$level" | suite_part "$part")
	set -- "${names[@]}"
fi
suite_run "$out" "$slow" 60 "sh /vm/suite/runner" "$@"
suite_finish
