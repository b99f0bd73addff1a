#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl: calls, help, spec and config check.
# shellcheck disable=SC2154 # what common.bash sets

load common

@test "a wrong call is 2 and says where help is" {
	local call
	ctl
	got 2 '' 'usage: gpusharectl'
	for call in nothing 'containers -x' 'containers --nope' 'containers x' 'containers -o' \
		'containers -o yaml' 'grant' 'grant -z' 'grant x' 'grant --source' \
		'grant --source a/b' 'grant --to a/b/c' 'grant --list --source a/b/c' \
		'grant --list --revoke 012345' 'config' 'config show' 'config check a b' \
		'config check -o wide'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 2 '' '^gpusharectl: [^:]'
		[[ $said == *--help* ]]
	done
}

@test "every verb has help with an example" {
	local verb
	ctl --help
	got 0 'status.*inspect.*lend.*reclaim.*events.*grant.*containers.*spec.*config' ''
	got 0 'config.*setup.*doctor.*kmod' ''
	for verb in status inspect top lend reclaim events containers grant config spec setup \
		doctor kmod; do
		ctl "$verb" --help
		got 0 "^usage: gpusharectl $verb" ''
		[[ $output == *Example:\ * ]]
	done
	ctl --version
	got 0 "^gpusharectl $(<VERSION)$" ''
}

@test "kubectl-gpushare is the same program, with what is about the cluster" {
	local verb
	ln -s "$bin/gpusharectl" "$dir/kubectl-gpushare"
	for verb in inspect top; do
		run "$dir/kubectl-gpushare" "$verb" --help
		[ "$status" -eq 0 ]
		[[ $output == "usage: kubectl gpushare $verb"*Example:\ * ]]
	done
	run "$dir/kubectl-gpushare" --help
	[[ $output == 'usage: kubectl gpushare VERB'*inspect*top* && $output != *lend\ * ]]
	run "$dir/kubectl-gpushare" lend x
	[ "$status" -eq 2 ]
	[[ $output == *'kubectl gpushare: no verb lend'*'called there: gpusharectl lend'* ]]
	run "$dir/kubectl-gpushare" --version
	[ "$status" -eq 0 ]
	[ "$output" = "gpusharectl $(<VERSION)" ]
}

@test "gpushared and gpushare-controller say what they are, and know what they don't take" {
	local name
	for name in gpushared gpushare-controller; do
		run "$bin/$name" --help
		[[ $status == 0 && $output == "usage: $name [--config FILE]"*"See $name(8)."* ]]
		[[ $output == *Example:\ *"$name"* ]]
		run "$bin/$name" --version
		[[ $status == 0 && $output == "$name $(<VERSION)" ]]
		run "$bin/$name" --no-such-option
		[[ $status == 2 && $output == "usage: $name "* ]]
		run "$bin/$name" argument
		[[ $status == 2 && $output == "usage: $name "* ]]
	done
}

@test "gpushare-probe says whose it is" {
	run "$bin/gpushare-probe" --help
	[[ $status == 0 && $output == *gpushared* ]]
	run "$bin/gpushare-probe" --no-such-option
	[[ $status == 2 && $output == *gpushared* ]]
	run "$bin/gpushare-probe"
	[ "$status" -eq 2 ]
}

@test "output that does not arrive is a failure" {
	run bash -c '"$1" --help >/dev/full' - "$bin/gpusharectl"
	[ "$status" -eq 1 ]
	[[ $output == 'gpusharectl: write: '* ]]
}

@test "spec is called and fails like any other verb" {
	local call
	mkdir -p "$dir/b1"
	echo '{"ociVersion":"1.0.2","process":{"args":["sh"]},"linux":{}}' >"$dir/b1/config.json"
	for call in -x --nope --id "--id x" "$dir/b1 b2"; do
		# shellcheck disable=SC2086 # words
		ctl spec $call
		got 2 '' '^gpusharectl: [^:]*'
		[[ $said == *"Try 'gpusharectl spec --help'." && $(wc -l <<<"$said") -eq 2 ]]
	done
	for call in --help "$dir/b1" "--json $dir/b1"; do
		# shellcheck disable=SC2086 # words
		run bash -c '"$@" >/dev/full' - "$bin/gpusharectl" spec $call
		[ "$status" -eq 1 ]
		[[ $output == 'gpusharectl: write: '* ]]
	done
}

@test "spec shows a bundle and changes nothing" {
	mkdir -p "$dir/b1"
	cat >"$dir/b1/config.json" <<-'EOT'
		{"ociVersion":"1.0.2","process":{"args":["sh"],"env":[],"cwd":"/"},
		"root":{"path":"rootfs"},"annotations":{"a":"b"},"linux":{}}
	EOT
	before=$(<"$dir/b1/config.json")
	ctl spec "$dir/b1"
	got 0 'not changed' ''
	[ "$before" = "$(<"$dir/b1/config.json")" ]
	ctl spec "$dir/none"
	got 1 '' '^gpusharectl: '
	ctl spec
	got 2 '' 'gpusharectl: spec takes one bundle'
}

