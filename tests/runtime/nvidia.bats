#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's container runtime as our next runtime, in front of runc. There is no driver and no card,
# but what it makes of a container shows which cards it was asked for: in legacy mode by the command
# line of nvidia-container-cli (a stand-in that notes it), in CDI mode by the CDI spec's nodes.

source "$BATS_TEST_DIRNAME/oci-stories.bash"

setup_file() {
	local nvidia
	oci_stories_start runc
	[[ -z $WHY_SKIPPED ]] || return 0
	tools_want nvidia nvidia || return 0
	export NEXT=$nvidia/nvidia-container-runtime
	oci_config
	mkdir "$NODE_DIR/nvidia"
	nvidia_cli
	nvidia_cdi_spec
}

setup() {
	skip_if_lacking
	: >"$NODE_DIR/nvidia/cli.log"
}

teardown() {
	oci_remove main other dind
}

teardown_file() {
	node_stop
}

# nvidia_config MODE
nvidia_config() {
	node_exec /bin/mkdir -p /etc/nvidia-container-runtime
	node_exec /bin/bash -c 'cat >/etc/nvidia-container-runtime/config.toml' <<-EOF
		[nvidia-container-cli]
		path = "$NODE_DIR/nvidia/nvidia-container-cli"
		[nvidia-container-runtime]
		mode = "$1"
		runtimes = ["runc"]
		debug = "$NODE_DIR/nvidia/runtime.log"
		[nvidia-container-runtime.modes.cdi]
		spec-dirs = ["/etc/cdi"]
		[nvidia-container-runtime-hook]
		path = "${NEXT%/*}/nvidia-container-runtime-hook"
		[nvidia-ctk]
		path = "${NEXT%/*}/nvidia-cdi-hook"
	EOF
}

nvidia_cli() {
	printf '#!/bin/sh\necho "$*" >>%s\n' "$NODE_DIR/nvidia/cli.log" \
		>"$NODE_DIR/nvidia/nvidia-container-cli"
	chmod 0755 "$NODE_DIR/nvidia/nvidia-container-cli"
}

nvidia_cdi_spec() {
	node_exec /bin/mkdir -p /etc/cdi
	node_exec /bin/bash -c 'cat >/etc/cdi/nvidia.json' <<-EOF
		{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu",
		 "devices": [
			{"name": "GPU-0", "containerEdits": {"deviceNodes": [
				{"path": "/dev/nvidia0"}]}},
			{"name": "GPU-1", "containerEdits": {"deviceNodes": [
				{"path": "/dev/nvidia1"}]}},
			{"name": "all", "containerEdits": {"deviceNodes": [
				{"path": "/dev/nvidia0"}, {"path": "/dev/nvidia1"}]}}],
		 "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"],
			"deviceNodes": [{"path": "/dev/nvidiactl"}]}}
	EOF
}

# selected_main ENV…: the source, which has its card by a selector alone.
selected_main() {
	local env options=()
	for env; do
		options+=(--env "$env")
	done
	oci_bundle main --annotation "$(me main)" "${options[@]}"
	oci_run main
}

@test "nvidia: legacy mode is asked for exactly the source's card" {
	nvidia_config legacy
	selected_main NVIDIA_VISIBLE_DEVICES=GPU-0 NVIDIA_DRIVER_CAPABILITIES=compute,utility
	matches "$(<"$NODE_DIR/nvidia/cli.log")" '--device=GPU-0 '
	: >"$NODE_DIR/nvidia/cli.log"
	# An image that bakes "all" in.
	oci_dind --env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=all
	equals "$(grep -c -- --device= "$NODE_DIR/nvidia/cli.log")" 1
	matches "$(<"$NODE_DIR/nvidia/cli.log")" '--device=GPU-0 '
	matches "$(<"$NODE_DIR/nvidia/cli.log")" '--compute --utility'
	equals "$(oci exec dind /bin/env | grep -c NVIDIA_VISIBLE_DEVICES=)" 1
	equals "$(json "$NODE_DIR/bundles/dind/config.json" 'len(d["hooks"]["prestart"])')" 1
}

@test "nvidia: legacy mode is asked for two sources' cards" {
	nvidia_config legacy
	selected_main NVIDIA_VISIBLE_DEVICES=GPU-0
	oci_bundle other --annotation "$(me other)" --env NVIDIA_VISIBLE_DEVICES=GPU-1
	oci_run other
	: >"$NODE_DIR/nvidia/cli.log"
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/main,_/_/other)"
	oci_run dind
	matches "$(<"$NODE_DIR/nvidia/cli.log")" '--device=GPU-0,GPU-1 '
}

@test "nvidia: legacy mode, cards selected by mounts" {
	local mounts
	nvidia_config legacy
	node_exec /bin/bash -c '
		echo "accept-nvidia-visible-devices-as-volume-mounts = true
			accept-nvidia-visible-devices-envvar-when-unprivileged = false" |
			cat - /etc/nvidia-container-runtime/config.toml >/run/config.toml
		mv /run/config.toml /etc/nvidia-container-runtime/config.toml'
	oci_bundle main --annotation "$(me main)" \
		--env NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices \
		--mount /dev/null:/var/run/nvidia-container-devices/GPU-1
	oci_run main
	matches "$(<"$NODE_DIR/nvidia/cli.log")" '--device=GPU-1 '
	: >"$NODE_DIR/nvidia/cli.log"
	oci_dind
	matches "$(<"$NODE_DIR/nvidia/cli.log")" '--device=GPU-1 '
	mounts=$(json "$NODE_DIR/bundles/dind/config.json" \
		'[m["destination"] for m in d["mounts"]]')
	equals "$(grep -c GPU-1 <<<"$mounts")" 1
}

@test "nvidia: CDI mode gives the target exactly the source's card" {
	local answers
	nvidia_config cdi
	selected_main NVIDIA_VISIBLE_DEVICES=GPU-0
	open_in "$(oci_probe main /dev/nvidia0)" /dev/nvidia0
	oci_dind --env NVIDIA_VISIBLE_DEVICES=all
	answers=$(oci_probe dind /dev/nvidia0 /dev/nvidiactl /dev/nvidia1 c:195:1)
	open_in "$answers" /dev/nvidia0 /dev/nvidiactl
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
	# Once: neither entry nor rule stands there twice.
	equals "$(json "$NODE_DIR/bundles/dind/config.json" \
		'[v["path"] for v in d["linux"]["devices"]].count("/dev/nvidia0")')" 1
}

@test "nvidia: a card that is spelled out is not injected a second time" {
	local answers
	nvidia_config cdi
	oci_bundle main --annotation "$(me main)" --device /dev/nvidia1 \
		--env NVIDIA_VISIBLE_DEVICES=void
	oci_run main
	oci_dind --env NVIDIA_VISIBLE_DEVICES=all
	answers=$(oci_probe dind /dev/nvidia1 /dev/nvidia0)
	open_in "$answers" /dev/nvidia1
	absent_in "$answers" /dev/nvidia0
}

@test "nvidia: a source with no card has nothing to share" {
	nvidia_config legacy
	selected_main NVIDIA_VISIBLE_DEVICES=none
	oci_bundle dind --annotation "$(me dind)" --annotation "$(from dind _/_/main)"
	fails_with . oci_create dind
	matches "$(oci_message)" 'team-a/dev/main'
}
