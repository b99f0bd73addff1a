#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy on one C file and prints its findings only.
#
#	tidy.sh [COMPILER FLAG]... FILE
#
# The analyzer sees one file at a time. Of a function defined elsewhere it believes that it may give
# any number, and follows paths on which a call "failed" with 1 and set nothing. So it is told the
# error idiom: whatever takes a `struct gs_err *` gives 0 or less, and gs_err_*() less than 0. It is
# told too that a unit test ends where an assertion of cmocka fails.
set -euo pipefail

flags=("${@:1:$#-1}")
file=${!#}
idiom=$(mktemp --suffix=.h)
trap 'rm -f "$idiom"' EXIT

# Prints the names of the functions in the headers given that return int and take an error.
fallible() {
	awk '
	/^(__attribute__.* )?int [a-z0-9_]+\(/ { text = "" ; on = 1 }
	on { text = text $0 }
	on && /;/ {
		on = 0
		if (text ~ /struct gs_err \*/ && match(text, /int [a-z0-9_]+\(/))
			print substr(text, RSTART + 4, RLENGTH - 5)
	}' "$@"
}

{
	# All of our headers that this file ends up with; it defines some of their functions itself.
	mapfile -t headers < <(gcc -MM "${flags[@]}" "$file" | tr ' ' '\n' |
		grep -E '^(common|runtime|ctl)/.*\.h$')
	((${#headers[@]} == 0)) || printf '#include "%s"\n' "${headers[@]}"
	cat <<-'EOF'
		static inline int lint_negative(int ret)
		{
			if (ret >= 0)
				__builtin_unreachable();
			return ret;
		}
		static inline int lint_not_positive(int ret)
		{
			if (ret > 0)
				__builtin_unreachable();
			return ret;
		}
	EOF
	fallible /dev/null "${headers[@]}" | sort -u | while read -r name; do
		! grep -qE "^(__attribute__.* )?int $name\(" "$file" || continue
		case $name in
		gs_err_*) promise=lint_negative ;;
		*) promise=lint_not_positive ;;
		esac
		printf '#define %s(...) %s((%s)(__VA_ARGS__))\n' "$name" "$promise" "$name"
	done
	if grep -q '^#include <cmocka.h>' "$file"; then
		cat <<-'EOF'
			#include <stdarg.h>
			#include <stddef.h>
			#include <setjmp.h>
			#include <stdint.h>
			#include <cmocka.h>
			#define _fail(...) __builtin_unreachable()
			#define _assert_true(c, ...) ((c) ? (void)0 : __builtin_unreachable())
			#define _assert_int_equal(a, b, ...) \
				((a) == (b) ? (void)0 : __builtin_unreachable())
		EOF
	fi
} >"$idiom"

out=$(clang-tidy-14 --quiet "${flags[@]/#/--extra-arg=}" --extra-arg=-include \
	--extra-arg="$idiom" "$file" -- 2>&1) && exit 0
noise='^[0-9]+ (warning|error).*(generated|treated)|^Suppressed|^Use -header|^Error while'
printf '%s\n' "$out" | grep -vE "$noise" || true
exit 1