@test "spec names annotations that are misspelt, and the keys that were meant" {
	mkdir -p "$dir/b1"
	cat >"$dir/b1/config.json" <<-'EOT'
		{"ociVersion":"1.0.2","process":{"args":["sh"],"env":[],"cwd":"/"},
		"root":{"path":"rootfs"},"annotations":{
		"io.kubernetes.cri.container-type":"container",
		"io.kubernetes.cri.sandbox-id":"s","io.kubernetes.cri.sandbox-uid":"u",
		"io.kubernetes.cri.sandbox-namespace":"n","io.kubernetes.cri.sandbox-name":"p",
		"io.kubernetes.cri.container-name":"c",
		"gpushare.k8s.io/container-device-from.c":"_/_/x",
		"gpushare.k8s.io/lend_after":"5m","gpushare.k8s.io/share":"true",
		"gpushare.k8s.io/nothing-like-it":"1"},"linux":{}}
	EOT
	ctl spec "$dir/b1"
	got 0 'not changed' 'container-device-from.c" is none of gpushare.s; the nearest is'
	[[ $said == *'is "gpushare.k8s.io/container-devices-from.c"'* ]]
	[[ $said == *'/lend_after" is none of gpushare'*'"gpushare.k8s.io/lend-after"'* ]]
	[[ $said == *'"gpushare.k8s.io/nothing-like-it" is none of gpushare'"'s"* ]]
	[ "$(grep -c warning <<<"$said")" -eq 3 ]
	ctl spec --json "$dir/b1"
	[ "$output" = "$(<"$dir/b1/config.json")" ]
}

@test "spec without the program behind it says what is missing" {
	local hidden=()
	cp "$bin/gpusharectl" "$dir/gpusharectl"
	# A gpushare that is installed on this machine must not answer instead.
	if [[ -e /usr/libexec/gpushare/gpushare-spec ]]; then
		hidden=(unshare --mount --map-root-user /bin/sh -c
			'mount -t tmpfs tmpfs /usr/libexec/gpushare && exec "$@"' -)
	fi
	run "${hidden[@]}" "$dir/gpusharectl" spec "$dir"
	[ "$status" -eq 1 ]
	[[ $output == "gpusharectl: gpushare-spec is neither in $dir nor in "* ]]
}

@test "config check: no file at all is fine" {
	export GPUSHARE_CONFIG=$dir/none.json
	ctl config check
	[[ $output == "$dir/none.json: no such file, so the defaults"* ]]
	[[ $output == *'"run_dir": "/run/gpushare"'* ]]
	ctl config check "$dir/none.json"
	got 1 '' "none.json: No such file"
}

@test "config check takes a relative path" {
	config '{"cri": "cri-o"}'
	unset GPUSHARE_CONFIG
	cd "$dir"
	ctl config check ./config.json
	got 0 "^$dir/config.json: ok"
	[[ $output == *'"cri": "cri-o"'* ]]
	ctl config check none.json
	got 1 '' '^gpusharectl: none.json: No such file'
}

