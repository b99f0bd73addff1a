#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `make install` puts everything where it was told to, and `make uninstall` takes all of it away.

setup() {
	cd "$BATS_TEST_DIRNAME/../.."
	dest=$BATS_TEST_TMPDIR/dest
	# A build of its own for other paths would take minutes: nothing is built here.
	make=(make --no-print-directory -s -o all DESTDIR="$dest")
}

@test "install, again, and uninstall" {
	"${make[@]}" install
	[ -x "$dest/usr/bin/gpushare-runtime" ]
	[ -x "$dest/usr/sbin/gpushared" ]
	[ -x "$dest/usr/libexec/gpushare/gpushare-probe" ]
	(cd "$dest" && find . -type f | sort) >"$BATS_TEST_TMPDIR/first"
	"${make[@]}" install
	(cd "$dest" && find . -type f | sort) >"$BATS_TEST_TMPDIR/second"
	diff "$BATS_TEST_TMPDIR/first" "$BATS_TEST_TMPDIR/second"
	run grep '\.new$' "$BATS_TEST_TMPDIR/first"
	[ "$status" -eq 1 ]
	"${make[@]}" install-dkms
	[ -n "$(ls -A "$dest/usr/src")" ]
	"${make[@]}" uninstall
	run find "$dest" -type f -o -type l
	[ -z "$output" ]
	run find "$dest" -name '*gpushare*'
	[ -z "$output" ]
	# Where there is nothing, nothing is said.
	run "${make[@]}" uninstall
	[[ $status == 0 && -z $output ]]
}

@test "the unit names the program where it is" {
	(umask 077 && "${make[@]}" install)
	unit=$dest/usr/lib/systemd/system/gpushared.service
	[ "$(stat -c %a "$unit")" = 644 ]
	grep -qx ExecStart=/usr/sbin/gpushared "$unit"
	if command -v systemd-analyze >/dev/null; then
		# What it does not understand is told with the line.
		run systemd-analyze verify --man=no --root="$dest" gpushared.service
		printf '%s\n' "$output"
		run grep -E 'gpushared\.service:[0-9]+:' <<<"$output"
		[ "$status" -eq 1 ]
	fi
	"${make[@]}" PREFIX=/opt/gs install
	unit=$dest/opt/gs/lib/systemd/system/gpushared.service
	grep -qx ExecStart=/opt/gs/sbin/gpushared "$unit"
	"${make[@]}" UNITDIR=/etc/systemd/system install
	[ -e "$dest/etc/systemd/system/gpushared.service" ]
}
