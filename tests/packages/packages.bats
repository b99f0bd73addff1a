#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The Debian packages: what is in them, what lintian says, that the same source makes the same
# bytes, and what the scripts allow. tests/packages/run.sh installs them on nodes.

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	if ! command -v dh >/dev/null || ! command -v lintian >/dev/null; then
		export GS_SKIP="no debhelper or lintian (packaging/deps.sh deb)"
		return
	fi
	export GS_DEB=$BATS_FILE_TMPDIR/deb
	packaging/deb.sh "$GS_DEB"
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	[[ -z ${GS_SKIP:-} ]] || skip "$GS_SKIP"
	root=$BATS_TEST_TMPDIR/root
	mkdir -p "$root"
}

# files PACKAGE: what is in it, without folders and documentation.
files() {
	dpkg-deb --fsys-tarfile "$GS_DEB/$1"_*.deb | tar -t | grep -v '/$' |
		sed 's|^\.||; s|^/lib/|/usr/lib/|' | grep -v '^/usr/share/doc/' | LC_ALL=C sort
}

# field PACKAGE NAME
field() {
	dpkg-deb -f "$GS_DEB/$1"_*.deb "$2"
}

# script PACKAGE NAME ARGUMENT...: runs that script of the package, on the files below $root.
script() {
	local package=$1 name=$2
	shift 2
	mkdir -p "$BATS_TEST_TMPDIR/$package"
	dpkg-deb -e "$GS_DEB/$package"_*.deb "$BATS_TEST_TMPDIR/$package"
	# As if the runtime's package, on which the others depend, were installed.
	[[ -d $BATS_TEST_TMPDIR/files ]] ||
		dpkg-deb -x "$GS_DEB"/gpushare-runtime_*.deb "$BATS_TEST_TMPDIR/files"
	sed -i "s|/usr/libexec/gpushare|$BATS_TEST_TMPDIR/files&|" \
		"$BATS_TEST_TMPDIR/$package/$name"
	DPKG_ROOT=$root run "$BATS_TEST_TMPDIR/$package/$name" "$@"
	printf '%s\n' "$output"
}

@test "the files of each" {
	diff - <(files gpushare-runtime) <<-END
		/usr/bin/gpushare-runtime
		/usr/libexec/gpushare/gpushare-hook
		/usr/libexec/gpushare/may-remove
		$(cd vendors && printf '/usr/share/gpushare/vendors.d/%s\n' *.json | LC_ALL=C sort)
		$(printf '/usr/share/lintian/overrides/gpushare-runtime')
		/usr/share/man/man5/gpushare-config.5.gz
		/usr/share/man/man5/gpushare-vendors.5.gz
		/usr/share/man/man8/gpushare-runtime.8.gz
	END
	diff - <(files gpusharectl) <<-END
		/usr/bin/gpusharectl
		/usr/bin/kubectl-gpushare
		/usr/bin/kubectl_complete-gpushare
		/usr/libexec/gpushare/gpushare-spec
		/usr/share/bash-completion/completions/gpusharectl
		/usr/share/bash-completion/completions/kubectl-gpushare
		/usr/share/man/man8/gpusharectl.8.gz
		/usr/share/man/man8/kubectl-gpushare.8.gz
		/usr/share/man/man8/kubectl_complete-gpushare.8.gz
		/usr/share/zsh/vendor-completions/_gpusharectl
	END
	for file in /usr/lib/systemd/system/gpushared.service /usr/sbin/gpushared \
		/usr/libexec/gpushare/gpushare-probe /usr/share/man/man8/gpushared.8.gz; do
		files gpushare-agent | grep -qxF "$file"
	done
}

@test "DKMS gets all that the module is built from" {
	version=$(<VERSION)
	files gpushare-dkms | sed -n "s|^/usr/src/gpushare-$version/||p" >"$BATS_TEST_TMPDIR/has"
	{
		echo VERSION
		echo dkms.conf
		echo include/uapi/gpushare.h
		git ls-files kmod 2>/dev/null || find kmod -type f -name '*.[chKs]*'
	} | LC_ALL=C sort | diff - "$BATS_TEST_TMPDIR/has"
	# As `make install-dkms` writes it.
	dpkg-deb --fsys-tarfile "$GS_DEB"/gpushare-dkms_*.deb |
		tar -xO "./usr/src/gpushare-$version/dkms.conf" |
		diff <(sed "s/@VERSION@/$version/" packaging/dkms/dkms.conf.in) -
}

