#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make rpm`: the RPM packages of what git has, into build/rpm (or the folder that is given);
# options behind it are rpmbuild's, such as --nodeps where the libraries are no packages of RPM's.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-build/rpm}
(($# == 0)) || shift
version=$(<VERSION)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/SOURCES"
packaging/source.sh "$work/gpushare-$version"
tar -c -C "$work" "gpushare-$version" | gzip -n >"$work/SOURCES/gpushare-$version.tar.gz"
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS DESTDIR
rpmbuild -bb --define "_topdir $work" --define "gpushare_version $version" "$@" \
	packaging/rpm/gpushare.spec >"$work/log" 2>&1 || {
	tail -n 40 "$work/log" >&2
	exit 1
}
mkdir -p "$out"
rm -f "$out"/*.rpm
find "$work/RPMS" -name '*.rpm' -exec mv -t "$out" {} +
ls "$out"/*.rpm
