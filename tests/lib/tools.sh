# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Programs that Debian does not have, built from the Go modules that tests/tools pins. They are kept
# outside the clone, by a hash of what they are made from.

# Prints why this machine can't be used for a test that needs these commands; nothing when it can.
missing_commands() {
	local name
	if ((EUID != 0)); then
		echo "needs root"
		return 0
	fi
	for name; do
		command -v "$name" >/dev/null || {
			echo "no $name on this machine"
			return 0
		}
	done
}

# Prints the path of a go that is new enough for tests/tools/$1/go.mod; fails with the reason on
# stdout when there is none.
tools_go() {
	local want have go candidate older
	want=$(sed -n 's/^go //p' "$GS_TOP/tests/tools/$1/go.mod")
	for candidate in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go/bin/go; do
		[[ -x $candidate ]] || continue
		have=$(GOTOOLCHAIN=local "$candidate" env GOVERSION) || continue
		have=${have#go}
		older=$(printf '%s\n' "$want" "${have%% *}" | sort -V | head -n 1)
		if [[ $older == "$want" ]]; then
			printf '%s\n' "$candidate"
			return 0
		fi
		go=${have%% *}
	done
	echo "needs Go $want, this machine has ${go:-none}"
	return 1
}

# Makes the tools of tests/tools/NAME if the cache has none that were made from the same versions:
# tools_build NAME. Prints the folder with the programs. Status 77: not possible here, and the
# reason is printed instead; status 1: it should have worked (the log is on stderr).
tools_build() {
	local name=$1 source=$GS_TOP/tests/tools/$1 cache go key out log flags=() cgo=0 limit=1200
	cache=${GPUSHARE_TEST_CACHE:-/var/cache/gpushare-tests}

	go=$(tools_go "$name") || {
		echo "$go"
		return 77
	}
	# shellcheck disable=SC1091 # sets flags, cgo and limit (seconds)
	source "$source/build.conf"
	if [[ $cgo == 1 ]] && ! command -v gcc >/dev/null; then
		echo "needs a C compiler to build $name"
		return 77
	fi
	key=$({
		cat "$source/go.mod" "$source/go.sum" "$source/build.conf"
		find "$source" -name '*.go' -print0 | sort -z | xargs -0r cat
		"$go" version
	} | sha256sum | cut -c1-16)
	out=$cache/tools/$name-$key
	if [[ ! -e $out/.complete ]]; then
		mkdir -p "$cache/tools"
		log=$cache/tools/$name-$key.log
		# Two test files may want the same tools at once, and one may be making them ahead.
		(
			flock -n 9 || {
				echo "$name: waiting for another run that builds it" >&2
				flock 9
			}
			[[ ! -e $out/.complete ]] || exit 0
			rm -rf "$out"
			mkdir "$out" && cd "$source" || exit 1
			export GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=$cgo
			# Both are empty where there is no HOME.
			GOCACHE=$("$go" env GOCACHE) GOMODCACHE=$("$go" env GOMODCACHE)
			export GOCACHE=${GOCACHE:-$cache/go-build}
			export GOMODCACHE=${GOMODCACHE:-$cache/go-mod}
			# in our process group, with which it ends
			timeout --foreground "$limit" "$go" build -p "$(nproc)" -trimpath \
				-buildvcs=false -ldflags '-s -w' "${flags[@]}" -o "$out/" tool \
				>"$log" 2>&1 &&
				touch "$out/.complete"
		) 9>"$cache/tools/.$name.lock" || {
			if grep -qE 'dial tcp|no such host|refused|i/o timeout' "$log"; then
				echo "no Go module proxy can be reached to build $name"
				return 77
			fi
			echo "building $name failed:" >&2
			tail -n 20 "$log" >&2
			return 1
		}
	fi
	printf '%s\n' "$out"
}

# For setup_file: puts the folder of tests/tools/NAME into the variable VAR, or the reason why
# it can't be had into WHY_SKIPPED: tools_want VAR NAME || return 0
tools_want() {
	local got rc=0
	got=$(tools_build "$2") || rc=$?
	if ((rc == 0)); then
		printf -v "$1" %s "$got"
		# shellcheck disable=SC2163 # the variable of that name
		export "$1"
		return 0
	fi
	((rc == 77)) || return 1
	export WHY_SKIPPED=$got
	return 77
}
