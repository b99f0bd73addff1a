#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The RPM packages: they build from the spec file, and have what Debian's have. (On Debian without
# their build dependencies, which have other names there.)

setup_file() {
	cd "$BATS_TEST_DIRNAME/../../.." || return 1
	if ! command -v rpmbuild >/dev/null || ! command -v dh >/dev/null; then
		export GS_SKIP="no rpmbuild or debhelper (packaging/deps.sh deb)"
		return
	fi
	export GS_RPM=$BATS_FILE_TMPDIR/rpm GS_DEB=$BATS_FILE_TMPDIR/deb
	packaging/rpm.sh "$GS_RPM" --nodeps --with static
	packaging/deb.sh "$GS_DEB"
}

setup() {
	cd "$BATS_TEST_DIRNAME/../../.." || return 1
	[[ -z ${GS_SKIP:-} ]] || skip "$GS_SKIP"
}

rpm_of() {
	echo "$GS_RPM/$1-$(<VERSION)"-*.rpm
}

# Files, without what only one of the two kinds has, under one name where folders differ.
rpm_files() {
	rpm -qp --dump "$(rpm_of "$1")" | awk '$5 !~ /^0?40/ { print $1 }'
}
deb_files() {
	dpkg-deb --fsys-tarfile "$GS_DEB/$1"_*.deb | tar -t | grep -v '/$' | sed 's|^\.||'
}
names() {
	sed 's|^/lib/|/usr/lib/|; s|\.gz$||; s|/vendor-completions/|/site-functions/|' |
		grep -vE '^/usr/share/(doc|licenses|lintian)/|\.build-id/' |
		grep -vE '/kubectl(-|_complete-)gpushare\.8' |
		LC_ALL=C sort
}

@test "each has the files that Debian's has" {
	for package in gpushare-runtime gpushare-agent gpushare-controller gpushare-dkms \
		gpusharectl; do
		echo "$package"
		diff <(rpm_files "$package" | names) <(deb_files "$package" | names)
	done
}

@test "they come together, and removing asks first" {
	version=$(<VERSION)
	for what in gpushare-runtime gpusharectl; do
		rpm -qp --requires "$(rpm_of gpushare-agent)" | grep -q "^$what.* = $version-1"
	done
	rpm -qp --provides "$(rpm_of gpushare-dkms)" | grep -qx "gpushare-module-abi = 1"
	for what in runtime agent; do
		rpm -qp --scripts "$(rpm_of gpushare-$what)" |
			grep -qF "/usr/libexec/gpushare/may-remove $what || exit 1"
	done
	! rpm -qp --requires "$(rpm_of gpushare-runtime)" | grep -q libjansson || false
}
