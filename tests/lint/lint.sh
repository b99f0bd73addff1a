#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make lint`: every check runs, one line each; what a failing one says stands above its line.
# LINT_CPPFLAGS (from the Makefile) are the flags that clang-tidy compiles with.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

python=/usr/bin/python3
jobs=$(nproc)
failed=0

lacks=()
for tool in clang-format-14 clang-tidy-14 cppcheck shellcheck mandoc "$python"; do
	command -v "$tool" >/dev/null || lacks+=("$tool")
done
if ((${#lacks[@]} > 0)); then
	echo "lint: not on this machine: ${lacks[*]}; packaging/deps.sh lint brings them" >&2
	exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# files GLOB...: prints the repository's files of those names, no build outputs, no test inputs.
files() {
	local -a names=()
	local name
	for name; do
		names+=(-o -name "$name")
	done
	find . \( -path ./build -o -path ./.git -o -path '*/cases' -o -path '*/corpus' \) -prune \
		-o -type f \( "${names[@]:1}" \) -print | sed 's|^\./||' | LC_ALL=C sort
}

# check NAME COMMAND...
check() {
	local name=$1 begin=$EPOCHREALTIME verdict=ok
	shift
	if ! "$@" >"$work/out" 2>&1 </dev/null; then
		cat "$work/out"
		verdict=FAILED
		failed=1
	fi
	awk -v n="$name" -v v="$verdict" -v a="$begin" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "lint: %-14s %-6s %6.1f s\n", n, v, b - a }'
}

# What is compiled into a kernel has another compiler's flags and headers: those are checked by
# building with W=1 against the kernels of tests/vm.
kernel_code='^(kmod|tests/fakegpu|tests/vm/modules)/'
mapfile -t c_files < <(files '*.c' | grep -vE "$kernel_code")
mapfile -t ch_files < <(files '*.c' '*.h')
mapfile -t sh_files < <(files '*.sh' '*.bash'; ls tests/run .ci/run packaging/may-remove)
mapfile -t bats_files < <(files '*.bats')
mapfile -t py_files < <(files '*.py')
mapfile -t json_files < <(ls vendors/*.json 2>/dev/null)
mapfile -t man_files < <(ls docs/man/*.[1458] 2>/dev/null)

clang_tidy() {
	local -a flags
	# As the compiler gets them from the Makefile, quotes and all.
	eval "flags=($LINT_CPPFLAGS)"
	printf '%s\0' "${c_files[@]}" | xargs -0 -n 1 -P "$jobs" tests/lint/tidy.sh \
		"${flags[@]}" -std=gnu11
}

# One line for each place is enough: `make format` shows the rest.
formatting() {
	local out
	out=$(clang-format-14 --dry-run -Werror "${ch_files[@]}" 2>&1) && return 0
	grep ': error: ' <<<"$out" || printf '%s\n' "$out"
	return 1
}

# memleak does not know the cleanup attribute; on Linux NULL is a pointer in a variadic call too.
run_cppcheck() {
	cppcheck -q -j "$jobs" --std=c11 --enable=warning,performance,portability --inline-suppr \
		--error-exitcode=1 --suppress=missingIncludeSystem \
		--suppress=arithOperationsOnVoidPointer --suppress=memleak \
		--suppress=varFuncNullUB -Iinclude -I. "${c_files[@]}"
}

# bats' @test lines are not bash; bats itself turns them into functions.
bats_syntax() {
	local file rc=0
	for file in "${bats_files[@]}"; do
		sed -E 's/^@test .*\{$/bats_test() {/' "$file" | bash -n || {
			echo "$file: not valid bash"
			rc=1
		}
	done
	shellcheck -s bats -S warning -e SC2164 "${bats_files[@]}" || rc=1
	return "$rc"
}

python_syntax() {
	PYTHONPYCACHEPREFIX=$work/pycache "$python" -m py_compile "${py_files[@]}"
}

check clang-format formatting
check house tests/lint/house.sh
check messages "$python" tests/lint/messages.py
check sentences "$python" tests/lint/sentences.py
check cases "$python" tests/lint/cases.py
check returns "$python" tests/lint/returns.py
check metrics "$python" tests/lint/metrics.py
check keys "$python" tests/lint/keys.py
check options "$python" tests/lint/options.py
check shellcheck shellcheck -x "${sh_files[@]}"
((${#bats_files[@]} == 0)) || check bats bats_syntax
((${#py_files[@]} == 0)) || check python python_syntax
((${#json_files[@]} == 0)) || check json "$python" tests/lint/json_syntax.py "${json_files[@]}"
((${#man_files[@]} == 0)) || check mandoc mandoc -T lint -W warning "${man_files[@]}"
check cppcheck run_cppcheck
check clang-tidy clang_tidy
exit "$failed"
