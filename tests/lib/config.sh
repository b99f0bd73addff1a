# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# gpushare's own configuration in a test node: at its usual place, since conmon hands a runtime
# hardly any of its caller's environment.

# config_write [KEY=JSON…]: writes /etc/gpushare/config.json of the node. What is not given has the
# value that lets programs and catalogue be used from the source tree.
config_write() {
	node_exec /bin/mkdir -p /etc/gpushare
	"$GS_PYTHON" - "$GS_TOP" "$GS_BIN" "$NODE_DIR" "$@" <<-'EOF' |
		import json, sys
		top, bin, node, *pairs = sys.argv[1:]
		config = {
		    "next": ["runc", "crun"],
		    "cri": "containerd",
		    "lib_dir": node + "/lib",
		    "vendor_dirs": [top + "/vendors"],
		    "hook": bin + "/gpushare-hook",
		}
		for pair in pairs:
		    key, value = pair.split("=", 1)
		    config[key] = json.loads(value)
		json.dump(config, sys.stdout, indent=1)
	EOF
		node_exec /bin/bash -c 'cat >/etc/gpushare/config.json'
}

# Runs gpusharectl in the node, where it finds that configuration.
gpusharectl() {
	node_exec "$GS_BIN/gpusharectl" "$@"
}

# hook_pid ID: the first process of the container as gpushare-hook saw it.
hook_pid() {
	node_exec /bin/cat "/run/gpushare/containers/$1.hook.json" | json - 'd["pid"]'
}
