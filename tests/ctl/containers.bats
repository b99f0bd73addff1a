#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl containers: the registry as people see it.
# shellcheck disable=SC2154 # what common.bash sets

load common

# record ID NAME ROLE [MEMBERS]: a record; MEMBERS is more JSON, beginning with a comma.
record() {
	local ns pod container
	IFS=/ read -r ns pod container <<<"$2"
	mkdir -p "$run_dir/containers"
	cat >"$run_dir/containers/$1.json" <<-EOT
		{"v":1,"id":"$1","bundle":"/run/b/$1","role":"$3","identity":{"namespace":"$ns",
		"pod":"$pod","container":"$container"},"next":"/usr/bin/runc"
		${4-},"spec":${spec:-"{}"}}
	EOT
}

# alive ID: lets it run, as the process of this test.
alive() {
	local start
	start=$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 20)
	echo "{\"v\":1,\"id\":\"$1\",\"pid\":$$,\"start_ticks\":$start}" \
		>"$run_dir/containers/$1.hook.json"
}

@test "without a registry there is nothing to show, and that is no failure" {
	ctl containers
	got 0 '' 'no container of this node'
	ctl containers -o json
	got 0 '^\[\]$' ''
}

@test "shows holders and targets, with sources by name" {
	spec='{"linux":{"devices":[{"path":"/dev/nvidia0"},{"path":"/dev/nvidiactl"}]}}' \
		record aaaaaaaaaaaaaaaaaaaa team-a/dev/main holder
	local env='"NVIDIA_VISIBLE_DEVICES=GPU-1","NVIDIA_DRIVER_CAPABILITIES=all"'
	spec="{\"process\":{\"env\":[$env]}}" record bbbbbbbbbbbbbbbbbbbb team-a/dev/dind target \
		',"sources":["aaaaaaaaaaaaaaaaaaaa","cccccccccccccccccccc"]'
	alive aaaaaaaaaaaaaaaaaaaa
	ctl containers
	got 0 'ID +NAMESPACE/POD/CONTAINER +ROLE +PID +DEVICES +SOURCES +NEXT' ''
	got 0 "aaaaaaaaaaaa +team-a/dev/main +holder +$$ +nvidia0,nvidiactl +- +runc"
	got 0 'bbbbbbbbbbbb +team-a/dev/dind +target +gone +NVIDIA_VISIBLE_DEVICES=GPU-1 '
	got 0 ' team-a/dev/main,cccccccccccc +runc'
	[[ $output != *CAPABILITIES* && $output != *aaaaaaaaaaaaa* ]]
}

@test "counts devices beyond a few, and wide shows all" {
	spec='{"linux":{"devices":[{"path":"/dev/n0"},{"path":"/dev/n1"},{"path":"/dev/n2"},
		{"path":"/dev/n3"},{"path":"/dev/n4"}]}}' record c1 a/b/c borrower \
		',"grant":"0123456789abcdef0123456789abcdef","pod_uid":"uid-7"'
	ctl containers
	got 0 'borrower +gone +n0,n1,n2,\+2 ' ''
	ctl containers -o wide
	got 0 '/dev/n0,/dev/n1,/dev/n2,/dev/n3,/dev/n4 +- +/usr/bin/runc +012345\.\.\. ' ''
	got 0 ' uid-7 +/run/b/c1'
	[[ $output != *0123456* ]]
}

@test "json has everything but the grant's name" {
	spec='{"linux":{"devices":[{"path":"/dev/n0"}]}}' record c1 a/b/c target \
		',"sources":["c2"],"sandbox_id":"s","grant":"0123456789abcdef0123456789abcdef"'
	alive c1
	ctl containers -o json
	got 0 . ''
	[ "$(json '[d[0][k] for k in ("id", "namespace", "pod", "container", "role")]')" = \
		"['c1', 'a', 'b', 'c', 'target']" ]
	[ "$(json '[d[0][k] for k in ("devices", "sources", "sandbox_id", "next", "bundle")]')" = \
		"[['/dev/n0'], ['c2'], 's', '/usr/bin/runc', '/run/b/c1']" ]
	[ "$(json 'd[0]["pid"]')" = $$ ]
	[[ $output != *0123456* ]]
}

@test "a deleted container that is gone shows only with --all" {
	record c1 a/b/one holder
	record c2 a/b/two holder
	mkdir -m 0700 "$run_dir/deleted"
	: >"$run_dir/deleted/c1"
	: >"$run_dir/deleted/c2"
	alive c2
	ctl containers
	got 0 'a/b/two' ''
	[[ $output != *a/b/one* ]]
	ctl containers --all
	got 0 'a/b/one' ''
	# Looking changes nothing.
	[ -e "$run_dir/containers/c1.json" ]
}

@test "one broken record is told and hides no other" {
	record c1 a/b/one holder
	record c2 a/b/two holder
	echo '{"v":1' >"$run_dir/containers/c2.json"
	ctl containers
	got 1 'a/b/one' 'containers/c2.json'
	ctl containers -o json
	got 1 'one' 'c2.json'
}

@test "a name can't give the terminal orders" {
	record c1 $'a/b/c\\u001b[31m' holder
	ctl containers
	got 0 'a/b/c\?\[31m' ''
	[[ $output != *$'\e'* ]]
}

@test "a registry that others may write to is refused" {
	record c1 a/b/c holder
	chmod 0777 "$run_dir/containers"
	ctl containers
	got 1 '' 'may be written by others'
}
