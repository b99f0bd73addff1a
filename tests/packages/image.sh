#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The images, by the recipe in packaging/image and podman, on a Debian of debootstrap's that stands
# for the one of a registry. TAP.
#
#	image.sh [ARCHIVE]	leaves them there, as the manifests of packaging/k8s call them
set -euo pipefail
# shellcheck source=tests/node/lib/common.sh
source "$(dirname "$0")/../node/lib/common.sh"
# shellcheck source=tests/packages/root.sh
source "$VM_TOP/tests/packages/root.sh"

if ((EUID != 0)) || ! command -v podman >/dev/null || ! command -v dh >/dev/null; then
	echo "1..0 # SKIP needs root, podman and debhelper (packaging/deps.sh test deb)"
	exit 0
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
pk_root bookworm
work=$(mktemp -d)
trap 'podman_ rm -fa >/dev/null 2>&1; podman_ rmi -fa >/dev/null 2>&1; rm -rf "$work"' EXIT

# Images of its own, which go with the folder. Limits are not raised, for that takes
# CAP_SYS_RESOURCE, which a test machine may not give.
export CONTAINERS_CONF=$work/containers.conf
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n' \
	>"$CONTAINERS_CONF"
# crun, which is podman's own choice, refuses version 1 of cgroups with cgroup2 beside it.
runtime=()
! mountpoint -q /sys/fs/cgroup/unified || runtime=(--runtime runc)
podman_() {
	podman "${runtime[@]}" --root "$work/storage" --runroot "$work/run" \
		--storage-driver vfs "$@"
}

count=0 bad=0
check() { # NAME COMMAND...
	local name=$1 rc=0
	shift
	"$@" >"$work/log" 2>&1 </dev/null || rc=$?
	count=$((count + 1))
	if ((rc == 0)); then
		echo "ok $count - image: $name"
	else
		bad=$((bad + 1))
		sed 's/^/# /' "$work/log"
		echo "not ok $count - image: $name"
	fi
}
run() {
	podman_ run --rm --network none "$@"
}

if [[ -n ${PK_DEB:-} ]]; then
	cp -r "$PK_DEB" "$work/deb"
else
	"$VM_TOP/packaging/deb.sh" "$work/deb" >&2
fi
tar -c -C "$PK_ROOT" . | podman_ import -q - localhost/base:1 >/dev/null
check "builds" podman_ build --network host -f "$VM_TOP/packaging/image/Containerfile" \
	--target agent --build-arg BASE=localhost/base:1 -t localhost/gpushare/agent "$work/deb"
check "the agent is what it runs" run localhost/gpushare/agent --help
check "it has the tool, of the same version" eval \
	'run --entrypoint gpusharectl localhost/gpushare/agent --version |
		grep -F "$(<"$VM_TOP/VERSION")"'
check "it has the runtime for the node" run --entrypoint test localhost/gpushare/agent \
	-x /usr/bin/gpushare-runtime
check "the controller's builds" podman_ build --network host \
	-f "$VM_TOP/packaging/image/Containerfile" --target controller \
	--build-arg BASE=localhost/base:1 -t localhost/gpushare/controller "$work/deb"
check "... and runs, as nobody" run localhost/gpushare/controller --help
check "no package lists are left in it" eval \
	'lists=$(run --entrypoint ls localhost/gpushare/agent /var/lib/apt/lists) &&
		[[ -z $lists ]]'
if (($# > 0)); then
	for name in agent controller; do
		podman_ tag "localhost/gpushare/$name" \
			"docker.io/library/gpushare-$name:$(<"$VM_TOP/VERSION")"
	done
	check "both in one archive" podman_ save -q -m -o "$1" \
		"docker.io/library/gpushare-"{agent,controller}":$(<"$VM_TOP/VERSION")"
fi
echo "1..$count"
((bad == 0))