@test "versions and dependencies" {
	version=$(<VERSION)
	abi=$(awk '/^#define GS_ABI_VERSION/ { print $3 }' include/uapi/gpushare.h)
	for package in gpushare-runtime gpushare-agent gpushare-controller gpushare-dkms \
		gpusharectl; do
		[ "$(field $package Version)" = "$version" ]
	done
	[ "$(field gpushare-dkms Provides)" = "gpushare-module-abi-$abi" ]
	[ "$(field gpushare-agent Recommends)" = "gpushare-dkms | gpushare-module-abi-$abi" ]
	# They speak to each other by files and sockets of this version, so they come together.
	for what in gpushare-runtime gpusharectl; do
		field gpushare-agent Depends | grep -qF "$what (= $version)"
	done
	# Its removal comes before that of the program that undoes a setup.
	field gpushare-runtime Depends | grep -qF "gpusharectl (= $version)"
	# The runtime needs no library.
	! field gpushare-runtime Depends | grep -qE 'libc6|jansson' || false
}

@test "lintian has nothing to say" {
	run lintian --allow-root --fail-on error,warning,info,pedantic -EvIL +pedantic \
		"$GS_DEB"/*.changes
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	! grep -E '^[EWIPX]: ' <<<"$output" || false
}

@test "every override has its reason" {
	for file in packaging/debian/*.lintian-overrides; do
		awk '/^# SPDX/ { next } /^#/ { why = 1; next } /^$/ { why = 0; next }
			!why { print FILENAME ": " $0; bad = 1 } END { exit bad }' "$file"
	done
}

@test "built again, elsewhere and by somebody else's habits, they are the same" {
	(
		umask 077
		export TZ=Pacific/Chatham LC_ALL=C.UTF-8 HOME=/nonexistent TMPDIR=$BATS_TEST_TMPDIR
		DEB_JOBS=1 packaging/deb.sh "$BATS_TEST_TMPDIR/again"
	)
	for file in "$GS_DEB"/*.deb; do
		cmp "$file" "$BATS_TEST_TMPDIR/again/${file##*/}"
	done
}

@test "a runtime that nobody uses can be removed" {
	script gpushare-runtime prerm remove
	[ "$status" -eq 0 ]
	mkdir -p "$root/etc/containerd"
	echo '# BinaryName = "/usr/bin/gpushare-runtime"' >"$root/etc/containerd/config.toml"
	script gpushare-runtime prerm remove
	[ "$status" -eq 0 ]
}

@test "one that a configuration names can't; upgrading it can" {
	while read -r file text; do
		mkdir -p "$root/${file%/*}"
		printf '%s\n' "$text" >"$root/$file"
		script gpushare-runtime prerm remove
		[ "$status" -eq 1 ]
		grep -qF "$file" <<<"$output"
		grep -qF "gpusharectl setup --undo" <<<"$output"
		script gpushare-runtime prerm upgrade 9
		[ "$status" -eq 0 ]
		rm "$root/$file"
	done <<-'END'
		etc/containerd/config.toml  BinaryName = "/usr/bin/gpushare-runtime"
		etc/containerd/conf.d/gpushare.toml BinaryName = "/usr/bin/gpushare-runtime"
		var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl x = "gpushare-runtime"
		etc/crio/crio.conf.d/20-gpushare.conf runtime_path = "/usr/bin/gpushare-runtime"
		etc/docker/daemon.json {"gpushare": {"path": "/usr/bin/gpushare-runtime"}}
		etc/containers/containers.conf.d/gpushare.conf x = ["/usr/bin/gpushare-runtime"]
	END
}

@test "nor one that containers were made with" {
	bundle=run/containerd/io.containerd.runtime.v2.task/k8s.io/5f0c12
	mkdir -p "$root/$bundle"
	echo /usr/bin/runc >"$root/$bundle/runtime"
	script gpushare-runtime prerm remove
	[ "$status" -eq 0 ]
	echo /usr/bin/gpushare-runtime >"$root/$bundle/runtime"
	script gpushare-runtime prerm remove
	[ "$status" -eq 1 ]
	grep -qF "/$bundle" <<<"$output"
	rm -r "$root/run"
	mkdir -p "$root/proc/4711"
	echo conmon >"$root/proc/4711/comm"
	printf '/usr/bin/conmon\0-r\0/usr/bin/runc\0' >"$root/proc/4711/cmdline"
	script gpushare-runtime prerm remove
	[ "$status" -eq 0 ]
	printf '/usr/bin/conmon\0-r\0/usr/bin/gpushare-runtime\0' >"$root/proc/4711/cmdline"
	script gpushare-runtime prerm remove
	[ "$status" -eq 1 ]
	grep -qF "process 4711" <<<"$output"
}

