# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of every containerd tell: pods asked for as the kubelet asks for them.
# shellcheck disable=SC2154 # fails_with sets said

source "${BASH_SOURCE[0]%/*}/../lib/lib.sh"

POD=team-a/dev
FROM=gpushare.k8s.io/container-devices-from

# The pod of most stories: main was given a card, dind asks for main's.
pod_dev() {
	pod_run "$POD" --annotation "$FROM.dind=_/_/main" "$@"
	container_run "$POD" main --device /dev/nvidia0
}

story_without_us() {
	local answers
	HANDLER=runc pod_dev
	container_run "$POD" dind
	open_in "$(container_probe "$POD" main /dev/nvidia0)" /dev/nvidia0
	answers=$(container_probe "$POD" dind /dev/nvidia0 c:195:0)
	absent_in "$answers" /dev/nvidia0
	denied_in "$answers" c:195:0
}

story_copy() {
	local answers
	pod_dev
	container_run "$POD" dind
	answers=$(container_probe "$POD" dind /dev/nvidia0 /dev/nvidia1 c:195:0 c:195:1)
	open_in "$answers" /dev/nvidia0 c:195:0
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
	# Nothing of ours in what the containers wrote.
	equals "$(container_logs "$POD" main 2>&1)" ""
	equals "$(container_logs "$POD" dind 2>&1)" ""
	# A holder is only recorded.
	lacks "$(container_spec "$POD" main)" gpushare-hook
}

# A target is a source for others, with what it received.
story_chain() {
	pod_run "$POD" --annotation "$FROM.dind=_/_/main" --annotation "$FROM.third=_/_/dind"
	container_run "$POD" main --device /dev/nvidia0
	container_run "$POD" dind
	container_run "$POD" third
	open_in "$(container_probe "$POD" third /dev/nvidia0)" /dev/nvidia0
}

# The long form reaches names that an annotation's key is too short for.
story_long_form() {
	local long
	long=$(printf 'a%.0s' {1..60})
	pod_run "$POD" --annotation "$FROM=$long=_/_/main;other=_/_/main"
	container_run "$POD" main --device /dev/nvidia0
	container_run "$POD" "$long"
	container_run "$POD" bystander
	open_in "$(container_probe "$POD" "$long" /dev/nvidia0)" /dev/nvidia0
	absent_in "$(container_probe "$POD" bystander /dev/nvidia0)" /dev/nvidia0
}

# The pause container has the pod's annotations too, and is no target.
story_sandbox_untouched() {
	local id spec
	pod_dev
	id=$(<"$NODE_DIR/pods/${POD//\//_}/id")
	spec=$(bundle_spec "$id")
	matches "$spec" "$FROM.dind"
	lacks "$spec" '/dev/nvidia'
	lacks "$spec" 'gpushare-hook'
}

story_two_sources() {
	local answers env
	pod_run "$POD" --annotation "$FROM.dind=_/_/main,_/_/other"
	container_run "$POD" main --device /dev/nvidia0 --env NVIDIA_VISIBLE_DEVICES=GPU-0
	container_run "$POD" other --device /dev/nvidia1 --env NVIDIA_VISIBLE_DEVICES=GPU-1 \
		--env AWS_SECRET_KEY=hidden --env LD_PRELOAD=/evil.so
	# An image that asks for every card does not get them.
	container_run "$POD" dind --image "$IMAGE_CUDA"
	answers=$(container_probe "$POD" dind /dev/nvidia0 /dev/nvidia1)
	open_in "$answers" /dev/nvidia0 /dev/nvidia1
	env=$(container_env "$POD" dind)
	equals "$(grep -c NVIDIA_VISIBLE_DEVICES= <<<"$env")" 1
	matches "$env" 'NVIDIA_VISIBLE_DEVICES=GPU-0,GPU-1'
	lacks "$env" 'AWS_SECRET_KEY|LD_PRELOAD'
}

story_privileged() {
	local answers
	pod_dev --privileged
	container_run "$POD" alone --privileged
	open_in "$(container_probe "$POD" alone /dev/nvidia1)" /dev/nvidia1
	container_run "$POD" dind --privileged
	answers=$(container_probe "$POD" dind \
		/dev/nvidia0 /dev/nvidia1 c:195:0 c:195:1 /dev/fuse /dev/net/tun)
	open_in "$answers" /dev/nvidia0 c:195:0 /dev/fuse
	absent_in "$answers" /dev/nvidia1
	denied_in "$answers" c:195:1
}

