# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# docker's engine in a test node, with storage of its own.

# docker_start: starts dockerd with the configuration that we ship, and loads the images.
docker_start() {
	sed "s#/usr/bin/gpushare-runtime#$GS_RUNTIME#" "$GS_TOP/packaging/docker/daemon.json" \
		>"$NODE_DIR/daemon.json"
	node_spawn dockerd dockerd --host unix:///run/docker.sock --pidfile /run/docker.pid \
		--data-root "$NODE_DIR/docker" --exec-root /run/docker --storage-driver vfs \
		--iptables=false --ip6tables=false --bridge none --cgroup-parent "$NODE_CGROUP" \
		--config-file "$NODE_DIR/daemon.json"
	node_wait 60 dockerd /usr/bin/docker --host unix:///run/docker.sock version
	docker_ load --quiet --input "$IMAGE_TAR" >/dev/null
}

# One command of docker's client, Debian's and not another of the PATH.
docker_() {
	node_exec /usr/bin/docker --host unix:///run/docker.sock "$@"
}