@test "nor an agent from whom a card is borrowed" {
	mkdir -p "$root/run/gpushare/lent"
	script gpushare-agent prerm remove
	[ "$status" -eq 0 ]
	# As the agent writes it (agent/lent.c), and what nobody can read.
	local none='{"v":1,"card":"C","vendor":"nvidia","nodes":[],"select":[],"cgroups":[]}'
	local some='{"v":1,"card":"C","vendor":"nvidia","nodes":[],"select":[],"cgroups":["/a"]}'
	echo "$none" >"$root/run/gpushare/lent/nvidia-GPU-0000cafe"
	script gpushare-agent prerm remove
	[ "$status" -eq 0 ]
	echo "$some" >"$root/run/gpushare/lent/nvidia-GPU-5f0c12ab"
	echo '{}' >"$root/run/gpushare/lent/nvidia-GPU-7e57ab1e"
	script gpushare-agent prerm remove
	[ "$status" -eq 1 ]
	grep -qF "gpusharectl reclaim nvidia-GPU-5f0c12ab" <<<"$output"
	grep -qF "gpusharectl reclaim nvidia-GPU-7e57ab1e" <<<"$output"
	[[ $output != *nvidia-GPU-0000cafe* ]]
	script gpushare-agent prerm upgrade 9
	[ "$status" -eq 0 ]
}

@test "an upgrade restarts the agent, unless the module would not understand the new one" {
	((EUID == 0)) || skip "needs root, for a /run of its own"
	mkdir "$BATS_TEST_TMPDIR"/{bin,agent}
	for name in systemctl deb-systemd-helper; do
		printf '#!/bin/sh\nexit 0\n' >"$BATS_TEST_TMPDIR/bin/$name"
	done
	printf '#!/bin/sh\necho "$@" >>"$BATS_TEST_TMPDIR/invoked"\n' \
		>"$BATS_TEST_TMPDIR/bin/deb-systemd-invoke"
	# What gpusharectl says of a module is in klink.c.
	grep -q 'has ABI %u' common/klink.c
	printf '#!/bin/sh\necho "$MODULE" >&2\nexit 1\n' >"$BATS_TEST_TMPDIR/bin/gpusharectl"
	chmod 755 "$BATS_TEST_TMPDIR"/bin/*
	dpkg-deb -e "$GS_DEB"/gpushare-agent_*.deb "$BATS_TEST_TMPDIR/agent"
	# configured VERSION MODULE: the script is run for an upgrade from that version.
	configured() {
		rm -f "$BATS_TEST_TMPDIR/invoked"
		MODULE=$2 PATH=$BATS_TEST_TMPDIR/bin:$PATH run unshare -m sh -ec '
			mount -t tmpfs none /run
			mkdir -p /run/systemd/system
			"$1/agent/postinst" configure "$2"' sh "$BATS_TEST_TMPDIR" "$1"
		printf '%s\n' "$output"
		[ "$status" -eq 0 ]
	}
	export BATS_TEST_TMPDIR
	configured "" "module gpushare is not loaded"
	[ "$(<"$BATS_TEST_TMPDIR/invoked")" = "start gpushared.service" ]
	configured 0.0.1 "module gpushare is not loaded"
	[ "$(<"$BATS_TEST_TMPDIR/invoked")" = "restart gpushared.service" ]
	configured 0.0.1 "kernel module gpushare has ABI 7, and this program is for 1"
	[ ! -e "$BATS_TEST_TMPDIR/invoked" ]
	grep -qF "modprobe -r gpushare" <<<"$output"
}

@test "a module that the kernel refuses is told, and nothing fails" {
	((EUID == 0)) || skip "needs root, for a /run of its own"
	mkdir "$BATS_TEST_TMPDIR"/{bin,dkms}
	printf '#!/bin/sh\nexit 0\n' >"$BATS_TEST_TMPDIR/bin/systemctl"
	cat >"$BATS_TEST_TMPDIR/bin/modprobe" <<-'END'
		#!/bin/sh
		echo "modprobe: ERROR: could not insert 'gpushare': Key was rejected by service" >&2
		exit 1
	END
	chmod 755 "$BATS_TEST_TMPDIR"/bin/*
	dpkg-deb -e "$GS_DEB"/gpushare-dkms_*.deb "$BATS_TEST_TMPDIR/dkms"
	# What dh_dkms has put before it builds the module, and is done by then.
	sed -i '/^# Automatically added/,/^# End automatically added/d' \
		"$BATS_TEST_TMPDIR/dkms/postinst"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run unshare -m sh -ec '
		mount -t tmpfs none /run
		mkdir -p /run/systemd/system
		"$1/dkms/postinst" configure' sh "$BATS_TEST_TMPDIR"
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	grep -qF "Key was rejected" <<<"$output"
	grep -qF "gpusharectl doctor says why" <<<"$output"
}

@test "purging takes away what was written, removing does not" {
	for folder in run/gpushare var/lib/gpushare/grants etc/gpushare etc/containerd; do
		mkdir -p "$root/$folder"
		: >"$root/$folder/file"
	done
	script gpushare-runtime postrm remove
	[ "$(find "$root" -type f | wc -l)" -eq 4 ]
	script gpushare-runtime postrm purge
	[ "$status" -eq 0 ]
	[ "$(cd "$root" && find . -type f)" = ./etc/containerd/file ]
}
