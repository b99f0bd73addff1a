#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs, upgrades and removes the packages on a node of a Debian suite; prints TAP.
#
#	run.sh [--here] SUITE [SCRIPT...]	SUITE: bookworm or trixie; SCRIPT: of suite/
#
# The node is a machine in QEMU, or, with --here, systemd in namespaces on this machine: in a minute
# and not in half an hour, but without the kernel module, so that nothing is lent.
#
# The packages are those of `make deb` on this machine; the ones that they are upgraded to are the
# same under a higher version. In QEMU the module lies on the node beforehand, as where it is built
# for a whole cluster; tests/packages/dkms.sh has DKMS build it. PK_DEB names a folder of packages
# that are there already. NODE_SLOW (1): how much longer than on an idle machine all may take.
set -euo pipefail
# shellcheck source=tests/node/lib/common.sh
source "$(dirname "$0")/../node/lib/common.sh"
source "$VM_DIR/lib/suite.sh"
here=$VM_TOP/tests/packages
# shellcheck source=tests/packages/root.sh
source "$here/root.sh"

here_only=
if [[ ${1:-} == --here ]]; then
	here_only=1
	shift
fi
suite=${1:-}
if [[ -z ${pk_kernel_of[$suite]:-} ]]; then
	sed -n '/^#\t/,/^#$/s/^#//p' "$0" >&2
	exit 2
fi
shift
(($# > 0)) || set -- story
kernel=${pk_kernel_of[$suite]}
slow=${NODE_SLOW:-1}
out=$VM_TOP/build/packages/$suite${here_only:+-here}

skip() {
	echo "1..0 # SKIP $*"
	exit 0
}
((EUID == 0)) || skip "needs root"
command -v protoc >/dev/null || skip "no protoc (packaging/deps.sh node)"
command -v dh >/dev/null || skip "no debhelper (packaging/deps.sh deb)"

unset MAKEFLAGS MFLAGS MAKELEVEL
if [[ -z $here_only ]]; then
	kernel_get "$kernel"
	initramfs_base
fi
pk_root "$suite"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# versions: v1 and v2 below $extra.
versions() {
	local version deb package
	version=$(<"$VM_TOP/VERSION")
	[[ -n ${PK_DEB:-} ]] || "$VM_TOP/packaging/deb.sh" "$out/deb" >&2
	mkdir "$extra/v1" "$extra/v2"
	for package in gpushare-runtime gpushare-agent gpusharectl; do
		deb=$(echo "${PK_DEB:-$out/deb}/${package}"_*.deb)
		cp "$deb" "$extra/v1"
		dpkg-deb -R "$deb" "$work/deb"
		sed -i "s/^Version: .*/&+later/; s/(= $version)/(= $version+later)/g" \
			"$work/deb/DEBIAN/control"
		dpkg-deb -b "$work/deb" "$extra/v2/$package.deb" >/dev/null
		rm -rf "$work/deb"
	done
	echo "$version" >"$extra/v1/version"
	echo "$version+later" >"$extra/v2/version"
}

# overlay: what is laid over the root: the node of tests/node, but as bare as people's are.
overlay() {
	overlay_config "$over"
	mkdir -p "$build/install"
	NODE_CRICTL='' overlay_build "$build" "$over"
	if [[ $here_only ]]; then
		rm "$over"/etc/systemd/system/{,multi-user.target.wants/}gpushare-test.service
		install -D "$here/runc-here" "$over/usr/local/sbin/runc"
	else
		overlay_modules "$over" fakegpu
		cp "$K_DIR/release" "$over/vm"
	fi
	# The agent's unit has the module loaded.
	rm "$over/etc/systemd/system/modprobe@.service"
	rm -rf "$over/etc/containers" "${over:?}/usr/share" \
		"$over/usr/lib/systemd/system/gpushared.service"
	file=$over/etc/containerd/config.toml
	head -n -"$(wc -l <"$VM_TOP/packaging/containerd/gpushare-v2.toml")" "$file" >"$file.new"
	mv "$file.new" "$file"
	# Who lacks CAP_SYS_RESOURCE, as test machines may, can't lower the oom score.
	[[ -z $here_only ]] || sed -i '/sandbox_image/a restrict_oom_score_adj = true' "$file"
	cp "$file" "$extra/config.toml"
	# Debian 13's containerd looks for networks there.
	ln -s /opt/cni/bin "$over/usr/lib/cni"
	cp "$VM_TOP/tests/fakegpu/fakegpu.json" "$extra"
	cp "$here"/suite/*.sh "$over/vm/suite"
	echo "$slow" >"$over/vm/slow"
}

# The same as below, in namespaces.
boot_here() { # COMMAND...
	local root=$work/root init rc=0
	cp -a "$work/over/." "$root"
	printf '%s\n' "${*@Q}" >"$root/vm/command"
	unshare -m -p -f -u -i -n -C "$here/here-init.sh" "$root" 2>"$out/unshare.log" &
	wait_here || return 1
	nsenter -t "$init" -m -p -u -i -n -C /usr/bin/env -i HOME=/root \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/vm/bin \
		bash /vm/command </dev/null 2>&1 || rc=$?
	kill -KILL "$init"
	wait || true
	return $rc
}

# Sets init, the first process of the node, when it is up.
wait_here() {
	local i
	for ((i = 0; i < 600; i++)); do
		init=$(pgrep -f "^/sbin/init $work/root\$" || true)
		[[ -z $init ]] || ! nsenter -t "$init" -m -p systemctl is-active --quiet \
			multi-user.target 2>/dev/null || return 0
		sleep 0.2
	done
	say "the node did not come up"
	return 1
}

suite_boot() { # --log FILE --timeout SECONDS -- COMMAND...
	local over=$work/overlay log=$2 limit=$4
	shift 5
	if [[ $here_only ]]; then
		boot_here timeout "$limit" "$@"
		return
	fi
	cp -a "$work/over" "$over"
	printf '%s\n' "${*@Q}" >"$over/vm/command"
	NODE_SMP=2 NODE_MEM=2048 NODE_THREAD=single NODE_CGROUP=v2 NODE_APPEND='' NODE_SHELL='' \
		NODE_DRIVE=,snapshot=on \
		node_boot "$suite" "$work/disk" "$over" "$work" "$limit" "$log"
}

suite_begin "packages $suite" "$here/suite" "$kernel"
over=$work/over extra=$work/over/vm/extra build=$out/build
mkdir -p "$extra"
versions
gcc -static -O2 -D_GNU_SOURCE -o "$work/probe" "$VM_TOP/tests/programs/probe.c"
if [[ $here_only ]]; then
	install -D "$work/probe" "$build/node/bin/fgpu"
else
	"$VM_DIR/build.sh" "$kernel" "$build"
	node_programs "$build"
fi
overlay
/usr/bin/python3 "$VM_TOP/tests/lib/mkimage.py" "$(command -v busybox)" "$work/probe" \
	"$extra/images.tar"
cp -a "$PK_ROOT" "$work/root"
image_fill "$work/root"
if [[ -z $here_only ]]; then
	truncate -s 2G "$work/disk"
	mkfs.ext4 -q -F -O ^metadata_csum -E lazy_itable_init=0 -m 0 -d "$work/root" "$work/disk"
	rm -rf "$work/root"
fi
suite_result ok "builds"
suite_run "$out" "$slow" $((180 * slow)) "bash /vm/suite/runner" "$@"
suite_finish
