# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What every script of tests/vm starts with: places, messages, and a cache that several runs share.

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for those who source this
VM_TOP=$(cd "$VM_DIR/../.." && pwd)
VM_CACHE=${GPUSHARE_TEST_CACHE:-/var/cache/gpushare-tests}/vm
vm_me=vm/${0##*/}

say() {
	printf '%s: %s\n' "$vm_me" "$*" >&2
}

die() {
	say "$@"
	exit 1
}

# Prints a short hash of stdin.
hash_of() {
	sha256sum | cut -c1-12
}

# cached PATH COMMAND...: makes the folder PATH below the cache, unless it is there, by
# `COMMAND... FOLDER`. FOLDER is empty and becomes PATH only when COMMAND succeeded, so nobody sees
# it half made; a second run that wants the same waits for the first.
cached() {
	local path=$1 new=$1.new rc=0
	shift
	[[ ! -d $path ]] || return 0
	mkdir -p "${path%/*}" "$VM_CACHE/lock"
	set +e # not `|| rc=$?`, under which bash ignores errors inside
	(
		set -e
		flock 9
		[[ ! -d $path ]] || exit 0
		rm -rf "$new"
		mkdir "$new"
		"$@" "$new"
		mv -T "$new" "$path"
	) 9>"$VM_CACHE/lock/${path##*/}"
	rc=$?
	set -e
	((rc == 0)) || die "could not make $path"
}
