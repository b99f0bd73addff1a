#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need; costs nothing when all are there.
#
#	deps.sh [--if-root] [GROUP...]		groups: build test lint fuzz (default: all)
#
# --if-root: a caller who is not root is told what is missing and goes on.
# Packages come from whatever apt is configured with. No service is started, nothing is removed.
set -euo pipefail

declare -A group=(
	[build]="gcc libc6-dev make pkg-config libjansson-dev libcap-dev"
	[test]="libcmocka-dev bats runc crun containerd podman docker.io umoci skopeo
		busybox-static uidmap slirp4netns fuse-overlayfs iptables iproute2 util-linux
		procps python3 python3-grpcio python3-protobuf protobuf-compiler valgrind"
	[lint]="clang-format-14 clang-tidy-14 cppcheck shellcheck sparse mandoc python3"
	[fuzz]="clang-14 libclang-rt-14-dev llvm-14"
)

if_root=
if [[ ${1:-} == --if-root ]]; then
	if_root=1
	shift
fi
if (($# == 0)); then
	set -- build test lint fuzz
fi

wanted=()
for name; do
	if [[ -z ${group[$name]:-} ]]; then
		echo "deps.sh: no group '$name' (groups: build test lint fuzz)" >&2
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
	echo "deps.sh: not root, and these packages are missing: ${missing[*]}" >&2
	[[ -n $if_root ]] && exit 0
	exit 1
fi

# docker.io and containerd start their daemons when they are installed. systemd's and sysvinit's
# helpers both ask /usr/sbin/policy-rc.d first (RUNLEVEL=1 is for sysvinit's where it does not).
# An administrator's own file is moved aside and put back.
policy=/usr/sbin/policy-rc.d
saved=$policy.before-gpushare
restore_policy() {
	rm -f "$policy"
	[[ ! -e $saved ]] || mv "$saved" "$policy"
}
if [[ -e $policy ]] && ! grep -qs "$saved" "$policy"; then
	mv "$policy" "$saved"
fi
trap restore_policy EXIT
# It names $saved, so that one left by a run that was killed is known as ours.
printf '#!/bin/sh\n# %s\nexit 101\n' "$saved" >"$policy"
chmod 0755 "$policy"

apt() {
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -q \
		-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

echo "deps.sh: installing ${missing[*]}"
apt update
# --no-remove: never takes another vendor's docker or containerd away to put Debian's in its place.
apt install -y --no-install-recommends --no-remove "${missing[@]}"

mapfile -t missing < <(list_missing)
if ((${#missing[@]} > 0)); then
	echo "deps.sh: still missing: ${missing[*]}" >&2
	exit 1
fi
