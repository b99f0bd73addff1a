# SPDX-License-Identifier: Apache-2.0
# Loaded by the tests of gpusharectl setup and doctor: a node's files in a folder.
# shellcheck shell=bash disable=SC2034,SC2154 # for the tests; what common.bash sets

load common
source "$BATS_TEST_DIRNAME/../lib/debian.sh"

setup() {
	umask 022
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	dir=$BATS_TEST_TMPDIR
	bin=$PWD/${B:-build}
	unset GPUSHARE_CONFIG
	root=$dir/node
	etc=$root/etc
	records=$root/var/lib/gpushare/setup
	mkdir -p "$root/usr/bin" "$etc"
	program gpushare-runtime ''
}

# program NAME WHAT-IT-PRINTS: one of the node's.
program() {
	printf '#!/bin/sh\necho "%s"\n' "$2" >"$root/usr/bin/$1"
	chmod 0755 "$root/usr/bin/$1"
}

# node_file PATH: writes a file of the node from stdin.
node_file() {
	mkdir -p "$root${1%/*}"
	cat >"$root$1"
}

node_setup() {
	ctl setup --root "$root" "$@"
}

# Every file of the node's configuration with owner, mode and content: what an undo must bring back.
snapshot() {
	(cd "$root" && export LC_ALL=C
		find etc var/lib/rancher -printf '%y %p %m %U %G %l\n' 2>/dev/null | sort
		find etc var/lib/rancher -type f -print0 2>/dev/null | sort -z |
			xargs -0r sha256sum) || true
}

# there_and_back ARGUMENT...: set up, twice, and undone byte for byte.
there_and_back() {
	local before after
	before=$(snapshot)
	node_setup --dry-run "$@"
	got 0 '^--- .*would be set up' ''
	[ "$(snapshot)" = "$before" ]
	node_setup "$@"
	got 0 'set up' ''
	after=$(snapshot)
	[ "$after" != "$before" ]
	node_setup "$@"
	got 0 'nothing to change' ''
	[ "$(snapshot)" = "$after" ]
	node_setup --dry-run --undo
	got 0 'would be undone' ''
	[ "$(snapshot)" = "$after" ]
	node_setup --undo
	got 0 ': undone' ''
	[ "$(snapshot)" = "$before" ] || {
		diff <(echo "$before") <(snapshot)
		return 1
	}
	[ ! -e "$records" ]
	node_setup --undo
	got 0 '^nothing to undo$' ''
}

# names FILE VERSION-OF-CRI: the runtimes in it, sorted.
names() {
	toml "$1" "sorted(d['plugins']['io.containerd.$2']['containerd']['runtimes'])"
}

# toml FILE EXPRESSION: prints the expression over d, the file's content, by Python's own parser.
toml() {
	/usr/bin/python3 -c '
import sys, tomllib
d = tomllib.load(open(sys.argv[1], "rb"))
print(eval(sys.argv[2]))' "$root$1" "$2"
}
