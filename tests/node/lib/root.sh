# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The node's root: a small Debian of this machine's own suite, since programs built here meet its
# libraries there, with systemd, containerd, runc, podman and crun.

# What stands in it besides debootstrap's minimum, with dependencies that debootstrap does not see.
root_packages=(
	systemd-sysv dbus kmod procps strace util-linux
	containerd runc podman crun netavark conmon catatonit fuse-overlayfs
	python3 python3-grpcio python3-protobuf
	libjansson4 libmnl0 libuv1 libcurl4 libmicrohttpd12 libseccomp2 libcap2
	libgrpc29 libprotobuf-c1
)

# root_make_tree FOLDER: the system in FOLDER/root.
root_make_tree() {
	local root=$1/root suite
	suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	apt_find_mirror
	say "making a Debian $suite: some minutes"
	debootstrap --variant=minbase --merged-usr \
		--include="$(IFS=, && echo "${root_packages[*]}")" \
		"$suite" "$root" "$APT_MAIN" >"$1/log" 2>&1 || {
		tail -n 30 "$1/log" >&2
		return 1
	}
	# Not needed to run, and half of it.
	rm -rf "$root"/var/{lib/apt/lists,cache/apt,log}/* "$root"/var/cache/debconf/*-old \
		"$root"/usr/share/{doc,man,locale,info,perl,bash-completion,zoneinfo,bug,lintian} \
		"$root"/usr/lib/udev/hwdb.* "$root"/usr/share/i18n \
		"$root"/usr/lib/x86_64-linux-gnu/gconv
}
