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
source "$VM_DIR/lib/toolchain.sh"
source "$VM_DIR/lib/user.sh"

(($# == 2)) || {
	echo "usage: build.sh KERNEL OUTDIR" >&2
	exit 2
}
# Settings of a make that called us (SAN=1, its job server) are not for these.
unset MAKEFLAGS MFLAGS MAKELEVEL
kernel_get "$1"
mkdir -p "$2"
out=$(cd "$2" && pwd)

# Folders of modules, those that there are. What they include lies where it does in the repository.
module_dirs=(kmod tests/fakegpu tests/vm/modules)

# Copies them into OUTDIR/src with their times, and removes what is no longer in the repository.
copy_sources() {
	local dir file
	mkdir -p "$out/src"
	cp -p "$VM_TOP/VERSION" "$out/src"
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
harmless='^(warning: (the compiler|pahole version) differs|  The kernel was b|  You are using)'

# build_in FOLDER: runs the kernel's make for the modules there.
build_in() {
	# Type information for BPF needs pahole, and nothing here uses it.
	local run=() flags=(W=1 KCFLAGS=-Werror CONFIG_DEBUG_INFO_BTF_MODULES=)
	if [[ $K_TOOLCHAIN == host || $K_TOOLCHAIN == source ]]; then
		flags+=(CC="$(user_cc "$K_ARCH")")
	else
		toolchain_get "$K_TOOLCHAIN" "$K_ARCH"
		run=(toolchain_run "$out")
		flags+=(CC="$TOOLCHAIN_CC")
	fi
	[[ $K_ARCH != arm64 ]] || flags+=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	"${run[@]}" make -s -j"$(nproc)" -C "$K_HEADERS" M="$1" \
		"${flags[@]}" modules 2>&1 | { grep -vE "$harmless" || true; } >&2
}

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
		build_in "$out/src/$dir"
		find "$out/src/$dir" -name '*.ko' -exec cp -p {} "$out/modules" \;
	done
}

build_modules
user_build "$K_ARCH"
mkdir -p "$out/programs"
cp -u "$USER_PROGRAMS"/* "$out/programs"
