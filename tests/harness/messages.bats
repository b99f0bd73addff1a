#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/pod-author.md has every message that a pod's author can cause, and tests/lint/messages.py
# would tell if it had not.

setup() {
	messages=$BATS_TEST_DIRNAME/../lint/messages.py
	cd "$BATS_TEST_DIRNAME/../.."
}

# A copy of what messages.py reads, to break.
copy() {
	cp -r --parents runtime/*.c common/*.c include/gpushare docs/pod-author.md \
		"$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR"
}

# lacks MESSAGE: it is told as missing, and nothing else is.
lacks() {
	run "$messages"
	printf '%s\n' "$output"
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 1 ]
	grep -qF -- "docs/pod-author.md lacks the message \"$1\"" <<<"$output"
}

@test "the page has every message" {
	run "$messages"
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "messages are found: whole, in pieces, with macros, in helpers, one of two" {
	run "$messages" --list
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -ge 70 ]
	grep -qx 'runtime/inject.c:[0-9]*: source %s has no devices to share' <<<"$output"
	grep -q 'not the name of a grant (32 lower-case hex digits)$' <<<"$output"
	grep -q ': that needs a grant (annotation gpushare.k8s.io/grant)$' <<<"$output"
	grep -q ': stale source %s: it has %s as %c %d:%d, the host as %c %u:%u$' <<<"$output"
	grep -q ': it has fewer than three parts$' <<<"$output"
	grep -q ': it has more than three parts$' <<<"$output"
}

@test "a message that is new" {
	copy
	cat >>runtime/inject.c <<-'EOT'
		int x(struct gs_err *err)
		{
			return gs_err_set(err, 1, "new: %d (x, \"y\")", 7);
		}
	EOT
	lacks 'new: %d (x, "y")'
}

@test "a message that was changed" {
	copy
	sed -i 's/two entries for container/two entries name container/' runtime/request.c
	lacks 'two entries name container %s'
}

@test "a row that is gone, and words outside of the table" {
	copy
	sed -i '/^| `source N.P.C has no devices to share`/d' docs/pod-author.md
	lacks 'source %s has no devices to share'
	echo '`source N/P/C has no devices to share`' >>docs/pod-author.md
	lacks 'source %s has no devices to share'
}
