#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The list of public reports names tests that are there, and tests/lint/cases.py would tell if not.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	cases=$PWD/tests/lint/cases.py
	page=tests/runtime/cases/README.md
}

# A copy of the names of what it reads, and of what stands in there, with the page to be broken.
copy() {
	local tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree/tests/runtime"
	cp -r tests/runtime/cases "$tree/tests/runtime/"
	ln -s "$PWD"/tests/runtime/*.bats "$tree/tests/runtime/"
	for dir in unit vm harness fuzz node k8s ctl packages; do
		ln -s "$PWD/tests/$dir" "$tree/tests/$dir"
	done
	cd "$tree" || return 1
}

# broken SED-COMMAND WORDS: with that done to the page, it tells WORDS.
broken() {
	sed -i "$1" $page
	run "$cases"
	echo "$output"
	((status == 1)) && [[ $output == *"$2"* ]]
}

@test "every test that the list of reports names is there" {
	"$cases"
}

@test "a case that is not there is told" {
	copy
	broken 's/`pause-container\*`/`pause-box*`/' 'no case pause-box*'
}

@test "a file that is not there is told" {
	copy
	broken 's,`vm/agent-wedged`,`vm/agent-gone`,' 'no tests/vm/agent-gone'
}

@test "a test's name that is not there is told" {
	copy
	broken 's/a_lost_card_takes_no_other_along/a_lost_card_is_lost/' \
		'unit/test_inventory_fail.c has no a_lost_card_is_lost'
}

@test "words that are not there are told" {
	copy
	broken 's/"a monitor calls all the time"/"a monitor calls at times"/' \
		'suite/agent-strangers.sh has no a monitor calls at times'
}

@test "a page that is built otherwise is no page without mistakes" {
	copy
	broken 's/^| /+ /' 'only 0 rows'
}
