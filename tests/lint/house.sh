#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules of this repository that no ready-made tool checks. Prints "file:line: what is wrong".
#
#	house.sh [DIR]	looks at DIR instead of this repository (for its own test)
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
export LC_ALL=C.UTF-8

# Findings come out of pipes, so they are counted at the end and not where they are found.
findings=$(mktemp)
trap 'rm -f "$findings"' EXIT
report() { # takes findings on stdin
	cat >>"$findings"
}

# Everything that people wrote, without test inputs, where every byte counts.
mapfile -t all < <(find . \( -path ./build -o -path ./.git -o -path ./LICENSES \
	-o -path '*/cases' -o -path '*/corpus' -o -name __pycache__ \) -prune -o -type f -print |
	sed 's|^\./||' | LC_ALL=C sort)

# of PATTERN: those of them whose names match the extended regular expression.
of() {
	printf '%s\n' "${all[@]}" | grep -E "$1" || true
}

mapfile -t c < <(of '\.[ch]$')
mapfile -t headers < <(of '\.h$')
mapfile -t kmod < <(of '^kmod/.*\.[ch]$')
mapfile -t code < <(of '\.(c|h|sh|bash|bats|py|mk)$|(^|/)(Makefile|Kbuild)$|^tests/run$|^\.ci/run$')
# JSON and the other listed forms have no comments.
mapfile -t licensed < <(of . | grep -vE '\.(json|svg|png|sum)$|(^|/)go\.mod$|^VERSION$' |
	grep -vE '^packaging/debian/(changelog|source/format)$')

# grep prints "file:line:text"; the last argument says what is wrong with such a line.
grep_report() {
	local what=$1
	shift
	{ grep -nHE "$@" || true; } | sed -E "s#^([^:]*:[0-9]+):.*#\1: $what#" | report
}

awk 'FNR > 3 { nextfile }
FNR == 1 { files[++n] = FILENAME }
/SPDX-License-Identifier: / { ok[FILENAME] = 1 }
END {
	for (i = 1; i <= n; i++)
		if (!(files[i] in ok))
			print files[i] ":1: no SPDX-License-Identifier in the first three lines"
}' "${licensed[@]}" | report

grep_report "white space at the end of the line" '[[:space:]]$' "${all[@]}"
grep_report "marker for unfinished work" '\b(TO''DO|FIX''ME|X''XX)\b' "${all[@]}"
# (Debian's www is none.)
hosts='[a-vx-z]\.(deb''ian|ubun''tu)\.(org|com)|proxy\.gol''ang|pypi\.o''rg|registry\.np''mjs'
grep_report "name of a package host" "$hosts" "${all[@]}"
paths='(^|[^[:alnum:]_.}/-])/(wo''rk|tmp/w|root/\.[a-z]+)/'
grep_report "path of somebody's machine" "$paths" "${all[@]}"

{ grep -lPz '[^\n]\z' "${all[@]}" || true; } | sed 's/$/: no newline at the end/' | report
mapfile -t written < <(of . | grep -v '\.svg$')
wc -l "${written[@]}" | awk '$2 != "total" && $1 > 900 {
	print $2 ": " $1 " lines, more than 900"
}' | report

if ((${#code[@]} > 0)); then
	perl -CSD -ne 'chomp; 1 while s/\t/" " x (8 - $-[0] % 8)/e;
		print "$ARGV:$.: more than 100 columns\n" if length > 100;
		close ARGV if eof' "${code[@]}" | report
fi

if ((${#c[@]} > 0)); then
	# A line of a block comment starts with one space and a star.
	grep_report "indented with spaces" '^( [^*]|  )' "${c[@]}"
	grep_report "// comment" '^[[:space:]]*//( [^S]|[^ ]|$)' "${c[@]}"
	grep_report "include by a relative path" '^[[:space:]]*#[[:space:]]*include "\.' "${c[@]}"
	# Arrows point one way: programs stand on common, common on include, kmod on include alone.
	# Two of them speak to Kubernetes and stand on kube, too.
	awk -F '"' '
	FNR == 1 {
		folder = FILENAME
		sub(/\/.*/, "", folder)
		ok = folder "|gpushare|uapi"
		if (folder != "include" && folder != "kmod")
			ok = ok "|common"
		if (folder == "agent" || folder == "controller")
			ok = ok "|kube"
		ok = "^((" ok ")/|[^/]*$)"
	}
	folder != "tests" && /^[ \t]*#[ \t]*include[ \t]*"/ && $2 !~ ok {
		print FILENAME ":" FNR ": " folder " must not include " $2
	}' "${c[@]}" | report
fi

# A kernel is told by what a probe finds in it: vendors change its interfaces and not its version.
# And no symbol is looked up by its name: hooks come from a driver's open file, and what a kprobe
# says is behind the instruction at which a call must land (ENDBR).
if ((${#kmod[@]} > 0)); then
	grep_report "of a kernel's version" '\b(LINUX_VERSION_CODE|KERNEL_VERSION|RHEL_[A-Z_]+)\b' \
		"${kmod[@]}"
	grep_report "of a symbol's name" '\b(kallsyms_lookup_name|(un)?register_k(ret)?probes?)\b' \
		"${kmod[@]}"
fi

# Functions that a header declares have a comment right above them, or above the group of lines
# that they stand in.
if ((${#headers[@]} > 0)); then
	awk '
	FNR == 1 || /^$/ { comment = 0 }
	/\*\// { comment = 1 }
	/^(typedef|static|return|if|while|for|switch|else)/ { next }
	/^(__attribute__|[a-z_])[^;{=]*\(/ && !/^__attribute__\(\(.*\)\)$/ && !comment {
		print FILENAME ":" FNR ": function without a comment above it"
	}' "${headers[@]}" | report
fi

# Every reason for a skip in CI has its why.
if [[ -e tests/skips-allowed ]]; then
	awk '/^#/ { comment = 1; next }
	/^$/ { comment = 0; next }
	!comment { print FILENAME ":" FNR ": a pattern without a comment above it" }' \
		tests/skips-allowed | report
fi

cat "$findings"
[[ ! -s $findings ]]
