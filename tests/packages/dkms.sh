#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gpushare-dkms on a Debian suite: apt installs it with DKMS, which builds the module for a kernel
# of that series; removed, nothing of it is left. In a root, at this machine's speed. TAP.
#
#	dkms.sh SUITE	bookworm or trixie
#
# PK_DEB names a folder of packages that are there already.
set -euo pipefail
# shellcheck source=tests/node/lib/common.sh
source "$(dirname "$0")/../node/lib/common.sh"
# shellcheck source=tests/packages/root.sh
source "$VM_TOP/tests/packages/root.sh"

suite=${1:-}
if [[ -z ${pk_kernel_of[$suite]:-} ]]; then
	sed -n '/^#\t/s/^#//p' "$0" >&2
	exit 2
fi
if ((EUID != 0)) || ! command -v dh >/dev/null; then
	echo "1..0 # SKIP needs root and debhelper (packaging/deps.sh deb)"
	exit 0
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
kernel_get "${pk_kernel_of[$suite]}"
pk_root "$suite"
work=$(mktemp -d)
finish() {
	umount -q "$root/proc" || true
	rm -rf "$work"
}
root=$work/root
trap finish EXIT

count=0 bad=0
# What the module's build said, for apt only names the file.
build_log() {
	tail -n 40 "$root"/var/lib/dkms/gpushare/*/build/make.log 2>/dev/null || true
}
result() { # STATUS NAME
	count=$((count + 1))
	if (($1 == 0)); then
		echo "ok $count - $suite: $2"
	else
		bad=$((bad + 1))
		{ cat "$work/log" && build_log; } | sed 's/^/# /'
		echo "not ok $count - $suite: $2"
	fi
}
check() { # NAME COMMAND...
	local name=$1 rc=0
	shift
	"$@" >"$work/log" 2>&1 </dev/null || rc=$?
	result $rc "$name"
}
inside() {
	chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
}
list_files() {
	find "$root" -xdev \( -path "$root/var/lib/dpkg" -o -path "$root/var/log" \
		-o -path "$root/var/cache" -o -path "$root/var/lib/apt" -o -path "$root/tmp" \
		-o -path "$root/proc" -o -path "$root/deb" \) \
		-prune -o -type f -printf '%P %s\n' -o -printf '%P\n' |
		grep -vE '/modules\.[a-z.]+( |$)' | LC_ALL=C sort
}

if [[ -n ${PK_DEB:-} ]]; then
	cp -r "$PK_DEB" "$work/deb"
else
	"$VM_TOP/packaging/deb.sh" "$work/deb" >&2
fi
cp -a "$PK_ROOT" "$root"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc"
mkdir "$root/deb"
cp "$work"/deb/gpushare-dkms_*.deb "$root/deb/gpushare-dkms.deb"
# The kernel's headers and list of modules, where its packages would put them.
cp -a --keep-directory-symlink "$K_DIR"/headers/. "$root" 2>/dev/null ||
	tar -c -C "$K_DIR/headers" . | tar -x --keep-directory-symlink -C "$root"
grep -rlZF "$K_DIR/headers" "$root/usr/src" | xargs -0r sed -i "s#$K_DIR/headers##g"
mkdir -p "$root/lib/modules/$K_RELEASE"
cp "$K_DIR/root/lib/modules/$K_RELEASE"/modules.{order,builtin} "$root/lib/modules/$K_RELEASE"
ln -sfn "/usr/src/linux-headers-$K_RELEASE" "$root/lib/modules/$K_RELEASE/build"
# As the kernel's package does; DKMS takes a kernel without it for one that is not there.
inside depmod "$K_RELEASE" 2>/dev/null

check "apt knows the suite" inside apt-get -q update
# The headers were copied, so what their packages and linux-kbuild depend on does not come by
# itself: the compiler of the kernel, pahole, and libraries of objtool's and sign-file's.
compiler=$(sed -nE 's/^CONFIG_CC_VERSION_TEXT="[^ ]*(gcc-[0-9]+) .*/\1/p' "$K_HEADERS/.config")
check "DKMS is there" inside apt-get -q -y --no-install-recommends install dkms \
	"$compiler" pahole libelf1 libssl3
list_files >"$work/before"
check "the package is installed, and the module built" \
	eval 'inside apt-get -q -y --no-install-recommends install /deb/gpushare-dkms.deb &&
		{ inside dkms status gpushare | grep -q "$K_RELEASE.*installed" ||
			inside dkms install gpushare/"$(<"$VM_TOP/VERSION")" -k "$K_RELEASE"; }'
check "it is of this kernel and version" eval \
	'inside modinfo -k "$K_RELEASE" -F vermagic gpushare | grep -qF "$K_RELEASE" &&
	[[ $(inside modinfo -k "$K_RELEASE" -F version gpushare) == "$(<"$VM_TOP/VERSION")" ]]'
check "purged" inside apt-get -q -y purge gpushare-dkms
check "nothing of it is left" eval 'list_files | diff "$work/before" -'
check "dpkg knows nothing of it" eval '! inside dpkg -l gpushare-dkms | grep -E "^[ir][a-z]"'
echo "1..$count"
((bad == 0))
