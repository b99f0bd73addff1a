# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# docker's engine in a test node, with storage of its own.

# docker_start RUNTIME: starts dockerd with the program as runtime "gpushare", loads the images.
docker_start() {
	node_spawn dockerd dockerd --host unix:///run/docker.sock --pidfile /run/docker.pid \
		--data-root "$NODE_DIR/docker" --exec-root /run/docker --storage-driver vfs \
		--iptables=false --ip6tables=false --bridge none --cgroup-parent "$NODE_CGROUP" \
		--add-runtime "gpushare=$1"
	node_wait 60 dockerd /usr/bin/docker --host unix:///run/docker.sock version
	docker_ load --quiet --input "$IMAGE_TAR" >/dev/null
}

# One command of docker's client, Debian's and not another of the PATH.
docker_() {
	node_exec /usr/bin/docker --host unix:///run/docker.sock "$@"
}
