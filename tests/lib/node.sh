# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A "node" of its own for tests: namespaces in which /dev, /run and /etc are private, so that real
# container runtimes run with their default paths and nothing of them is left on the machine.
#
#	node_start; node_exec containerd --version; node_spawn dockerd …; node_stop
#
# Inside, everything is reached by its absolute path (setns changes the working directory to /).

# node_start [cgroup2]: starts the node, with the machine's cgroups or with nothing but cgroup2.
# Sets and exports NODE_DIR (scratch folder, the same path inside and outside),
# NODE_PID (its first process, as the machine sees it) and NODE_CGROUP (the parent to give to
# containers, as a path from the root of every hierarchy).
node_start() {
	local waited=0

	if [[ ! -x $GS_PROBE ]]; then
		echo "the test node does not start: no $GS_PROBE (make programs)" >&2
		return 1
	fi
	NODE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/gpushare-node.XXXXXX")
	NODE_CGROUP=/${NODE_DIR##*/}
	chmod 0755 "$NODE_DIR"
	mkdir "$NODE_DIR/log"

	# A terminal or bats' own descriptors must not be held open by what outlives this call.
	setsid unshare --mount --net --pid --uts --ipc --fork --propagation private \
		/bin/bash "$GS_LIB/node-init.sh" "$NODE_DIR" "$GS_PROBE" "${1:-}" \
		</dev/null >"$NODE_DIR/log/node" 2>&1 3>&- 4>&- &
	until [[ -s $NODE_DIR/pid ]]; do
		if ((waited++ > 200)) || ! kill -0 $! 2>/dev/null; then
			echo "the test node does not start:" >&2
			cat "$NODE_DIR/log/node" >&2
			return 1
		fi
		sleep 0.05
	done
	NODE_PID=$(<"$NODE_DIR/pid")
	export NODE_DIR NODE_PID NODE_CGROUP
	node_guard
}

# Ends the node when its owner was killed without a chance to clean up.
node_guard() {
	setsid /bin/bash -c '
		source "$1/node.sh"
		tail --pid="$2" -f /dev/null
		[[ -e $NODE_DIR/pid ]] && node_stop' guard "$GS_LIB" "$$" \
		</dev/null >/dev/null 2>&1 3>&- 4>&- &
}

# Runs a command inside and waits for it.
node_exec() {
	nsenter --target "$NODE_PID" --mount --net --pid --uts --ipc -- "$@"
}

# Runs a command inside in the background: node_spawn NAME COMMAND…; its output goes to
# $NODE_DIR/log/NAME, its process (as the machine sees it) to $NODE_DIR/NAME.pid.
node_spawn() {
	local name=$1
	shift
	nsenter --target "$NODE_PID" --mount --net --pid --uts --ipc -- setsid "$@" \
		</dev/null >"$NODE_DIR/log/$name" 2>&1 3>&- 4>&- &
	echo $! >"$NODE_DIR/$name.pid"
	# Its end with the node is no news.
	disown $!
}

# node_end NAME [SIGNAL]: ends what node_spawn started under that name, and waits until it is gone.
node_end() {
	local parent waited=0
	parent=$(<"$NODE_DIR/$1.pid")
	# The number is nsenter's, which waits for it.
	pkill "-${2:-TERM}" -P "$parent"
	while [[ -e /proc/$parent ]]; do
		if ((waited++ > 400)); then
			echo "$1 does not end" >&2
			return 1
		fi
		sleep 0.05
	done
}

# node_hide FOLDER: an empty one in its place, inside. Where the machine has no such folder it gets
# one, which goes away with the node.
node_hide() {
	if mkdir "$1" 2>/dev/null; then
		echo "$1" >>"$NODE_DIR/made"
	fi
	node_exec /bin/mount -t tmpfs -o mode=755 tmpfs "$1"
}

# Waits until a command succeeds inside: node_wait SECONDS NAME COMMAND…; on failure the end of
# what node_spawn's NAME said is printed.
node_wait() {
	local limit=$1 name=$2 end
	shift 2
	end=$((SECONDS + limit))
	until node_exec "$@" >/dev/null 2>&1; do
		if ((SECONDS >= end)) || ! kill -0 "$(<"$NODE_DIR/$name.pid")" 2>/dev/null; then
			echo "$name is not ready (waited at most $limit s):" >&2
			tail -n 30 "$NODE_DIR/log/$name" >&2
			return 1
		fi
		sleep 0.1
	done
}

# Ends every process of the node, takes its cgroups and its folder away. May be called twice.
node_stop() {
	local waited=0 folder
	[[ -n ${NODE_DIR:-} && -d $NODE_DIR ]] || return 0
	if [[ -s $NODE_DIR/pid ]]; then
		kill -KILL "$NODE_PID" 2>/dev/null || true
		# The kernel kills the rest of the PID namespace before the first process is gone.
		while [[ -e /proc/$NODE_PID ]] && ((waited++ < 200)); do
			sleep 0.05
		done
		rm -f "$NODE_DIR/pid"
	fi
	node_remove_cgroups
	if [[ -e $NODE_DIR/made ]]; then
		while IFS= read -r folder; do
			# Its removal would take away what another node has mounted there.
			grep -qsF " $folder " /proc/[0-9]*/mountinfo ||
				rmdir --ignore-fail-on-non-empty "$folder" || true
		done <"$NODE_DIR/made"
	fi
	rm -rf --one-file-system "$NODE_DIR"
}

node_remove_cgroups() {
	local top round
	# A cgroup is busy for a moment after its last process died.
	for round in 1 2 3 4 5; do
		for top in /sys/fs/cgroup"$NODE_CGROUP" /sys/fs/cgroup/*"$NODE_CGROUP"; do
			[[ -d $top ]] || continue
			find "$top" -depth -type d -exec rmdir {} + 2>/dev/null || true
		done
		compgen -G "/sys/fs/cgroup$NODE_CGROUP" >/dev/null ||
			compgen -G "/sys/fs/cgroup/*$NODE_CGROUP" >/dev/null || return 0
		sleep "0.$round"
	done
	echo "cgroups of $NODE_CGROUP are left behind" >&2
}
