# shellcheck shell=bash disable=SC2034,SC2153
# SPDX-License-Identifier: Apache-2.0
# Roots of Debian nodes that packages are installed on: sourced after tests/node/lib/common.sh.

PK_CACHE=${VM_CACHE%/vm}/packages

# What a node has before ours come: a container runtime, and the libraries that apt would fetch, for
# there is no network in a test. cri.py speaks to containerd with the last ones.
pk_packages=(
	systemd-sysv dbus kmod procps containerd runc python3
	libjansson4 libmnl0 libseccomp2 libcap2 libprotobuf-c1
	python3-grpcio python3-protobuf
)
declare -A pk_packages_of=(
	[bookworm]="libuv1 libcurl4 libmicrohttpd12 libgrpc29"
	[trixie]="libuv1t64 libcurl4t64 libmicrohttpd12t64 libgrpc29t64 libre2-11"
)
# The kernels that they boot with: those of their own series in tests/vm/kernels.
declare -A pk_kernel_of=([bookworm]=6.1 [trixie]=6.12)

# pk_root SUITE: sets PK_ROOT, the folder with that system.
pk_root() {
	local suite=$1 key
	read -ra more <<<"${pk_packages_of[$suite]}"
	more+=("${pk_packages[@]}")
	key=$({
		echo "${more[@]}"
		declare -f pk_root_make
	} | hash_of)
	PK_ROOT=$PK_CACHE/root-$suite-$key
	cached "$PK_ROOT" pk_root_make "$suite"
	PK_ROOT=$PK_ROOT/root
}

pk_root_make() { # SUITE FOLDER
	local root=$2/root
	apt_find_mirror
	say "making a Debian $1: some minutes"
	debootstrap --variant=minbase --include="$(IFS=, && echo "${more[*]}")" "$1" "$root" \
		"$APT_MAIN" >"$2/log" 2>&1 || {
		tail -n 30 "$2/log" >&2
		return 1
	}
	rm -rf "$root"/var/{lib/apt/lists,cache/apt,log}/* \
		"$root"/usr/share/{locale,info,zoneinfo,i18n} "$root"/usr/lib/udev/hwdb.*
}
