#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For run.sh --here, in new namespaces: makes the folder ROOT the root of a node, with a /dev of its
# own in which there is a card that has no driver, and becomes its systemd.
#
#	here-init.sh ROOT
set -euo pipefail
root=$1
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t tmpfs run "$root/run"
mount -t tmpfs tmp "$root/tmp"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount -t cgroup2 cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero full random urandom tty; do
	cp -a "/dev/$name" "$root/dev"
done
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount -t tmpfs shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mknod -m 666 "$root/dev/fakegpu0" c 510 0
# Without this link, which udev makes, systemd takes the card away from containers when it reloads,
# as it does for each package with a unit.
mkdir "$root/dev/char"
ln -s ../fakegpu0 "$root/dev/char/510:0"
name=$root
cd "$root"
mkdir -p .old
pivot_root . .old
umount -l .old
rmdir .old
# Its name tells run.sh which one it is.
exec env -i container=gpushare-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	/sbin/init "$name" </dev/null >/run/init.log 2>&1
