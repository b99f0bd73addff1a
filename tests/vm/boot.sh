#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots one kernel in QEMU, runs a command inside, and ends as the command did.
#
#	boot.sh KERNEL [OPTION...] -- COMMAND...
#	boot.sh KERNEL [OPTION...] --shell
#
#	--build DIR       what build.sh made (default: build/vm/KERNEL); its programs are in PATH,
#	                  its modules in /vm/modules; tests/vm/suite is /vm/suite
#	--extra FILE      puts FILE into /vm/extra (again for more)
#	--agent           puts the agent, the runtime, runc and crun where they lie on a node
#	--smp N           processors (2)
#	--mem MIB         memory (512; the kernel debug 1024)
#	--thread MODE     single (default) or multi: QEMU 7.2's multi breaks the unhooking of
#	                  functions under load, single takes the processors in turns
#	--icount          one processor, a clock that counts instructions
#	--cgroup LAYOUT   v2 (default), v1 or hybrid
#	--append WORDS    for the kernel's command line
#	--timeout S       seconds until it counts as hung (300)
#	--log FILE        the kernel's messages (default: DIR/console.log)
#	--shell           a shell on this terminal instead; exit or Ctrl-A x ends it
#
# Output of the command goes to stdout. A report of the kernel (see lib/klog.sh) that no test
# announced, a panic or a hang makes it fail: exit status 99, and the messages on stderr.
set -euo pipefail
# shellcheck source=tests/vm/lib/common.sh
source "$(dirname "$0")/lib/common.sh"
source "$VM_DIR/lib/apt.sh"
source "$VM_DIR/lib/kernel.sh"
source "$VM_DIR/lib/user.sh"
source "$VM_DIR/lib/initramfs.sh"
source "$VM_DIR/lib/klog.sh"
source "$VM_DIR/lib/qemu.sh"
source "$VM_DIR/lib/agent.sh"

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
build=$VM_TOP/build/vm/$name
smp=2 mem=512 thread=single icount='' cgroup=v2 append='' limit=300 log='' shell='' agent=''
slow=1
if [[ $K_TOOLCHAIN == source ]]; then
	mem=1024 slow=5
fi
extra=() command=()
while (($# > 0)); do
	case $1 in
	--icount | --shell | --agent)
		declare "${1#--}=1"
		shift
		;;
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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is tested, and the command as a script.
root=$work/root
mkdir -p "$root"/vm/{bin,modules,suite,extra}
for what in "$build/programs:bin" "$build/modules:modules" "$VM_DIR/suite:suite"; do
	[[ ! -d ${what%:*} ]] || cp -a "${what%:*}/." "$root/vm/${what##*:}"
done
((${#extra[@]} == 0)) || cp -a "${extra[@]}" "$root/vm/extra"
[[ -z $agent ]] || agent_pack "$root"
cp "$K_DIR/release" "$root/vm"
echo "$slow" >"$root/vm/slow"
if ((${#command[@]} > 0)); then
	printf '%s\n' "${command[*]@Q}" >"$root/vm/command"
fi
[[ -z $shell ]] || cat >"$root/vm/message" <<-'EOF'
	Modules: /vm/modules, programs: /vm/bin, suite: /vm/suite. exit, or Ctrl-A x, ends it.
EOF
pack_cpio "$root" "$work/cpio"
cat "$BASE_CPIO" "$work/cpio" >"$work/initrd"

if [[ -n $icount ]]; then
	smp=1 thread=single
fi
if [[ $K_TOOLCHAIN == source ]]; then
	append+=" kasan_multi_shot" # one report does not hide the next
fi
qemu_machine "$smp" "$mem" "$thread"
QEMU+=(-no-reboot -kernel "$K_DIR/boot" -initrd "$work/initrd"
	-append "console=$CONSOLE panic=-1 loglevel=5 vm.cgroup=$cgroup vm.shell=$shell $append")
[[ -z $icount ]] || QEMU+=(-icount "shift=0,sleep=off")

if [[ -n $shell ]]; then
	rm -rf "${work:?}/root" "$work/cpio"
	"${QEMU[@]}" -serial mon:stdio
	exit
fi
qemu_run "$name" "$limit" "$log" "$work"
