# shellcheck shell=bash disable=SC2154 # of bats, and of setup
# SPDX-License-Identifier: Apache-2.0
# For tests of linters that compare code and docs: setup sets $lint, the linter's name, and $dir,
# a copy of what it reads, to break.

# check: what the linter says of the copy.
check() {
	run /usr/bin/python3 "$BATS_TEST_DIRNAME/../lint/$lint.py" "$dir"
	printf '%s\n' "$output"
}

# finds TEXT: the check fails, and says it.
finds() {
	check
	[ "$status" -eq 1 ]
	grep -qF -- "$1" <<<"$output"
}

# agrees: the check passes, and says nothing.
agrees() {
	check
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}
