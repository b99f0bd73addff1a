# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Containers made by calling an OCI runtime directly, as containerd's shim does, in a test node.
#
#	oci_bundle main --device /dev/nvidia0
#	oci_create main && oci start main
#	oci_probe main /dev/nvidia0
#	oci_remove main

# oci_bundle ID [bundle.py option…] [-- COMMAND…]: makes $NODE_DIR/bundles/ID. The state folder of
# containerd has the same shape, so config_write "state_dirs=…" can name $NODE_DIR/bundles.
oci_bundle() {
	local id=$1
	shift
	[[ -d $NODE_DIR/rootfs ]] || image_root "$NODE_DIR/rootfs"
	mkdir -p "$NODE_DIR/bundles/$id"
	node_exec "$GS_PYTHON" "$GS_LIB/bundle.py" "$NODE_DIR/rootfs" "$NODE_CGROUP/$id" "$@" \
		>"$NODE_DIR/bundles/$id/config.json"
}

# One call of the runtime under test with the options that a shim gives: oci VERB ARGUMENT…
# What it logs for its caller is in $NODE_DIR/runtime.log.
oci() {
	node_exec "$GS_RUNTIME" --root /run/oci --log "$NODE_DIR/runtime.log" --log-format json "$@"
}

# Creates; the container's standard output and error are the files stdout and stderr of the bundle.
oci_create() {
	local bundle=$NODE_DIR/bundles/$1
	: >"$NODE_DIR/runtime.log"
	oci create --bundle "$bundle" --pid-file "$bundle/init.pid" "$1" \
		</dev/null >"$bundle/stdout" 2>"$bundle/stderr" 3>&- 4>&- || {
		cat "$bundle/stderr" >&2
		return 1
	}
}

# oci_run ID: creates and starts.
oci_run() {
	oci_create "$1" && oci start "$1"
}

# The message that a caller would show: the last error in the log that the shim reads.
oci_message() {
	"$GS_PYTHON" -c '
import json, sys
records = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
errors = [record["msg"] for record in records if record["level"] == "error"]
print(errors[-1] if errors else "")' "$NODE_DIR/runtime.log"
}

# oci_probe ID PATH|NUMBER…
oci_probe() {
	local id=$1
	shift
	oci exec "$id" /bin/probe "$@"
}

# oci_remove ID…: kills and deletes, in the two calls that containerd's shims make.
oci_remove() {
	local id
	for id; do
		oci kill --all "$id" KILL 2>/dev/null || true
		oci delete --force "$id" 2>/dev/null || true
		rm -rf "$NODE_DIR/bundles/$id"
	done
}
