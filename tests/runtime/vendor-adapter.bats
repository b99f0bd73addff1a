#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The made-up chip of docs/vendor-adapter.md, from its entry to its cleaning up, as it is typed
# there, on real runc.

source "$BATS_TEST_DIRNAME/../lib/lib.sh"

setup_file() {
	needs runc busybox || return 0
	node_start
	node_hide /opt
	typed=$NODE_DIR/typed
	export typed
	# One shell, as a person has: it keeps its folder and its variables.
	{
		block acme-entry
		block acme-containers
		echo 'echo ---holder'
		block acme-holder
		echo 'echo ---plan'
		block acme-plan
		echo 'echo ---target'
		block acme-target
		echo 'echo ---clean'
		block acme-clean
	} >"$typed"
	node_exec /usr/bin/env "PATH=$GS_BIN:/usr/sbin:/usr/bin:/sbin:/bin" "LIB=$GS_LIB" \
		/bin/bash -eu "$typed" >"$NODE_DIR/said" 2>&1 || {
		cat "$NODE_DIR/said" >&2
		return 1
	}
}

# What the page prints, in folders of the test's node, with the programs of the source tree and a
# cgroup of the node's.
block() {
	doc_block docs/vendor-adapter.md "$1" | sed \
		-e "s#/tmp/acme#$NODE_DIR/acme#g" \
		-e "s#\"cri\": \"none\",#&\"hook\": \"$GS_BIN/gpushare-hook\", \"vendor_dirs\":\
 [\"$GS_TOP/vendors\", \"/etc/gpushare/vendors.d\"],#" \
		-e "s#^    spec\\[\"process\"\\].update#    spec[\"linux\"][\"cgroupsPath\"] =\
 \"$NODE_CGROUP/\" + name\\n&#"
}

setup() {
	skip_if_lacking
	said=$(<"$NODE_DIR/said")
}

teardown_file() {
	node_stop
}

# after NAME: what was said by the block of that name.
after() {
	sed "1,/^---$1\$/d; /^---/,\$d" <<<"$said"
}

@test "vendor-adapter: the entry is accepted" {
	matches "${said%%---*}" 'acme +.*/etc/gpushare/vendors.d/acme.json'
}

@test "vendor-adapter: the holder is known" {
	matches "$(after holder)" 'demo/pod/main +holder +[0-9]+ +acme0,acmectl'
}

@test "vendor-adapter: the plan names variable, nodes, rules and mount" {
	local plan
	plan=$(after plan)
	matches "$plan" 'ACME_VISIBLE_DEVICES=0'
	matches "$plan" '/dev/acme0'
	matches "$plan" '/dev/acmectl'
	matches "$plan" 'libacme.so.1'
}

@test "vendor-adapter: the target has it all, and the driver alone is not there" {
	local got
	got=$(after target)
	matches "$got" "/dev/acme0
/dev/acmectl
the maker's library
cards: 0"
	# What ENXIO is called differs from busybox to busybox. It comes by another pipe: anywhere.
	matches "$got" "cat: [^
]*: No such device"
	equals "$(wc -l <<<"$got")" 5
}

@test "vendor-adapter: nothing is left" {
	equals "$(after clean)" ""
	node_exec /bin/bash -c '! ls -d /dev/acme* /opt/acme /etc/gpushare "$1/acme" 2>/dev/null' \
		- "$NODE_DIR"
}
