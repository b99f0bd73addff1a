# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What tests claim, with an explanation when it is not so.

# In setup_file: whatever this machine lacks for the tests of the file is why they are skipped
# (bats 1.8 can't skip there): needs COMMAND… || return 0
needs() {
	WHY_SKIPPED=$(missing_commands "$@")
	export WHY_SKIPPED
	[[ -z $WHY_SKIPPED ]]
}

# In setup.
skip_if_lacking() {
	if [[ -n ${WHY_SKIPPED:-} ]]; then
		skip "$WHY_SKIPPED"
	fi
}

# fails_with PATTERN COMMAND…: the command fails, and says something that the extended regular
# expression matches. What it said is left in $said.
said=
fails_with() {
	local pattern=$1 file rc=0
	shift
	# A file and no pipe: a container that starts nevertheless would hold a pipe open for ever.
	file=$(mktemp)
	"$@" </dev/null >"$file" 2>&1 3>&- 4>&- || rc=$?
	said=$(<"$file")
	rm -f "$file"
	if ((rc == 0)); then
		printf 'not true: fails: %s; it said: %s\n' "$*" "$said" >&2
		return 1
	fi
	matches "$said" "$pattern"
}

# matches TEXT PATTERN
matches() {
	[[ $1 =~ $2 ]] || {
		printf 'not true: /%s/ matches: %s\n' "$2" "$1" >&2
		return 1
	}
}

# lacks TEXT PATTERN
lacks() {
	[[ ! $1 =~ $2 ]] || {
		printf 'not true: /%s/ does not match: %s\n' "$2" "$1" >&2
		return 1
	}
}

# equals TEXT TEXT
equals() {
	[[ $1 == "$2" ]] || {
		printf 'not true: %q equals %q\n' "$1" "$2" >&2
		return 1
	}
}

# is_empty FILE: nothing was written to it.
is_empty() {
	[[ -f $1 && ! -s $1 ]] || {
		printf 'not true: %s is empty: ' "$1" >&2
		head -c 2000 "$1" >&2
		return 1
	}
}

# within SECONDS COMMAND…: the command succeeds within that time.
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if ((SECONDS >= end)); then
			printf 'not true in time: %s\n' "$*" >&2
			return 1
		fi
		sleep 0.1
	done
}

# json FILE|- EXPRESSION: evaluates a Python expression with the document as "d" and prints it; a
# list a line each. (jq rounds integers above 2^53, and is one more package.)
json() {
	"$GS_PYTHON" -c '
import json, sys
d = json.load(sys.stdin if sys.argv[1] == "-" else open(sys.argv[1]))
out = eval(sys.argv[2])
print(*out, sep="\n") if isinstance(out, list) else print(out)' "$@"
}
