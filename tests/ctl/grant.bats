#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl grant: making, listing, revoking.
# shellcheck disable=SC2154 # what common.bash sets

load common

@test "prints the name alone, and the file is a grant" {
	ctl grant --source team-a/dev/main
	got 0 '^[0-9a-f]{32}$' ''
	[ "$(stat -c %a "$lib_dir/grants")" = 700 ]
	[ "$(stat -c %a "$lib_dir/grants/$output.json")" = 600 ]
	/usr/bin/python3 - "$lib_dir/grants/$output.json" <<-'EOT'
		import json, sys
		grant = json.load(open(sys.argv[1]))
		assert grant == {"v": 1, "kind": "share", "state": "active", "cards": [],
		                 "sources": ["team-a/dev/main"]}, grant
	EOT
}

@test "takes several sources, a receiver and a card" {
	ctl grant --source a/b/c --source d/e/f --source a/b/c --to g/h/i --card GPU-1 -o json
	got 0 . ''
	[ "$(json 'd["sources"], d["to"], d["cards"], d["kind"]')" = \
		"(['a/b/c', 'd/e/f'], 'g/h/i', ['GPU-1'], 'share')" ]
	[[ $(json 'd["name"]') =~ ^[0-9a-f]{32}$ ]]
	[ -e "$lib_dir/grants/$(json 'd["name"]').json" ]
}

@test "a name that is none makes no grant" {
	local name
	for name in '' a a/b a/b/c/d _/_/c A/b/c ../b/c 'a/b/c '; do
		ctl grant --source "$name"
		got 2 '' '^gpusharectl: --source: '
		ctl grant --source a/b/c --to "$name"
		got 2 '' '^gpusharectl: --to: '
	done
	ctl grant --source a/b/c --card ''
	got 2 '' '--card'
	[ ! -e "$lib_dir" ]
}

@test "the list tells no whole name" {
	ctl grant --list
	got 0 '' 'no grants in'
	ctl grant --list -o json
	got 0 '^\[\]$' ''
	first=$("$bin/gpusharectl" grant --source a/b/c)
	second=$("$bin/gpusharectl" grant --source d/e/f --to g/h/i --card X)
	echo '{"v":1,"pod_uid":"u","container":"c"}' >"$lib_dir/grants/$second.bound"
	ctl grant --list
	got 0 "${first:0:6}\.\.\. +share +active +no +a/b/c +- +-" ''
	got 0 "${second:0:6}\.\.\. +share +active +yes +d/e/f +g/h/i +X"
	[[ $output != *"${first:0:7}"* && $output != *"${second:0:7}"* ]]
	ctl grant --list -o json
	[ "$(json 'sorted((g["bound"], g["state"], g["to"]) for g in d)')" = \
		"[(False, 'active', None), (True, 'active', 'g/h/i')]" ]
	[[ $output != *"${first:0:7}"* && $output != *"${second:0:7}"* ]]
}

@test "a spot grant whose lease ran out is expired" {
	mkdir -p "$lib_dir/grants"
	cat >"$lib_dir/grants/0123456789abcdef0123456789abcdef.json" <<-'EOT'
		{"v":1,"kind":"spot","state":"active","sources":[],"cards":["G"],
		"lease":{"boot_id":"another","deadline_ms":1}}
	EOT
	ctl grant --list
	got 0 '012345\.\.\. +spot +expired +no +- +- +G' ''
}

@test "revokes by the beginning of the name" {
	name=$("$bin/gpusharectl" grant --source a/b/c)
	other=$("$bin/gpusharectl" grant --source a/b/c)
	ctl grant --revoke "${name:0:6}"
	got 0 "^grant ${name:0:6}\.\.\. is revoked$" ''
	ctl grant --list
	got 0 "${name:0:6}\.\.\. +share +revoked"
	got 0 "${other:0:6}\.\.\. +share +active"
	ctl grant --revoke "$name"
	got 0 'is revoked' ''
}

@test "refuses a beginning that is too short, unknown, or of several" {
	local name bad
	name=$("$bin/gpusharectl" grant --source a/b/c)
	for bad in '' 01234 "${name:0:5}" ABCDEF ../../x '*' "${name}0"; do
		ctl grant --revoke "$bad"
		got 1 '' 'at least 6'
	done
	ctl grant --revoke ffffff0000
	got 1 '' 'no grant ffffff\.\.\.'
	for bad in 0 1; do
		cp "$lib_dir/grants/$name.json" \
			"$lib_dir/grants/0123456789abcdef0123456789abcde$bad.json"
	done
	ctl grant --revoke 0123456789
	got 1 '' '2 grants begin with 012345\.\.\.'
	ctl grant --revoke 0123456789abcdef0123456789abcde1
	got 0
}

@test "one broken grant is told and hides no other" {
	name=$("$bin/gpusharectl" grant --source a/b/c)
	echo '{' >"$lib_dir/grants/0123456789abcdef0123456789abcdef.json"
	ctl grant --list
	got 1 "${name:0:6}" 'grant 012345'
	[[ $said != *0123456* ]]
	chmod 0755 "$lib_dir/grants"
	ctl grant --list
	got 1 '' 'mode 0700'
	ctl grant --source a/b/c
	got 1 '' 'mode 0700'
}

@test "without rights it says what to do" {
	[ "$(id -u)" -eq 0 ] || skip "only root can become nobody"
	local verb
	"$bin/gpusharectl" grant --source a/b/c >/dev/null
	mkdir -p "$run_dir/containers"
	# Somewhere that others can enter.
	public=$(mktemp -d)
	mv "$dir/lib" "$dir/run" "$public"
	sed "s#$dir/#$public/#g" "$GPUSHARE_CONFIG" >"$public/config.json"
	cp "$bin/gpusharectl" "$public"
	chmod -R a+rX "$public"
	chmod 0700 "$public/lib/grants" "$public/run/containers"
	for verb in 'grant --list' 'grant --source a/b/c' containers; do
		# shellcheck disable=SC2086 # words
		GPUSHARE_CONFIG=$public/config.json run setpriv --reuid=65534 --regid=65534 \
			--clear-groups "$public/gpusharectl" $verb
		echo "$output"
		[ "$status" -eq 1 ]
		[[ $output == 'gpusharectl: '*'(run it as root)' ]]
	done
	rm -rf "$public"
}
