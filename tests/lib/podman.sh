# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# podman in a test node, with storage of its own.

# podman_start: makes its configuration, with the runtime that we ship a configuration for as its
# default, and loads the images. Limits: podman's defaults are above the hard limits of some
# machines. The event log and cgroups do without systemd.
podman_start() {
	mkdir -p "$NODE_DIR/podman"
	# podman's cache of blobs is there, whatever its configuration says.
	node_hide /var/lib/containers
	cat >"$NODE_DIR/podman/containers.conf" <<-EOF
		[containers]
		default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
		apparmor_profile = "unconfined"
		cgroupns = "host"
		netns = "host"
		log_driver = "k8s-file"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "none"
		runtime = "gpushare"
	EOF
	sed "s#/usr/bin/gpushare-runtime#$GS_RUNTIME#" "$GS_TOP/packaging/podman/gpushare.conf" \
		>>"$NODE_DIR/podman/containers.conf"
	cat >"$NODE_DIR/podman/storage.conf" <<-EOF
		[storage]
		driver = "vfs"
		graphroot = "$NODE_DIR/podman/storage"
		runroot = "/run/containers/storage"
	EOF
	podman_ load --quiet --input "$IMAGE_TAR" >/dev/null
}

# One podman command.
podman_() {
	node_exec /usr/bin/env "CONTAINERS_CONF=$NODE_DIR/podman/containers.conf" \
		"CONTAINERS_STORAGE_CONF=$NODE_DIR/podman/storage.conf" podman "$@"
}

# podman_run NAME [option of podman run…]: starts the test image in the background.
podman_run() {
	local name=$1
	shift
	podman_ run --detach --name "$name" --cgroup-parent "$NODE_CGROUP" "$@" "$IMAGE" >/dev/null
}

# podman_probe NAME PATH|NUMBER…
podman_probe() {
	local name=$1
	shift
	podman_ exec "$name" /bin/probe "$@"
}
