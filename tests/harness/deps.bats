#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# packaging/deps.sh with an apt that only pretends, in a system of its own (DPKG_ROOT).

setup() {
	((EUID == 0)) || skip "needs root"
	deps=$BATS_TEST_DIRNAME/../../packaging/deps.sh
	cd "$BATS_TEST_TMPDIR"
	export DPKG_ROOT=$PWD/system STATE=$PWD/state
	mkdir -p "$STATE" bin "$DPKG_ROOT"/{usr/sbin,lib/systemd/system,etc/init.d} \
		"$DPKG_ROOT"/etc/{rc2.d,systemd/system/multi-user.target.wants}
	: >"$STATE/installed"
	: >"$STATE/calls"
	PATH=$PWD/bin:$PATH

	program dpkg-query 'sed "s/^/ii /" "$STATE/installed"; exit 1'
	program update-rc.d '
		echo "update-rc.d $*" >>"$STATE/calls"
		mv "$DPKG_ROOT/etc/rc2.d/S01$1" "$DPKG_ROOT/etc/rc2.d/K01$1"'
	# Installs a service as Debian does: started if policy-rc.d lets it, and enabled.
	program apt-get '
		echo "apt-get $*" >>"$STATE/calls"
		[[ " $* " == *" install "* ]] || exit 0
		[[ ! -e $STATE/broken ]] || { echo "E: broken"; exit 100; }
		"$DPKG_ROOT/usr/sbin/policy-rc.d" || [[ $? == 101 ]] || touch "$STATE/started"
		cd "$DPKG_ROOT"
		touch lib/systemd/system/docker.{service,socket} etc/init.d/docker
		mkdir -p etc/systemd/system/sockets.target.wants
		ln -s /lib/systemd/system/docker.service etc/systemd/system/multi-user.target.wants
		ln -s /lib/systemd/system/docker.socket etc/systemd/system/sockets.target.wants
		ln -s ../init.d/docker etc/rc2.d/S01docker
		mkdir -p usr/lib/systemd/user etc/systemd/user/sockets.target.wants
		touch usr/lib/systemd/user/gpg.socket
		ln -s /usr/lib/systemd/user/gpg.socket etc/systemd/user/sockets.target.wants
		# What an upgrade of something that was there already may do.
		ln -sf /lib/systemd/system/old.service etc/systemd/system/multi-user.target.wants
		echo "2 newly installed"
		echo "Get:1 something"
		printf "%s\n" "${@:1}" | grep -v "^-" >>"$STATE/installed"'
	touch "$DPKG_ROOT"/lib/systemd/system/{old,mine}.service
	ln -s /lib/systemd/system/mine.service "$DPKG_ROOT/etc/systemd/system/mine-alias.service"
}

program() { # name text
	printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"
	chmod +x "bin/$1"
}

links() {
	(cd "$DPKG_ROOT/etc" && find . -type l | LC_ALL=C sort | paste -sd' ')
}

@test "what came along is neither started nor enabled, what was there stays" {
	run "$deps" build test
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ ! -e "$STATE/started" ]
	[ "$(links)" = "./rc2.d/K01docker ./systemd/system/mine-alias.service \
./systemd/system/multi-user.target.wants/old.service \
./systemd/user/sockets.target.wants/gpg.socket" ]
	[ -d "$DPKG_ROOT/etc/systemd/system/multi-user.target.wants" ]
	[ ! -e "$DPKG_ROOT/etc/systemd/system/sockets.target.wants" ]
	[ ! -e "$DPKG_ROOT/usr/sbin/policy-rc.d" ]
	grep -qx 'deps.sh: left disabled: docker docker.service docker.socket' <<<"$output"
}

@test "of what apt says only the sums are shown" {
	run "$deps" build
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	grep -q 'installing .*gcc' <<<"$output"
	grep -qx 'deps.sh: 2 newly installed' <<<"$output"
	! grep -q 'Get:1' <<<"$output"
}

@test "what is there costs nothing" {
	"$deps" build >/dev/null
	: >"$STATE/calls"
	run "$deps" build
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ ! -s "$STATE/calls" ]
}

@test "after a failure apt's words are shown and everything is as it was" {
	echo "an administrator's" >"$DPKG_ROOT/usr/sbin/policy-rc.d"
	touch "$STATE/broken"
	run "$deps" demo
	printf '%s\n' "$output"
	[ "$status" -ne 0 ]
	grep -qx 'E: broken' <<<"$output"
	[ "$(<"$DPKG_ROOT/usr/sbin/policy-rc.d")" = "an administrator's" ]
	[ "$(links)" = ./systemd/system/mine-alias.service ]
}

@test "a policy-rc.d left by a run that was killed is taken for ours" {
	printf '#!/bin/sh\n# %s\n' "$DPKG_ROOT/usr/sbin/policy-rc.d.before-gpushare" \
		>"$DPKG_ROOT/usr/sbin/policy-rc.d"
	"$deps" build >/dev/null
	[ ! -e "$DPKG_ROOT/usr/sbin/policy-rc.d" ]
}

@test "a group that there is not" {
	run "$deps" nothing
	[ "$status" -eq 1 ]
	grep -q "no group 'nothing' (groups: build" <<<"$output"
	[ ! -s "$STATE/calls" ]
}
