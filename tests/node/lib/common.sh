# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What every script of tests/node starts with: tests/vm's library, and places of the node's own.

NODE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/vm/lib/common.sh
source "$NODE_DIR/../vm/lib/common.sh"
source "$VM_DIR/lib/apt.sh"
source "$VM_DIR/lib/kernel.sh"
source "$VM_DIR/lib/user.sh"
source "$VM_DIR/lib/initramfs.sh"
source "$VM_DIR/lib/klog.sh"
source "$VM_DIR/lib/qemu.sh"
source "$NODE_DIR/lib/root.sh"
source "$NODE_DIR/lib/overlay.sh"
source "$NODE_DIR/lib/image.sh"
source "$NODE_DIR/lib/boot.sh"
# shellcheck disable=SC2034 # for those who source this
NODE_CACHE=${VM_CACHE%/vm}/node
# Below it, by kernel, is what is built for a boot. Those who build at the same time need two.
NODE_OUT=${NODE_OUT:-$VM_TOP/build/node}
vm_me=node/${0##*/}
