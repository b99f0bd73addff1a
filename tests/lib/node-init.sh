#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# First process of a test node (see node.sh): makes the namespaces it was started in into a machine
# that container runtimes accept, then waits. Arguments: scratch folder, probe program, and
# "cgroup2" for a node of cgroup version 2.
set -euo pipefail
dir=$1 probe=$2 cgroup=$3

# /proc is still the machine's here, so this is our number as node_start's caller needs it.
read -r pid _ </proc/self/stat

mount -t proc proc /proc
busybox ip link set lo up
busybox hostname gpushare-node

# Copies, for a runtime's configuration and CDI specs are written under /etc.
mkdir "$dir/etc" "$dir/dev"
cp -a /etc/. "$dir/etc/"
mount --bind "$dir/etc" /etc
rm -rf /etc/gpushare /etc/cdi /etc/cni/net.d

# systemd is not this node's, and runtimes ask for it by looking for /run/systemd.
mount -t tmpfs -o mode=755,nosuid tmpfs /run
mkdir -m 1777 /run/lock

# The standard nodes, and nothing of what the machine has: what a privileged container sees is then
# the same everywhere. devices.sh adds cards.
mount -t tmpfs -o mode=755,nosuid tmpfs "$dir/dev"
cd "$dir/dev"
mkdir pts shm mqueue net
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts pts
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs shm
mount -t mqueue mqueue mqueue
mknod -m 666 null c 1 3
mknod -m 666 zero c 1 5
mknod -m 666 full c 1 7
mknod -m 666 random c 1 8
mknod -m 666 urandom c 1 9
mknod -m 666 tty c 5 0
mknod -m 666 fuse c 10 229
mknod -m 666 net/tun c 10 200
ln -s pts/ptmx ptmx
ln -s /proc/self/fd fd
ln -s fd/0 stdin
ln -s fd/1 stdout
ln -s fd/2 stderr
cd /
mount --move "$dir/dev" /dev

# crun refuses the hybrid hierarchy (cgroup2 beside version 1), runc uses version 1 there anyway.
# cgroup2 alone lacks the controllers that version 1 has; its device rules (BPF) work all the same.
if [[ $cgroup == cgroup2 ]]; then
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
elif mountpoint -q /sys/fs/cgroup/unified; then
	umount /sys/fs/cgroup/unified
fi

echo "$pid" >"$dir/pid.new"
mv "$dir/pid.new" "$dir/pid"
exec "$probe" pause
