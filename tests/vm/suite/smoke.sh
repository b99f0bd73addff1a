# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
# The machine itself: the kernel that was asked for, our modules load and unload, programs run.
# runs: short
. /vm/suite/lib.sh

is "the kernel is the pinned one" "$(uname -r)" "$(cat /vm/release)"
is "more than one processor" "$(nproc)" 2
check "cgroup v2 has its controllers" grep -qw pids /sys/fs/cgroup/cgroup.subtree_control
check "a program of ours runs" gpusharectl --version

for module in fakegpu gpushare; do
	[ -e /vm/modules/$module.ko ] || continue
	check "$module loads" insmod /vm/modules/$module.ko
	check "$module unloads" rmmod $module
	check "$module loads again" insmod /vm/modules/$module.ko
	check "$module unloads again" rmmod $module
done

plan
