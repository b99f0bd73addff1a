# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Cards of a test node: device nodes without a driver, and what the kernel says to their opening.
#
# With its number allowed, a node that has no driver answers ENXIO (where the machine has a real
# card: OK); forbidden it answers EPERM; ENOENT says that there is no node.

# Two cards of NVIDIA's and what stands beside them, and one of another maker. nvidia-uvm's number
# is dynamic on a real machine; here it is one of those that the kernel gives out last.
devices_create() {
	node_exec /bin/bash -euc '
		mknod -m 666 /dev/nvidia0 c 195 0
		mknod -m 666 /dev/nvidia1 c 195 1
		mknod -m 666 /dev/nvidiactl c 195 255
		mknod -m 666 /dev/nvidia-modeset c 195 254
		mknod -m 666 /dev/nvidia-uvm c 511 0
		mknod -m 666 /dev/nvidia-uvm-tools c 511 1
		mknod -m 666 /dev/gcu0 c 510 0
		mknod -m 666 /dev/gcuctl c 510 255'
}

# open_in TEXT DEVICE…: does probe's output TEXT say that each of these may be opened?
open_in() {
	answers_in "may be opened" "ENXIO OK" "$@"
}

# denied_in TEXT DEVICE…: does it say that the device rules forbid each?
denied_in() {
	answers_in "is forbidden" "EPERM" "$@"
}

# absent_in TEXT DEVICE…: does it say that there is no node of any?
absent_in() {
	answers_in "has no node" "ENOENT" "$@"
}

answers_in() {
	local what=$1 wanted=$2 text=$'\n'$3$'\n' device answer found
	shift 3
	for device; do
		found=
		for answer in $wanted; do
			[[ $text == *$'\n'"$device $answer"$'\n'* ]] && found=1
		done
		if [[ -z $found ]]; then
			printf 'not true: %s %s; probe said:%s' "$device" "$what" "$text" >&2
			return 1
		fi
	done
}
