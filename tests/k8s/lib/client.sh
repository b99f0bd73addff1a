# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The agent's API client (kubeclient.c) as a process of a test node with a control plane.

# client_start [ACCOUNT]: as the agent, or another service account of gpushare-system.
client_start() {
	agent_token "$@" >"$NODE_DIR/client.token"
	rm -f "$NODE_DIR/client.orders"
	mkfifo "$NODE_DIR/client.orders"
	node_spawn client "$GS_BUILD/tests/kubeclient" "$CLUSTER_SERVER" \
		"$NODE_DIR/pki/ca.crt" "$NODE_DIR/client.token" "$CLUSTER_NODE" \
		"$NODE_DIR/client.orders"
}

# client_end: fails unless it ends as it should, with nothing left behind.
client_end() {
	[[ -e $NODE_DIR/client.pid ]] || return 0
	client_order end
	client_tells ended
	rm -f "$NODE_DIR/client.pid"
}

# client_order WORD… (Nobody reads it where the client has died, or was not built.)
client_order() {
	timeout 20 /bin/sh -c 'echo "$2" >"$1"' sh "$NODE_DIR/client.orders" "$*" || {
		echo "the client takes no order:" >&2
		cat "$NODE_DIR/log/client" >&2
		return 1
	}
}

# client_tells LINE: within a time that a busy machine keeps. The line is a pattern, whole.
client_tells() {
	within 40 grep -qx -- "$1" "$NODE_DIR/log/client" || {
		echo "the client told:" >&2
		cat "$NODE_DIR/log/client" >&2
		return 1
	}
}

# client_told PATTERN: how many lines it told that are this.
client_told() {
	grep -cx -- "$1" "$NODE_DIR/log/client" || true
}
