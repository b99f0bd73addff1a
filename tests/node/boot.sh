#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a node, runs a command in it when it is up, and ends as the command did.
#
#	boot.sh KERNEL [OPTION...] -- COMMAND...
#	boot.sh KERNEL [OPTION...] --shell
#
#	--build DIR       what build.sh made (default: build/node/KERNEL)
#	--extra FILE      puts FILE into /vm/extra (again for more)
#	--smp N           processors (2)
#	--mem MIB         memory (2048)
#	--thread MODE     single (default) or multi: QEMU 7.2's multi breaks the unhooking of
#	                  functions under load, single takes the processors in turns
#	--cgroup LAYOUT   v2 (default), v1 or hybrid (version 1 with cgroup2 beside it)
#	--no-modules      fakegpu and gpushare are not loaded before the command runs
#	--no-agent        gpushared is not started
#	--cluster         the node of the control plane that tests/k8s/vm.sh started: with a
#	                  network that leads there, and its folders CLUSTER_DIR and KUBE
#	--append WORDS    for the kernel's command line: fakegpu.cards=8, for instance
#	--timeout S       seconds until it counts as hung (300)
#	--log FILE        the kernel's messages (default: DIR/console.log); the journal of a command
#	                  that failed lies beside it, as *.journal
#	--shell           a shell on this terminal instead; exit or Ctrl-A x ends it
#
# Output of the command goes to stdout. A report of the kernel (see tests/vm/lib/klog.sh) that no
# test announced, a panic or a hang makes it fail: exit status 99, and the messages on stderr.
set -euo pipefail
# shellcheck source=tests/node/lib/common.sh
source "$(dirname "$0")/lib/common.sh"

usage() {
	sed -n '/^#\t/,/^# Output/{/^# Output/d;s/^#//p}' "$0" >&2
	exit 2
}

if (($# == 0)) || [[ $1 == -* ]]; then
	usage
fi
name=$1
shift
kernel_line "$name"
build=$NODE_OUT/$name
smp=2 mem=2048 thread=single cgroup=v2 append='' limit=300 log='' shell='' cluster=''
modules=(fakegpu gpushare) agent=1 extra=() command=()
while (($# > 0)); do
	case $1 in
	--shell) shell=1 && shift ;;
	--no-modules) modules=() && shift ;;
	--no-agent) agent='' && shift ;;
	--cluster) cluster=1 && shift ;;
	--)
		shift
		command=("$@")
		break
		;;
	--build | --extra | --smp | --mem | --thread | --cgroup | --append | --timeout | --log)
		(($# > 1)) || usage
		case $1 in
		--extra) extra+=("$2") ;;
		--timeout) limit=$2 ;;
		*) declare "${1#--}=$2" ;;
		esac
		shift 2
		;;
	*) usage ;;
	esac
done
((${#command[@]} > 0)) || [[ -n $shell ]] || usage
log=${log:-$build/console.log}

kernel_get "$name"
initramfs_base
image_get
[[ -z $NODE_WHY ]] || die "$NODE_WHY"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

overlay=$work/overlay
mkdir -p "$overlay/vm/extra"
overlay_config "$overlay"
overlay_build "$build" "$overlay"
overlay_modules "$overlay" "${modules[@]}"
[[ -z $agent ]] || overlay_enable "$overlay" gpushared.service
((${#extra[@]} == 0)) || cp -a "${extra[@]}" "$overlay/vm/extra"
cp "$K_DIR/release" "$overlay/vm"
echo "${NODE_SLOW:-1}" >"$overlay/vm/slow"
[[ -z $cluster ]] || declare -p "${!CLUSTER_@}" | sed 's/^declare -x //' >"$overlay/vm/cluster"
if ((${#command[@]} > 0)); then
	printf '%s\n' "${command[*]@Q}" >"$overlay/vm/command"
fi
# shellcheck disable=SC2034 # for node_boot
NODE_SMP=$smp NODE_MEM=$mem NODE_THREAD=$thread NODE_CGROUP=$cgroup NODE_APPEND=$append \
	NODE_SHELL=$shell NODE_DRIVE=,snapshot=on NODE_CLUSTER=${cluster:+$CLUSTER_DIR}
node_boot "$name" "$NODE_IMAGE" "$overlay" "$work" "$limit" "$log"
