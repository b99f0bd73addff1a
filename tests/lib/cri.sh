# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Pods as the kubelet makes them, over the Container Runtime Interface, in a test node.
#
#	pod_run team-a/dev --annotation gpushare.k8s.io/container-devices-from.dind=_/_/main
#	container_run team-a/dev main --device /dev/nvidia0
#	container_run team-a/dev dind
#	container_probe team-a/dev dind /dev/nvidia0
#	pod_remove team-a/dev
#
# Options are podspec.py's; those in the array CONTAINER_OPTIONS go to every container. With CRICTL
# naming a crictl, that is used instead of cri.py. What was made is remembered in files below
# $NODE_DIR/pods, so the functions may be called in subshells.

# Where the Python form of cri.proto is.
export CRI_PROTO=$GS_BUILD/tests-lib/cri

# Makes that; needs protoc and its Python module.
cri_prepare() {
	if [[ ! $CRI_PROTO/cri_pb2.py -nt $GS_LIB/cri.proto ]]; then
		mkdir -p "$CRI_PROTO"
		protoc --proto_path="$GS_LIB" --python_out="$CRI_PROTO" "$GS_LIB/cri.proto"
	fi
}

# Prints why cri.py can't work here; nothing when it can.
cri_missing() {
	if ! command -v protoc >/dev/null; then
		echo "no protoc on this machine (Debian: protobuf-compiler)"
	elif ! "$GS_PYTHON" -c 'import grpc, google.protobuf' 2>/dev/null; then
		echo "no gRPC for $GS_PYTHON (Debian: python3-grpcio python3-protobuf)"
	fi
}

# One call: cri COMMAND…, in the words that crictl and cri.py share.
cri() {
	local endpoint=unix:///run/containerd/containerd.sock
	if [[ -n ${CRICTL:-} ]]; then
		node_exec "$CRICTL" --runtime-endpoint "$endpoint" --image-endpoint "$endpoint" "$@"
	else
		node_exec "$GS_PYTHON" "$GS_LIB/cri.py" --runtime-endpoint "$endpoint" \
			--proto-dir "$CRI_PROTO" "$@"
	fi
}

# pod_run NAMESPACE/NAME [podspec option…]; HANDLER (default gpushare) is the runtime handler.
pod_run() {
	local dir=$NODE_DIR/pods/${1//\//_}
	mkdir -p "$dir/log"
	"$GS_PYTHON" "$GS_LIB/podspec.py" pod "$@" --cgroup-parent "$NODE_CGROUP" \
		--log-dir "$dir/log" >"$dir/pod.json"
	cri runp --runtime "${HANDLER:-gpushare}" "$dir/pod.json" >"$dir/id"
}

# container_create NAMESPACE/POD NAME [podspec option…] [-- COMMAND…]
container_create() {
	local dir=$NODE_DIR/pods/${1//\//_} name=$2
	shift 2
	[[ " $* " == *" --image "* ]] || set -- --image "$IMAGE" "$@"
	"$GS_PYTHON" "$GS_LIB/podspec.py" container "$name" "${CONTAINER_OPTIONS[@]}" "$@" \
		>"$dir/$name.json"
	cri create "$(<"$dir/id")" "$dir/$name.json" "$dir/pod.json" >"$dir/$name.id"
}

container_start() {
	cri start "$(container_id "$@")" >/dev/null
}

# Creates and starts; an error of either is on stderr, as the kubelet would show it.
container_run() {
	container_create "$@" && container_start "$1" "$2"
}

# container_id NAMESPACE/POD NAME
container_id() {
	cat "$NODE_DIR/pods/${1//\//_}/$2.id"
}

# container_exec NAMESPACE/POD NAME COMMAND…
container_exec() {
	local id
	id=$(container_id "$1" "$2")
	shift 2
	if [[ -n ${CRICTL:-} ]]; then
		cri exec --sync "$id" "$@"
	else
		cri exec "$id" "$@"
	fi
}

# container_env NAMESPACE/POD NAME: what the container's own first process was started with. (What
# is run in it later by exec gets the environment that containerd knows of, which is the one before
# any runtime's changes.)
container_env() {
	container_exec "$1" "$2" /bin/cat /proc/1/environ | tr '\0' '\n'
}

# container_probe NAMESPACE/POD NAME PATH|NUMBER…: prints what opening them answers there.
container_probe() {
	local pod=$1 name=$2
	shift 2
	container_exec "$pod" "$name" /bin/probe "$@"
}

# container_spec NAMESPACE/POD NAME: config.json as the next runtime got it.
container_spec() {
	bundle_spec "$(container_id "$@")"
}

# bundle_spec ID: the same of whatever has that id, a pod's pause container too.
bundle_spec() {
	node_exec /bin/cat "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$1/config.json"
}

# What the container itself wrote, standard error included (also read as standard error).
container_logs() {
	cri logs "$(container_id "$@")"
}

# container_remove NAMESPACE/POD NAME
container_remove() {
	local id
	id=$(container_id "$@")
	cri stop --timeout 0 "$id" >/dev/null
	cri rm "$id" >/dev/null
	rm -f "$NODE_DIR/pods/${1//\//_}/$2".{id,json}
}

# pod_remove NAMESPACE/NAME: with whatever containers it has.
pod_remove() {
	local dir=$NODE_DIR/pods/${1//\//_} id
	[[ -s $dir/id ]] || return 0
	id=$(<"$dir/id")
	cri stopp "$id" >/dev/null
	cri rmp "$id" >/dev/null
	rm -rf "$dir"
}

# Every pod that is left.
pods_remove() {
	local dir name
	for dir in "$NODE_DIR"/pods/*; do
		[[ -d $dir ]] || continue
		name=${dir##*/}
		pod_remove "${name/_//}" || true
		rm -rf "$dir"
	done
}
