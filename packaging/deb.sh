#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make deb`: the Debian packages of what git knows of this working tree, into build/deb (or the
# folder that is given). Built in a folder of their own, so that nothing of build/ gets in, and by
# any user; the same tree gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-build/deb}
version=$(<VERSION)
if [[ $(dpkg-parsechangelog -l packaging/debian/changelog -S Version) != "$version" ]]; then
	echo "deb: VERSION is $version, and packaging/debian/changelog begins with another" >&2
	exit 1
fi
lacks=$(dpkg-checkbuilddeps packaging/debian/control 2>&1) || {
	echo "deb: ${lacks#*: }" >&2
	echo "deb: sudo packaging/deps.sh build deb installs what is missing" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/gpushare-$version
packaging/source.sh "$source"
cp -a "$source/packaging/debian" "$source/debian"
# Not what the caller's make was told: these are the packages' own.
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS DESTDIR
(cd "$source" && dpkg-buildpackage --build=binary --no-sign -j"${DEB_JOBS:-$(nproc)}") \
	>"$work/log" 2>&1 || {
	tail -n 40 "$work/log" >&2
	exit 1
}
mkdir -p "$out"
rm -f "$out"/*.{deb,changes,buildinfo}
mv "$work"/*.{deb,changes,buildinfo} "$out"
ls "$out"/*.deb
