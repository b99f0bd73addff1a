#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands, files and links of README.md, docs/ and --help are right; and docs.py finds those
# that are not.

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export INSTALLED=$BATS_FILE_TMPDIR/installed
	# Not `all`: other flags than those of the build under test would build it anew.
	make -s -o all B="${B:-build}" install DESTDIR="$INSTALLED" \
		>"$BATS_FILE_TMPDIR/make" 2>&1 || {
		cat "$BATS_FILE_TMPDIR/make"
		return 1
	}
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.."
	dir=$BATS_TEST_TMPDIR/tree
	mkdir "$dir"
	cp -r --parents README.md docs ctl runtime/dryrun.c "$dir"
}

check() {
	run /usr/bin/python3 tests/ctl/docs.py "$dir"
	printf '%s\n' "$output"
}

# finds TEXT...: the check fails, and says each.
finds() {
	local text
	check
	[ "$status" -eq 1 ]
	for text; do
		grep -qF -- "$text" <<<"$output"
	done
}

# block LINE...: a page with such commands.
block() {
	printf '%s\n' '# A page' '' '```sh' "$@" '```' >"$dir/docs/page.md"
}

@test "what people are told to type, as it stands" {
	check
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "commands that are not there" {
	block 'sudo make demos && gpusharectl setup --dryrun   # a comment' \
		'gpusharectl inspect -o yml | frobnicate' 'NAME=1 make kmod KERNELDIR=/x' \
		'packaging/dep.sh build' 'kubectl apply -k packaging/k8s/bse' \
		'grant=$(gpusharectl grants --list)' 'sudo kubectl gpushare look'
	finds 'docs/page.md:3: there is no target demos' \
		'gpusharectl setup --dryrun: gpusharectl: no option --dryrun' \
		'gpusharectl inspect -o yml: gpusharectl: -o takes json' \
		'docs/page.md:3: frobnicate: in ELSEWHERE' 'make knows no KERNELDIR=' \
		'packaging/dep.sh is no program' 'there is no packaging/k8s/bse' \
		'gpusharectl: no verb grants' 'gpusharectl: no verb look'
}

@test "no valid shell, a block without its kind, a test that is not there" {
	block 'if true; then'
	printf '%s\n' '```' 'sudo make check' '```' '<!-- test: nobody -->' '```sh' 'true' '```' \
		>>"$dir/docs/page.md"
	finds 'docs/page.md:3: no valid commands' \
		'docs/page.md:6: a block of commands is marked sh' \
		'docs/page.md:10: no test runs the block "nobody"'
}

@test "in a text, in a manual page, in --help" {
	echo 'Say `gpusharectl reclaim --now CARD`, or `make checks`.' >>"$dir/docs/faq.md"
	sed -i 's/^gpusharectl setup --undo containerd/gpusharectl setup --redo containerd/' \
		"$dir/docs/man/gpusharectl.8"
	sed -i 's/"Example: gpusharectl inspect /&--all /' "$dir/ctl/inspect.c"
	finds 'docs/faq.md: gpusharectl reclaim --now CARD' \
		'docs/faq.md: there is no target checks' \
		'docs/man/gpusharectl.8: gpusharectl setup --redo' \
		'ctl/inspect.c: gpusharectl inspect --all'
}

@test "files that are not installed, links that lead nowhere" {
	printf '%s\n' '# A page' '`/usr/libexec/gpushare/gpushare-x` [a](no.md) [b](#not-here)' \
		'[c](faq.md#sharing) [d](#a-page) [e](faq.md#shearing)' >"$dir/docs/page.md"
	sed -i 's|/usr/sbin/gpushared|/usr/bin/gpushared|' "$dir/docs/operator.md"
	finds 'make install installs no /usr/libexec/gpushare/gpushare-x' 'there is no docs/no.md' \
		'docs/page.md has no heading for #not-here' \
		'docs/faq.md has no heading for #shearing' \
		'docs/operator.md: make install installs no /usr/bin/gpushared'
	[ "$(grep -c 'docs/page.md' <<<"$output")" -eq 4 ]
}
