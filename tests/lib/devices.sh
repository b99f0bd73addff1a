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

# is_open TEXT PATH|NUMBER: does probe's output TEXT say that this device may be opened?
is_open() {
	[[ $'\n'$1$'\n' == *$'\n'"$2 ENXIO"$'\n'* || $'\n'$1$'\n' == *$'\n'"$2 OK"$'\n'* ]]
}

# is_denied TEXT PATH|NUMBER: does it say that the device rules forbid it?
is_denied() {
	[[ $'\n'$1$'\n' == *$'\n'"$2 EPERM"$'\n'* ]]
}

# is_absent TEXT PATH: does it say that there is no such node?
is_absent() {
	[[ $'\n'$1$'\n' == *$'\n'"$2 ENOENT"$'\n'* ]]
}
