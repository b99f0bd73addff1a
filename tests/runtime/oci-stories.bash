# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What runc.bats and crun.bats both tell: the runtime under test is called directly, with bundles
# and options as containerd's shim gives them. Without a CRI the identity is an annotation.

source "${BASH_SOURCE[0]%/*}/../lib/lib.sh"

# oci_stories_start RUNTIME [cgroup2]: a node whose next runtime that is, and no other.
oci_stories_start() {
	export NEXT=$1
	needs "$1" busybox || return 0
	node_start "${2:-}"
	devices_create
	oci_config
}

oci_config() {
	config_write 'cri="none"' "next=[\"$NEXT\"]" "state_dirs=[\"$NODE_DIR/bundles\"]"
}

me() {
	printf 'gpushare.k8s.io/identity=team-a/dev/%s' "$1"
}

from() {
	printf 'gpushare.k8s.io/container-devices-from.%s=%s' "$1" "$2"
}

# The pod of most stories: main was given a card, dind asks for main's.
oci_main() {
	oci_bundle main --annotation "$(me main)" --device /dev/nvidia0 "$@"
	oci_run main
}

oci_dind() {
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/main)" "$@"
	oci_run dind
}

# What the container and the caller see on success: nothing of ours.
oci_silent() {
	is_empty "$NODE_DIR/bundles/$1/stdout"
	is_empty "$NODE_DIR/bundles/$1/stderr"
	equals "$(oci_message)" ""
}

story_without_us() {
	local answers
	oci_main
	oci_bundle dind --annotation "$(me dind)"
	oci_run dind
	answers=$(oci_probe dind /dev/nvidia0 c:195:0)
	absent_in "$answers" /dev/nvidia0
	denied_in "$answers" c:195:0
}

story_copy() {
	local answers
	oci_main
	oci_silent main
	oci_dind
	oci_silent dind
	answers=$(oci_probe dind /dev/nvidia0 /dev/nvidia1 c:195:0 c:195:1)
	open_in "$answers" /dev/nvidia0 c:195:0
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
}

# Without annotations: not one byte of config.json changes.
story_untouched() {
	oci_bundle plain --device /dev/nvidia1
	cp "$NODE_DIR/bundles/plain/config.json" "$NODE_DIR/before.json"
	oci_run plain
	oci_silent plain
	cmp "$NODE_DIR/before.json" "$NODE_DIR/bundles/plain/config.json"
	open_in "$(oci_probe plain /dev/nvidia1)" /dev/nvidia1
}

story_two_sources() {
	local answers env
	oci_main --env NVIDIA_VISIBLE_DEVICES=void
	oci_bundle other --annotation "$(me other)" --device /dev/gcu0 --device /dev/gcuctl
	oci_run other
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/main,_/_/other)"
	oci_run dind
	answers=$(oci_probe dind /dev/nvidia0 /dev/gcu0 /dev/gcuctl /dev/nvidia1)
	open_in "$answers" /dev/nvidia0 /dev/gcu0 /dev/gcuctl
	absent_in "$answers" /dev/nvidia1
	env=$(oci exec dind /bin/env)
	matches "$env" NVIDIA_VISIBLE_DEVICES=void
}

# Field case 34: rules that stand outside config.json are lost when a limit is changed.
# story_update [OPTION of update]
story_update() {
	local answers
	oci_main
	oci_dind
	oci update "${@:---cpu-quota=50000}" dind
	answers=$(oci_probe dind /dev/nvidia0 c:195:1)
	open_in "$answers" /dev/nvidia0
	denied_in "$answers" c:195:1
}

# Field case 37: rules of the target's own that come last, or are not there at all, take nothing
# away from what it is given, and open it nothing else. (Without any, crun opens all.)
story_rule_order() {
	local deny='{"allow":false,"access":"rwm"}' rules answers
	local null='{"allow":true,"type":"c","major":1,"minor":3,"access":"rwm"}'
	local major='{"allow":false,"type":"c","major":195,"access":"rwm"}'
	oci_main
	for rules in null '[]' "[$deny]" "[$null,$deny]" "[$deny,$null,$major]"; do
		oci_dind --rules "$rules"
		answers=$(oci_probe dind /dev/nvidia0 c:195:0 c:195:1)
		open_in "$answers" /dev/nvidia0 c:195:0
		denied_in "$answers" c:195:1
		oci_remove dind
	done
}

story_privileged() {
	local answers
	oci_main
	oci_bundle alone --annotation "$(me alone)" --privileged
	oci_run alone
	open_in "$(oci_probe alone /dev/nvidia0 /dev/nvidia1)" /dev/nvidia0 /dev/nvidia1
	oci_dind --privileged
	answers=$(oci_probe dind /dev/nvidia0 /dev/nvidia1 c:195:0 c:195:1 /dev/fuse /dev/null)
	open_in "$answers" /dev/nvidia0 c:195:0 /dev/fuse /dev/null
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
}

