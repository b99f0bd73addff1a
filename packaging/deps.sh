#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need; costs nothing when all are there.
#
#	deps.sh [--if-root] [GROUP...]	groups: build demo test lint fuzz vm node deb (without
#					names: all of these), pictures
#
# --if-root: a caller who is not root is told what is missing and goes on.
# Packages come from whatever apt is configured with. Nothing is removed, no service is started, and
# those that come along stay disabled: containerd or docker do not run after the next boot either.
# DPKG_ROOT (dpkg's own variable) stands in front of the paths of the system that are written to.
set -euo pipefail

declare -A group=(
	[build]="gcc libc6-dev make libjansson-dev libmnl-dev libuv1-dev
		libcurl4-openssl-dev libmicrohttpd-dev libgnutls28-dev libseccomp-dev libcap-dev
		libgrpc-dev libprotobuf-c-dev protobuf-c-compiler"
	[demo]="runc containerd busybox-static util-linux python3 python3-grpcio python3-protobuf
		protobuf-compiler"
	[test]="libcmocka-dev bats runc crun containerd podman docker.io busybox-static uidmap
		slirp4netns fuse-overlayfs iptables iproute2 util-linux procps python3
		python3-grpcio python3-protobuf python3-yaml protobuf-compiler valgrind strace
		openssl patch zsh containernetworking-plugins"
	[lint]="clang-format-14 clang-tidy-14 cppcheck shellcheck mandoc python3
		libcmocka-dev"
	[fuzz]="clang-14 libclang-rt-14-dev llvm-14"
	[vm]="qemu-system-x86 qemu-system-arm busybox-static cpio kmod xz-utils zstd
		debian-archive-keyring gcc-aarch64-linux-gnu libc6-dev-arm64-cross
		bc bison flex libelf-dev libssl-dev runc crun"
	[deb]="dpkg-dev debhelper dh-dkms fakeroot lintian prometheus rpm"
	[node]="debootstrap e2fsprogs protobuf-compiler python3"
	[pictures]="prometheus python3 python3-matplotlib"
)
groups="build demo test lint fuzz vm node deb"

if_root=
if [[ ${1:-} == --if-root ]]; then
	if_root=1
	shift
fi
if (($# == 0)); then
	read -ra all <<<"$groups"
	set -- "${all[@]}"
fi

wanted=()
for name; do
	if [[ -z ${group[$name]:-} ]]; then
		echo "deps.sh: no group '$name' (groups: $groups)" >&2
		exit 1
	fi
	read -ra packages -d '' <<<"${group[$name]}" || true
	wanted+=("${packages[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	[[ -z $if_root ]] || exit 0
	echo "deps.sh: not a Debian system; install what stands for: ${wanted[*]}" >&2
	exit 1
fi

# Prints those of $wanted that are not installed. dpkg-query fails for names it never heard of.
list_missing() {
	local -A have=()
	local status name
	while read -r status name; do
		if [[ $status == ii || $status == hi ]]; then
			have[$name]=1
		fi
	done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null)
	for name in "${wanted[@]}"; do
		[[ -n ${have[$name]:-} ]] || printf '%s\n' "$name"
	done | sort -u
}

mapfile -t missing < <(list_missing)
if ((${#missing[@]} == 0)); then
	exit 0
fi
if ((EUID != 0)); then
	{
		echo "deps.sh: not root, and these packages are missing: ${missing[*]}"
		echo "deps.sh: sudo packaging/deps.sh $* installs them"
	} >&2
	[[ -n $if_root ]] && exit 0
	exit 1
fi

root=${DPKG_ROOT:-}
log=$(mktemp)

# docker.io and containerd start their daemons when they are installed. systemd's and sysvinit's
# helpers both ask /usr/sbin/policy-rc.d first (RUNLEVEL=1 is for sysvinit's where it does not).
# An administrator's own file is moved aside and put back.
policy=$root/usr/sbin/policy-rc.d
saved=$policy.before-gpushare
restore_policy() {
	rm -f "$policy"
	[[ ! -e $saved ]] || mv "$saved" "$policy"
}
if [[ -e $policy ]] && ! grep -qs "$saved" "$policy"; then
	mv "$policy" "$saved"
fi

# They also enable them for the next boot: links in /etc/systemd/system, or in /etc/rc?.d where
# sysvinit is used. Those that were not there before, and lead to a unit or script that was not
# there before either, are taken away again; dpkg remembers that as an administrator's choice. What
# runs in a user's session (gnupg's sockets) starts with nobody's boot and stays.
list_units() {
	find "$root"/{usr/lib,lib}/systemd/system "$root/etc/init.d" \
		-mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null || true
}
list_links() {
	find "$root"/etc/systemd/system "$root"/etc/rc?.d -type l 2>/dev/null || true
}
declare -A unit_before=() link_before=()
while IFS= read -r name; do
	unit_before[$name]=1
done < <(list_units)
while IFS= read -r name; do
	link_before[$name]=1
done < <(list_links)

disable_new() {
	local link unit
	local -A disabled=()
	while IFS= read -r link; do
		[[ -L $link ]] || continue
		unit=$(readlink "$link")
		unit=${unit##*/}
		if [[ -n ${link_before[$link]:-} || -n ${unit_before[$unit]:-} ]]; then
			continue
		fi
		case $link in
		"$root"/etc/rc?.d/*)
			# Without any link the next upgrade would make them anew.
			[[ -n ${disabled[$unit]:-} ]] || update-rc.d "$unit" disable
			;;
		*)
			rm -f "$link"
			[[ $link != *.wants/* ]] ||
				rmdir --ignore-fail-on-non-empty "${link%/*}"
			;;
		esac
		disabled[$unit]=1
	done < <(list_links)
	if ((${#disabled[@]} > 0)); then
		echo "deps.sh: left disabled:" \
			"$(printf '%s\n' "${!disabled[@]}" | sort | paste -sd' ')"
	fi
	if [[ -z $root && -d /run/systemd/system ]]; then
		systemctl daemon-reload || true
	fi
}

finish() {
	restore_policy
	disable_new
	rm -f "$log"
}
trap finish EXIT
# It names $saved, so that one left by a run that was killed is known as ours.
mkdir -p "${policy%/*}"
printf '#!/bin/sh\n# %s\nexit 101\n' "$saved" >"$policy"
chmod 0755 "$policy"

# apt's own lines that say how much it is, all of them if it fails. (awk, since the lines come
# while it works.)
apt() {
	local rc=0
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -q \
		-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@" </dev/null 2>&1 |
		tee "$log" | awk '
			/newly installed|^Need to get|^After this operation|^Fetched/ {
				print "deps.sh: " $0
				fflush()
			}' || rc=$?
	if ((rc != 0)); then
		cat "$log" >&2
		echo "deps.sh: apt-get $1 failed; what it said stands above" >&2
	fi
	return "$rc"
}

echo "deps.sh: installing ${missing[*]}"
echo "deps.sh: this takes one to three minutes, most of it downloading"
apt update
# --no-remove: never takes another vendor's docker or containerd away to put Debian's in its place.
apt install -y --no-install-recommends --no-remove "${missing[@]}"

mapfile -t missing < <(list_missing)
if ((${#missing[@]} > 0)); then
	echo "deps.sh: still missing: ${missing[*]}" >&2
	exit 1
fi