# An annotation alone never reaches another pod's card.
story_cross_pod_refused() {
	pod_run team-b/holder
	container_run team-b/holder main --device /dev/nvidia1
	pod_run "$POD" --annotation "$FROM.dind=team-b/holder/main" \
		--annotation gpushare.k8s.io/partition=p --annotation gpushare.k8s.io/user_id=u
	container_create "$POD" dind
	fails_with 'team-b/holder/main' container_start "$POD" dind
	matches "$said" 'grant'
}

# The grant is one pod's, by its first use: made for whoever needs it.
story_grant() {
	local grant annotations
	pod_run team-b/holder
	container_run team-b/holder main --device /dev/nvidia1
	grant=$(gpusharectl grant --source team-b/holder/main)
	annotations=(--annotation "$FROM.worker=team-b/holder/main"
		--annotation "gpushare.k8s.io/grant=$grant")

	pod_run "$POD" "${annotations[@]}"
	container_run "$POD" bystander
	container_run "$POD" worker
	open_in "$(container_probe "$POD" worker /dev/nvidia1)" /dev/nvidia1
	absent_in "$(container_probe "$POD" bystander /dev/nvidia1)" /dev/nvidia1
	# The container that is restarted is the same one.
	container_remove "$POD" worker
	container_run "$POD" worker --attempt 1
	open_in "$(container_probe "$POD" worker /dev/nvidia1)" /dev/nvidia1

	# A thief who learnt the name has nothing of it, and is not told who has it.
	pod_run team-c/thief "${annotations[@]}"
	container_create team-c/thief worker
	fails_with 'grant' container_start team-c/thief worker
	lacks "$said" "$grant|$POD"
	pod_remove team-c/thief
	# A name that was never given.
	pod_run team-c/thief --annotation "$FROM.worker=team-b/holder/main" \
		--annotation gpushare.k8s.io/grant=00000000000000000000000000000000
	container_create team-c/thief worker
	fails_with 'grant' container_start team-c/thief worker

	# Taken back: what runs goes on, what starts does not.
	gpusharectl grant --revoke "$grant"
	open_in "$(container_probe "$POD" worker /dev/nvidia1)" /dev/nvidia1
	container_remove "$POD" worker
	container_create "$POD" worker --attempt 2
	fails_with 'revoked' container_start "$POD" worker
}

# Made for one container, by name, a grant is a request as well. It comes as a device plugin's does,
# as the container's annotation.
story_grant_to() {
	local grant
	pod_run team-b/holder
	container_run team-b/holder main --device /dev/nvidia1
	grant=$(gpusharectl grant --source team-b/holder/main --to "$POD/worker")
	pod_run team-c/thief
	container_create team-c/thief worker --annotation "gpushare.k8s.io/grant=$grant" \
		--annotation "$FROM.worker=team-b/holder/main"
	fails_with 'for another container' container_start team-c/thief worker
	pod_run "$POD"
	container_run "$POD" worker --annotation "gpushare.k8s.io/grant=$grant"
	open_in "$(container_probe "$POD" worker /dev/nvidia1)" /dev/nvidia1
}

# Who one is tells the CRI; an author may write what he likes.
story_forged_identity() {
	pod_dev
	pod_run team-c/thief --annotation gpushare.k8s.io/identity=team-a/dev/dind \
		--annotation io.kubernetes.cri.sandbox-namespace=team-a \
		--annotation "$FROM.worker=_/_/main"
	container_create team-c/thief worker --annotation gpushare.k8s.io/identity=team-a/dev/dind \
		--annotation io.kubernetes.cri.sandbox-name=dev
	fails_with 'team-c/thief/main' container_start team-c/thief worker
}

story_retry() {
	pod_run "$POD" --annotation "$FROM.dind=_/_/main"
	container_create "$POD" dind
	fails_with 'team-a/dev/main' container_start "$POD" dind
	container_remove "$POD" dind
	container_run "$POD" main --device /dev/nvidia0
	container_run "$POD" dind --attempt 1
	open_in "$(container_probe "$POD" dind /dev/nvidia0)" /dev/nvidia0
}