story_refused() {
	local before
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/nobody)"
	before=$(sha256sum <"$NODE_DIR/bundles/dind/config.json")
	fails_with . oci_create dind
	# Where a shim looks, and where a person does.
	matches "$(oci_message)" 'team-a/dev/nobody'
	matches "$(<"$NODE_DIR/bundles/dind/stderr")" 'team-a/dev/nobody'
	equals "$(wc -l <"$NODE_DIR/bundles/dind/stderr")" 1
	equals "$(sha256sum <"$NODE_DIR/bundles/dind/config.json")" "$before"
	fails_with . oci state dind
	# The kubelet tries again: the source is there by then.
	oci_bundle nobody --annotation "$(me nobody)" --device /dev/nvidia0
	oci_run nobody
	oci_run dind
	open_in "$(oci_probe dind /dev/nvidia0)" /dev/nvidia0
}

story_text_log() {
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind a/b)"
	fails_with . node_exec "$GS_RUNTIME" --root /run/oci --log "$NODE_DIR/text.log" \
		create --bundle "$NODE_DIR/bundles/dind" dind
	matches "$(<"$NODE_DIR/text.log")" 'level=error msg=".*container-devices-from.dind.*a/b'
}

story_verbs() {
	local out
	oci_main
	oci_dind
	equals "$(oci exec dind /bin/sh -c 'echo in; exit 0')" in
	out=0
	oci exec dind /bin/sh -c 'exit 7' || out=$?
	equals "$out" 7
	oci pause dind
	matches "$(oci state dind)" '"status": "paused"'
	oci resume dind
	matches "$(oci state dind)" '"status": "running"'
	open_in "$(oci_probe dind /dev/nvidia0)" /dev/nvidia0
	matches "$(oci ps dind)" '[0-9]'
	oci kill dind KILL
	within 5 oci_stopped dind
	oci delete dind
	fails_with . oci state dind
	fails_with . oci delete dind
}

oci_stopped() {
	[[ $(oci state "$1") == *'"status": "stopped"'* ]]
}

story_run_foreground() {
	local out rc=0
	oci_main
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/main)" \
		-- /bin/sh -c '/bin/probe /dev/nvidia0; exit 3'
	out=$(oci run --bundle "$NODE_DIR/bundles/dind" dind 2>"$NODE_DIR/err") || rc=$?
	equals "$rc" 3
	open_in "$out" /dev/nvidia0
	is_empty "$NODE_DIR/err"
}

# Only the restarted source counts, not the one of the same name that died.
story_restarted_source() {
	oci_main
	oci kill main KILL
	within 5 oci_stopped main
	oci_bundle main2 --annotation "$(me main)" --device /dev/nvidia1
	oci_run main2
	oci_dind
	open_in "$(oci_probe dind /dev/nvidia1)" /dev/nvidia1
	absent_in "$(oci_probe dind /dev/nvidia0)" /dev/nvidia0
}

# A container that ran before gpushare was installed has no record, and is found by its bundle.
story_older_than_us() {
	oci_bundle main --annotation "$(me main)" --device /dev/nvidia0
	node_exec "$NEXT" --root /run/oci create --bundle "$NODE_DIR/bundles/main" \
		--pid-file "$NODE_DIR/bundles/main/init.pid" main </dev/null >/dev/null 2>&1
	node_exec "$NEXT" --root /run/oci start main
	oci_dind
	open_in "$(oci_probe dind /dev/nvidia0)" /dev/nvidia0
}

# What other programs ask a runtime is answered by the next one, whatever our config says: where it
# says nothing that can be understood, by the one that the last container was made by, and where
# there was none since the boot, by runc, the default.
story_pass_through() {
	local verb
	for verb in --version --help; do
		equals "$(node_exec "$GS_RUNTIME" "$verb")" "$(node_exec "$NEXT" "$verb")"
	done
	oci_main
	oci_remove main
	node_exec /bin/bash -c 'echo "{ broken" >/etc/gpushare/config.json'
	for verb in --version --help; do
		equals "$(node_exec "$GS_RUNTIME" "$verb")" "$(node_exec "$NEXT" "$verb")"
	done
	node_exec /bin/rm -r /run/gpushare/next
	for verb in --version --help; do
		equals "$(node_exec "$GS_RUNTIME" "$verb")" "$(node_exec runc "$verb")"
	done
	story_untouched
	oci_remove plain
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/main)"
	fails_with . oci_create dind
	matches "$(oci_message)" 'config.json'
}

# Every record goes with its container.
story_registry() {
	oci_main
	oci_dind
	matches "$(gpusharectl containers)" 'team-a/dev/dind'
	equals "$(hook_pid dind)" "$(<"$NODE_DIR/bundles/dind/init.pid")"
	oci_remove main dind
	oci_main
	lacks "$(gpusharectl containers)" 'team-a/dev/dind'
	matches "$(gpusharectl containers)" 'team-a/dev/main'
}
