#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What gpusharectl setup makes of configurations, read by the runtimes themselves: containerd of
# this machine, containerd 2, podman. They are asked for what they understood; nothing is started.

source "$BATS_TEST_DIRNAME/../lib/lib.sh"

main=/etc/containerd/config.toml

setup_file() {
	needs containerd podman || return 0
}

setup() {
	skip_if_lacking
	cd "$GS_TOP"
	root=$BATS_TEST_TMPDIR/node
	unset GPUSHARE_CONFIG
	mkdir -p "$root/usr/bin" "$root${main%/*}"
	printf '#!/bin/sh\n' >"$root/usr/bin/gpushare-runtime"
	chmod 0755 "$root/usr/bin/gpushare-runtime"
}

node_setup() {
	"$GS_TOP/${B:-build}/gpusharectl" setup --root "$root" "$@"
}

debian() {
	debian_containerd >"$root$main"
}

# understood CONTAINERD: that reads the file as it should be, with the handler as the default one.
understood() {
	local dump
	# The imports are of the node, whose root is elsewhere.
	sed -i "s#\([\"']\)/etc/containerd/conf.d#\1$root/etc/containerd/conf.d#" "$root$main"
	dump=$("$1" --config "$root$main" config dump 2>/dev/null)
	equals "$(grep -cE "_annotations = \[.gpushare.k8s.io/\*.\]" <<<"$dump")" 2
	equals "$(grep -cE 'runtimes\.(runc|gpushare)\]' <<<"$dump")" 2
	matches "$dump" 'default_runtime_name = .gpushare'
	matches "$dump" 'BinaryName = ./usr/bin/gpushare-runtime'
}

@test "setup: containerd of this machine reads Debian's file" {
	debian
	node_setup --default
	understood containerd
}

@test "setup: containerd of this machine reads its own default file" {
	containerd config default >"$root$main"
	node_setup --default
	understood containerd
}

@test "setup: containerd of this machine reads what is made where there is no file" {
	cp "$(command -v containerd)" "$root/usr/bin"
	node_setup --default
	understood containerd
}

@test "setup: containerd of this machine reads the same as from packaging/containerd" {
	local dump
	debian
	node_setup
	dump=$(containerd --config "$root$main" config dump)
	debian
	{
		cat packaging/containerd/runc-v2.toml
		sed 's/SystemdCgroup = .*/SystemdCgroup = false/' \
			packaging/containerd/gpushare-v2.toml
	} >>"$root$main"
	equals "$(containerd --config "$root$main" config dump)" "$dump"
}

@test "setup: containerd 2 reads what is made of its default file, of none, of version 2" {
	local folder rc=0
	tools_want folder containerd2 || rc=$?
	((rc != 1))
	skip_if_lacking
	"$folder/containerd" config default >"$root$main"
	node_setup --default
	understood "$folder/containerd"
	rm -rf "${root:?}"/{etc,var}
	cp "$folder/containerd" "$root/usr/bin"
	node_setup --default
	equals "$(head -n1 "$root$main")" 'version = 3'
	understood "$folder/containerd"
	rm -rf "${root:?}"/{etc,var}
	mkdir -p "$root/etc/containerd"
	debian
	node_setup --default
	understood "$folder/containerd"
}

@test "setup: podman reads its drop-in" {
	local conf=/etc/containers/containers.conf.d/gpushare.conf
	node_setup --default podman
	# podman wants to find the program where it is said to be.
	sed -i "s#/usr/bin/gpushare-runtime#$root&#" "$root$conf"
	run env CONTAINERS_CONF="$root$conf" podman --root "$root/storage" --runroot "$root/run" \
		--cgroup-manager cgroupfs info --format '{{.Host.OCIRuntime.Name}}'
	equals "$output" gpushare
}