story_malformed() {
	pod_run "$POD" --annotation "$FROM.dind=../../etc/passwd"
	container_create "$POD" dind
	fails_with 'container-devices-from.dind' container_start "$POD" dind
	matches "$said" '\.\./\.\./etc'
	# It is that container's alone.
	container_run "$POD" main --device /dev/nvidia0
	open_in "$(container_probe "$POD" main /dev/nvidia0)" /dev/nvidia0
}

# A StatefulSet's pod comes back under its name while the dead one's traces are still there.
story_restarted_source() {
	pod_dev
	cri stop --timeout 0 "$(container_id "$POD" main)" >/dev/null
	container_create "$POD" dind
	fails_with 'team-a/dev/main' container_start "$POD" dind
	container_remove "$POD" dind
	container_run "$POD" main --attempt 1 --device /dev/nvidia1
	container_run "$POD" dind
	open_in "$(container_probe "$POD" dind /dev/nvidia1)" /dev/nvidia1
	absent_in "$(container_probe "$POD" dind /dev/nvidia0)" /dev/nvidia0
}

# Field case 34.
story_update() {
	local answers
	pod_dev
	container_run "$POD" dind
	cri update --cpu-quota 50000 "$(container_id "$POD" dind)" >/dev/null
	answers=$(container_probe "$POD" dind /dev/nvidia0 c:195:1)
	open_in "$answers" /dev/nvidia0
	denied_in "$answers" c:195:1
}

story_verbs() {
	local id answers
	pod_dev
	container_run "$POD" dind
	id=$(container_id "$POD" dind)
	equals "$(container_exec "$POD" dind /bin/sh -c 'echo in' | tr -d '\n')" in
	containerd_ctr -n k8s.io task pause "$id"
	containerd_ctr -n k8s.io task resume "$id"
	open_in "$(container_probe "$POD" dind /dev/nvidia0)" /dev/nvidia0
	matches "$(containerd_ctr -n k8s.io task ps "$id")" '[0-9]'
	cri stop --timeout 0 "$id" >/dev/null
	matches "$(cri inspect "$id")" 'CONTAINER_EXITED'
}

# With shareProcessNamespace a container has no PID namespace of its own.
story_shared_pids() {
	pod_run "$POD" --namespace pid=pod --annotation "$FROM.dind=_/_/main"
	container_run "$POD" main --namespace pid=pod --device /dev/nvidia0
	container_run "$POD" dind --namespace pid=pod
	open_in "$(container_probe "$POD" dind /dev/nvidia0)" /dev/nvidia0
}

# Extended resources get no limits from the kubelet, so they come from annotations.
story_cpu_and_memory() {
	local spec
	pod_run "$POD" --annotation gpushare.k8s.io/vcpu=500m \
		--annotation gpushare.k8s.io/vmem=64Mi
	container_run "$POD" main
	spec=$(container_spec "$POD" main)
	equals "$(json - 'd["linux"]["resources"]["memory"]["limit"]' <<<"$spec")" 67108864
	equals "$(json - 'd["linux"]["resources"]["cpu"]["quota"]' <<<"$spec")" 50000
	# 64 MiB are not enough for 100.
	fails_with . container_exec "$POD" main /bin/sh -c 'head -c 104857600 /dev/zero | tail -n 1'
}

story_registry() {
	local id
	pod_dev
	container_run "$POD" dind
	matches "$(gpusharectl containers)" "$POD/main"
	matches "$(gpusharectl containers)" "$POD/dind"
	id=$(container_id "$POD" dind)
	equals "$(hook_pid "$id")" "$(cri inspect "$id" | json - 'd["info"]["pid"]')"
	pod_remove "$POD"
	lacks "$(gpusharectl containers)" "$POD"
}

# docs/operator.md tells by this whether the program is still needed.
story_who_needs_it() {
	local command
	command=$(doc_block docs/operator.md who-needs-it)
	pod_dev
	container_run "$POD" dind
	# The pause container goes through the handler too.
	equals "$(node_exec /bin/bash -c "$command" | wc -l)" 3
	pod_remove "$POD"
	equals "$(node_exec /bin/bash -c "$command")" ""
	HANDLER=runc pod_dev
	equals "$(node_exec /bin/bash -c "$command")" ""
}
