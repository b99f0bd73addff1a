#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Finds out what a kernel has: probe.sh OUT PROBE.c... -- COMPILER FLAG...
#
# Each probe is a file that compiles only where the kernel has what the file is named for. OUT gets
# `#define GS_HAVE_<NAME> 1` for each that does. always.c compiles everywhere: if it does not, the
# compiler or the headers are broken, and no answer would be true.
set -eu

out=$1
shift
probes=
while [ "$1" != -- ]; do
	probes="$probes $1"
	shift
done
shift

log=$out.log
: >"$log"
tmp=$out.tmp
echo '/* Made by configure/probe.sh: what the kernel has. */' >"$tmp"

# Errors of a probe are answers, so they go to the log. Warnings must not be
# errors, but for a call of what is not declared.
compile() {
	file=$1
	shift
	echo "== $file" >>"$log"
	"$@" -Wno-error -Werror=implicit-function-declaration -c -o /dev/null "$file" >>"$log" 2>&1
}

for probe in $probes; do
	name=$(basename "$probe" .c)
	if compile "$probe" "$@"; then
		if [ "$name" != always ]; then
			echo "#define GS_HAVE_$(echo "$name" | tr a-z- A-Z_) 1" >>"$tmp"
		fi
	elif [ "$name" = always ]; then
		echo "gpushare: the compiler can't use this kernel's headers; see $log" >&2
		tail -n 20 "$log" >&2
		rm -f "$tmp"
		exit 1
	fi
done
mv "$tmp" "$out"
