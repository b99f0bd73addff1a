# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Programs for the guest, static, since it has no libraries.

# user_build ARCH: builds gpusharectl and tests/vm/programs/*.c. Sets USER_PROGRAMS, the folder that
# they are in; all kernels of an architecture use the same.
user_build() {
	local arch=$1 b=$VM_TOP/build/vm/user-$1 cc cppflags ldflags file program
	user_sysroot "$arch"
	cc=$(user_cc "$arch")
	cppflags="-isystem $USER_SYSROOT/usr/include"
	ldflags=-L$(compgen -G "$USER_SYSROOT/usr/lib/*-linux-gnu")
	USER_PROGRAMS=$b/programs
	mkdir -p "$USER_PROGRAMS"
	(
		flock 9
		make -s --no-print-directory -C "$VM_TOP" \
			-j"$(nproc)" WERROR=1 B="$b" CC="$cc" CPPFLAGS="$cppflags" \
			LDFLAGS="$ldflags" PIE=-static-pie "$b/gpusharectl" \
			"$b/libgpushare.a" >"$b/log" 2>&1 || {
			cat "$b/log"
			exit 1
		}
		cmp -s "$b/gpusharectl" "$USER_PROGRAMS/gpusharectl" ||
			cp "$b/gpusharectl" "$USER_PROGRAMS"
		for file in "$VM_DIR"/programs/*.c; do
			program=$USER_PROGRAMS/$(basename "$file" .c)
			user_is_new "$program" "$file" "$b/libgpushare.a" || continue
			# shellcheck disable=SC2086 # flags
			"$cc" $cppflags -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror \
				-I"$VM_TOP" -I"$VM_TOP/include" -pthread -static \
				-MMD -MF "$b/$(basename "$file").d" -o "$program" "$file" \
				"$b/libgpushare.a" $ldflags -ljansson -lmnl
		done
	) 9>"$b/lock" >&2
}

# user_is_new PROGRAM FILE...: does the program have to be made, because it is missing or older than
# a file, or than a header that it was made from?
user_is_new() {
	local program=$1 file
	shift
	[[ -e $program ]] || return 0
	local depends
	depends=$VM_TOP/build/vm/user-$arch/$(basename "$1").d
	[[ -e $depends ]] || return 0
	for file in "$@" $(sed 's/^[^:]*://; s/\\$//' "$depends"); do
		[[ $program -nt $file ]] || return 0
	done
	return 1
}

# user_sysroot ARCH: sets USER_SYSROOT, a folder with that architecture's busybox and static
# libraries, of this machine's own suite, since they meet its compiler's libc.
user_sysroot() {
	local suite
	suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	USER_SYSROOT=$VM_CACHE/sysroot/$suite-$1-$(declare -f user_make_sysroot | hash_of)
	cached "$USER_SYSROOT" user_make_sysroot "$suite" "$1"
}

user_make_sysroot() {
	local suite=$1 arch=$2 new=$3 deb
	say "fetching libraries and busybox for $arch"
	mkdir "$new/debs"
	apt_state "$suite" "$arch"
	apt_update
	apt_download "$new/debs" libjansson-dev busybox-static
	# Before trixie libmnl-dev has no static library. This one asks nothing new of the libc.
	apt_state trixie "$arch"
	apt_update
	apt_download "$new/debs" libmnl-dev
	for deb in "$new"/debs/*.deb; do
		dpkg-deb -x "$deb" "$new"
	done
	rm -rf "$new/debs" "${new:?}/usr/share"
}

# Prints the compiler that builds programs for ARCH.
user_cc() {
	case $1 in
	amd64) echo gcc ;;
	arm64) echo aarch64-linux-gnu-gcc ;;
	esac
}