@test "config check knows how small and how large a value may be" {
	local wrong
	for wrong in 'agent:lend_after":"49ms' 'agent:lend_min_free":101' 'agent:hold_max":"0s' \
		'agent:load_period":"0' 'agent:sample_period":"999ms' \
		'agent:http":{"port":65536}' 'agent:device_plugins":{"share":0}' \
		'agent:device_plugins":{"share":65}' 'agent:oversale":{"cpu_ratio":1001}' \
		'agent:oversale":{"memory_ratio":9223372036854775807}' 'controller:port":65536' \
		'controller:shadow":{"share":0}' 'controller:shadow":{"quiet":"999ms"}' \
		'controller:shadow":{"account_cards":1000001}'; do
		# a time has the one quote still to come
		[[ $wrong != *s && $wrong != *\"0 ]] || wrong+='"'
		config "{\"${wrong%%:*}\": {\"${wrong#*:}}}"
		ctl config check
		got 1 '' '^gpusharectl: .*config.json:1:[0-9]+: [a-z_]+ must be at (least|most) '
	done
}

@test "config check prints what is in force and a line for each vendor" {
	config '{"cri": "cri-o", "log": {"level": "debug", "file": "/var/log/x"}}'
	ctl config check
	got 0 "^$dir/config.json: ok" ''
	[[ $output == *'"cri": "cri-o"'* ]]
	[[ $output == *'"file": "/var/log/x"'* ]]
	local files=(vendors/*.json)
	[ "$(grep -c ' /.*/vendors/[a-z]*\.json$' <<<"$output")" -eq "${#files[@]}" ]
}

@test "what config check prints is the whole configuration" {
	config '{"profiles": {"x": {"next": ["crun"]}}, "agent": {"lend": true},
		"controller": null}'
	ctl config check
	got 0 '"profiles": ' ''
	ctl config check -o json
	[ "$(json 'd["config"]["profiles"]["x"]["next"]')" = "['crun']" ]
	[ "$(json 'd["config"]["agent"]["lend"]')" = True ]
	[ "$(json '"controller" in d["config"]')" = False ]
	[ "$(json 'd["file"]')" = "$dir/config.json" ]
	[ "$(json 'd["exists"]')" = True ]
	local files=(vendors/*.json)
	[ "$(json 'len(d["vendors"])')" -eq "${#files[@]}" ]
	json 'json.dumps(d["config"])' >"$dir/again.json"
	before=$output
	ctl config check -o json "$dir/again.json"
	got 0 . ''
	[ "$(json 'd["config"]')" = "$(output=$before json 'd["config"]')" ]
}

@test "config check tells a mistake with file, line and column" {
	printf '{\n "next": 7\n}\n' >"$dir/bad.json"
	ctl config check "$dir/bad.json"
	got 1 '' "^gpusharectl: $dir/bad.json:2:10: next "
	printf '{"nxt": []}\n' >"$dir/bad.json"
	ctl config check "$dir/bad.json"
	got 1 '' "bad.json:1:.*nxt"
	GPUSHARE_CONFIG=$dir/bad.json ctl containers
	got 1 '' 'bad.json:1:.*nxt'
	GPUSHARE_CONFIG=$dir/bad.json ctl grant --list
	got 1 '' 'bad.json:1:.*nxt'
}

@test "config check looks into the sections of agent and controller" {
	local wrong=(
		'"agent": {"lnd": true}|1:.*: unknown key "lnd" in agent'
		'"agent": []|1:11: agent must be an object'
		'"agent": {"lend": 1}|1:20: lend must be true or false'
		'"agent": {"lend": true, "lend": false}|1:.*: key "lend" stands twice'
		'"agent": {"lend_after": "10 minutes"}|1:26: lend_after: '
		'"agent": {"probe": "x"}|1:21: probe must be an absolute path, not "x"'
		'"agent": {"exempt": [1]}|1:23: exempt must be a list of strings'
		'"agent": {"http": {"prot": 1}}|1:21: unknown key "prot" in http'
		'"agent": {"oversale": {"cpu_floor": "x"}}|1:38: cpu_floor: '
		'"agent": {"kubernetes": {"server": "https://a:1"}}|1:.*: key "node" is missing'
		'"agent": {"device_plugins": {"share": "2"}}|1:.*: share must be a whole'
		'"controller": {"port": "x"}|1:25: port must be a whole number'
		'"controller": {"shadow": {"quite": "5m"}}|1:28: unknown key "quite" in shadow'
		'"controller": {"kubernetes": {"node": "x"}}|1:.*: unknown key "node" in kubernetes'
	)
	local case
	for case in "${wrong[@]}"; do
		printf '{%s}' "${case%%|*}" >"$dir/bad.json"
		ctl config check "$dir/bad.json"
		got 1 '' "^gpusharectl: $dir/bad.json:${case#*|}"
	done
	# Containers do not wait for others' sections to be right.
	GPUSHARE_CONFIG=$dir/bad.json ctl grant --list
	[[ $said != *bad.json* ]]
	config '{"agent": {"lend_after": "5m", "http": {"port": 0}, "exempt": ["a/*/b"],
		"kubernetes": {"server": "https://a:1", "node": "n"}, "sample_period": null,
		"oversale": {"memory_floor": "4Gi"}, "device_plugins": {"kubelet_dir": "/x"}},
		"controller": {"kubernetes": {"server": "https://a:1"}, "data_classes": ["x"],
		"shadow": {"quiet": "5m", "account_cards": 0}}}'
	ctl config check
	got 0 . ''
}

@test "config check tells every wrong vendor file, and shows the right ones" {
	mkdir "$dir/v"
	cp vendors/nvidia.json "$dir/v"
	echo '{"name": "a", "nodes": 7}' >"$dir/v/a.json"
	echo '{"name": ' >"$dir/v/z.json"
	config "{\"vendor_dirs\": [\"$dir/v\"]}"
	ctl config check
	got 1 'nvidia .*/v/nvidia.json' 'v/a.json:1:.*nodes.*v/z.json'
	ctl config check -o json
	got 1 . 'a.json'
	[ "$(json 'len(d["vendors"])')" -eq 1 ]
	config '{"vendor_dirs": ["/nonexistent"]}'
	ctl config check
	got 1 . 'no vendor catalogue'
}

@test "config check warns of what would show at the first container" {
	config '{"next": ["no-such-runtime", "/nope"], "hook": "/nope/hook"}'
	ctl config check
	got 0 . 'warning: none of the runtimes.*warning: .*/nope/hook'
	config '{"next": ["no-such-runtime", "true"]}'
	ctl config check
	got 0 . ''
	mkdir "$dir/here"
	printf '#!/bin/sh\n' >"$dir/here/no-such-runtime"
	chmod +x "$dir/here/no-such-runtime"
	config '{"next": ["no-such-runtime"]}'
	PATH=$PATH:$dir/here ctl config check
	got 0 . ''
	cd "$dir/here"
	PATH=$PATH::. ctl config check
	got 0 . 'warning: none of the runtimes'
}
