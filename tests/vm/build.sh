#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything of ours that a test machine runs, for one kernel.
#
#	build.sh KERNEL OUTDIR	OUTDIR/modules/*.ko and OUTDIR/programs/*
#
# KERNEL is a name from tests/vm/kernels. Modules are built from a copy of the sources, with the
# warnings of W=1, each of them an error. What has not changed is not built again.
set -euo pipefail
# shellcheck source=tests/vm/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/apt.sh"
source "$VM_DIR/lib/kernel.sh"
source "$VM_DIR/lib/user.sh"

(($# == 2)) || {
	echo "usage: build.sh KERNEL OUTDIR" >&2
	exit 2
}
kernel_get "$1"
mkdir -p "$2"
out=$(cd "$2" && pwd)

# Folders of modules, those that there are. What they include lies where it does in the repository.
module_dirs=(kmod tests/fakegpu tests/vm/modules)

# Copies them into OUTDIR/src with their times, and removes what is no longer in the repository.
copy_sources() {
	local dir file
	mkdir -p "$out/src"
	for dir in include "${module_dirs[@]}"; do
		[[ -d $VM_TOP/$dir ]] || continue
		mkdir -p "$out/src/$dir"
		cp -a "$VM_TOP/$dir/." "$out/src/$dir"
		while IFS= read -r file; do
			[[ -e $VM_TOP/${file#"$out/src/"} ]] || rm -f "$file"
		done < <(find "$out/src/$dir" -name '*.[chS]' -not -name '*.mod.c')
	done
}

# What every build against a distribution's headers says.
harmless='^(Skipping BTF|warning: the compiler differs|  The kernel was b|  You are using)'

build_modules() {
	local dir
	# Built for another kernel, or by another version of the same one.
	[[ $(cat "$out/kernel" 2>/dev/null) == "$K_DIR" ]] || rm -rf "$out/src" "$out/modules"
	copy_sources
	echo "$K_DIR" >"$out/kernel"
	mkdir -p "$out/modules"
	rm -f "$out"/modules/*.ko
	for dir in "${module_dirs[@]}"; do
		[[ -e $out/src/$dir/Kbuild ]] || continue
		make -s -j"$(nproc)" -C "$K_HEADERS" M="$out/src/$dir" CC=gcc-12 \
			W=1 KCFLAGS=-Werror modules 2>&1 |
			{ grep -vE "$harmless" || true; } >&2
		find "$out/src/$dir" -name '*.ko' -exec cp -p {} "$out/modules" \;
	done
}

build_modules
user_build "$K_ARCH"
mkdir -p "$out/programs"
cp -u "$USER_PROGRAMS"/* "$out/programs"
