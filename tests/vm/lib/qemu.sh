# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# QEMU's command line for a kernel of kernel_get, and how a guest's output and exit status come
# back. QEMU is an array to which the caller may add between the calls.

# qemu_machine SMP MEM THREAD: sets QEMU (without kernel, initrd and command line), and CONSOLE, the
# guest's name of its console.
qemu_machine() {
	case $K_ARCH in
	amd64)
		QEMU=(qemu-system-x86_64 -M q35 -cpu max)
		CONSOLE=ttyS0
		;;
	arm64)
		QEMU=(qemu-system-aarch64 -M "virt,gic-version=3" -cpu "max,pauth-impdef=on")
		# shellcheck disable=SC2034 # for those who source this
		CONSOLE=ttyAMA0
		;;
	esac
	if [[ $K_TOOLCHAIN == source ]]; then
		# With five levels of page tables KASAN sometimes reports the kernel's own start,
		# wrongly.
		QEMU+=(-cpu "max,la57=off")
	fi
	QEMU+=(-accel "tcg,thread=$3" -smp "$1" -m "$2" -display none -nodefaults -no-user-config)
}

# qemu_run NAME LIMIT LOG WORK [OPTION...]: boots with LOG as the console's file; the ports `out`
# and `status`, 1 and 2 of a virtio serial device, are stdout and where the command's exit status
# comes from. WORK is a scratch folder; OPTIONs of QEMU may add ports to that device. Status: the
# command's, or 99 when the machine hung, stopped early, or its kernel reported something (klog.sh).
qemu_run() {
	local name=$1 limit=$2 log=$3 work=$4 rc status
	shift 4
	mkdir -p "$(dirname "$log")"
	: >"$work/status"
	QEMU+=(-serial "file:$log" -device virtio-serial-pci
		-chardev "file,id=out,path=/dev/stdout,append=on"
		-device "virtserialport,chardev=out,name=out,nr=1"
		-chardev "file,id=status,path=$work/status"
		-device "virtserialport,chardev=status,name=status,nr=2" "$@")
	# QEMU opens /dev/stdout, which works with a pipe and not with a socket. (As a stdio device
	# it would close the port at the end of stdin.)
	set +e
	timeout -k 5 "$limit" "${QEMU[@]}" </dev/null | cat
	rc=${PIPESTATUS[0]}
	set -e
	# ash's time stamps and QEMU's firmware leave carriage returns.
	sed -i 's/\r//g' "$log"

	status=$(<"$work/status")
	if [[ -z $status ]]; then
		if ((rc == 124 || rc == 137)); then
			say "$name: not finished after $limit s; the end of $log:"
		else
			say "$name: stopped before the command ended (QEMU's status $rc);" \
				"the end of $log:"
		fi
		tail -n 60 "$log" >&2
		return 99
	fi
	klog_check "$log" || return 99
	return "$status"
}
