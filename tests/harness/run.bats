#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/run itself: whatever goes wrong in a suite must be counted and shown, never swallowed.

setup() {
	cd "$BATS_TEST_DIRNAME/../.."
	export SUITES=$BATS_TEST_TMPDIR/suites
	export SKIPS_ALLOWED=$BATS_TEST_TMPDIR/skips TEST_LOGS=$BATS_TEST_TMPDIR/logs
	unset CI SUM_FILE
	: >"$SKIPS_ALLOWED"
}

# suite NAME SECONDS: adds a suite whose program is the script on stdin.
suite() {
	local file=$BATS_TEST_TMPDIR/$1.sh
	cat >"$file"
	echo "$1 $2 - bash $file" >>"$SUITES"
}

last_line() {
	[[ ${lines[${#lines[@]} - 1]} == "$1" ]] || {
		printf '%s\n' "$output"
		return 1
	}
}

@test "passes are counted over several suites, with one closing line" {
	suite a 5 <<<'echo 1..2; echo ok 1 - x; echo ok 2 - y'
	suite b 5 <<<'echo 1..1; echo ok 1'
	run tests/run a b
	[ "$status" -eq 0 ]
	last_line "3 passed, 0 failed, 0 skipped"
	[ "$(grep -c 'passed, .* failed, ' <<<"$output")" -eq 1 ]
	[ ! -e "$TEST_LOGS" ]
}

# Each of a and b sees the other's file only while both run.
@test "suites joined by + run side by side, others one after the other" {
	local meet='touch $0.here; for i in 1 2 3 4 5 6 7 8; do sleep 0.25
		[ ! -e ${0%/*}/$1.here ] || { echo 1..1; echo ok 1; exit; }; done
		echo 1..1; echo not ok 1'
	local name other
	for name in a:b b:a; do
		other=${name#*:} name=${name%:*}
		echo "$meet" >"$BATS_TEST_TMPDIR/$name"
		echo "$name 5/2 - bash $BATS_TEST_TMPDIR/$name $other" >>"$SUITES"
	done
	run tests/run a+b
	[ "$status" -eq 0 ]
	last_line "2 passed, 0 failed, 0 skipped"
	rm "$BATS_TEST_TMPDIR"/*.here
	run tests/run a b
	[ "$status" -eq 1 ]
	grep -q "^a .* 0 passed   1 failed" <<<"$output"
	run tests/run a+nobody
	[ "$status" -eq 1 ]
	grep -q "nobody: no such suite" <<<"$output"
}

@test "a failing test is shown with its diagnostics and its log is kept" {
	suite a 5 <<<'echo 1..2; echo not ok 1 - bad one; echo "# want 1, got 2"; echo ok 2
		echo "on stderr" >&2; exit 1'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 0 skipped"
	grep -q 'FAIL bad one' <<<"$output"
	grep -q 'want 1, got 2' <<<"$output"
	grep -q 'on stderr' <<<"$output"
	grep -q 'want 1, got 2' "$TEST_LOGS/a.log"
}

@test "fewer results than planned fail" {
	suite a 5 <<<'echo 1..3; echo ok 1; echo ok 2'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "2 passed, 1 failed, 0 skipped"
	grep -q 'planned 3 tests, saw 2' <<<"$output"
}

@test "more results than planned fail" {
	suite a 5 <<<'echo 1..1; echo ok 1; echo ok 2'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "2 passed, 1 failed, 0 skipped"
}

@test "a missing plan fails" {
	suite a 5 <<<'echo ok 1'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 0 skipped"
	grep -q 'no plan' <<<"$output"
}

@test "no output at all fails" {
	suite a 5 <<<'true'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "a plan of zero tests fails" {
	suite a 5 <<<'echo 1..0'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 0 skipped"
}

@test "a crash after the last test fails" {
	suite a 5 <<<'echo 1..1; echo ok 1; kill -SEGV $$'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 0 skipped"
	grep -q 'exit status 139' <<<"$output"
}

@test "a suite that does not end is stopped and fails" {
	suite a 1 <<<'echo 1..1; echo ok 1; sleep 60'
	run timeout 30 tests/run a
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 0 skipped"
	grep -q 'not finished after 1 s' <<<"$output"
}

@test "Bail out! fails" {
	suite a 5 <<<'echo 1..1; echo ok 1; echo "Bail out! no more"'
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "1 passed, 1 failed, 0 skipped"
}

@test "an unknown suite and a glob without files fail" {
	echo "a 5 $BATS_TEST_TMPDIR/no-such-* bash {}" >>"$SUITES"
	run tests/run a nobody
	[ "$status" -eq 1 ]
	last_line "0 passed, 2 failed, 0 skipped"
}

@test "a suite with a glob runs once for each file" {
	for i in 1 2; do
		echo "echo 1..1; echo ok 1 \$0" >"$BATS_TEST_TMPDIR/each $i"
	done
	echo "a 5 $BATS_TEST_TMPDIR/each* bash {}" >>"$SUITES"
	run tests/run a
	[ "$status" -eq 0 ]
	last_line "2 passed, 0 failed, 0 skipped"
	grep -q '^a/each 2 ' <<<"$output"
}

@test "skips are counted and listed with their reasons" {
	suite a 5 <<<'echo 1..2; echo "ok 1 cgroups # skip no cgroup2 here"; echo ok 2'
	suite b 5 <<<'echo "1..0 # SKIP no docker"'
	run tests/run a b
	[ "$status" -eq 0 ]
	last_line "1 passed, 0 failed, 2 skipped"
	grep -q 'a: cgroups *: no cgroup2 here' <<<"$output"
	grep -q 'b: the whole file: no docker' <<<"$output"
}

@test "in CI a skip fails unless its reason is on the list" {
	suite a 5 <<<'echo 1..2; echo "ok 1 x # skip no card"; echo "ok 2 y # skip no kvm (qemu)"'
	printf '# why\nno kvm*\n' >"$SKIPS_ALLOWED"
	CI=true run tests/run a
	[ "$status" -eq 1 ]
	last_line "0 passed, 1 failed, 1 skipped"
	grep -q 'skipped in CI: no card' <<<"$output"
}

@test "cmocka's TAP: several groups, failures and skips" {
	suite a 5 <<'EOF'
cat <<'TAP'
1..3
ok 1 - first
no dirent here
not ok 2 # SKIP second
not ok 3 - third
# 0x1 != 0x2
# not ok - group
1..1
ok 1 - fourth
TAP
exit 1
EOF
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "2 passed, 1 failed, 1 skipped"
	grep -q 'FAIL third' <<<"$output"
	grep -q 'a: second: no dirent here' <<<"$output"
}

@test "SUM_FILE takes the closing line" {
	suite a 5 <<<'echo 1..1; echo ok 1'
	SUM_FILE=$BATS_TEST_TMPDIR/sum run tests/run a
	[ "$status" -eq 0 ]
	[ "$(cat "$BATS_TEST_TMPDIR/sum")" = "1 passed, 0 failed, 0 skipped" ]
	[[ $output != *"1 passed, 0 failed"* ]]
}

@test "suites whose names begin with san- get the sanitizer build" {
	suite a 5 <<<'echo 1..1; [[ $B == build ]] && echo ok 1'
	suite san-a 5 <<<'echo 1..1; [[ $B == build/san && -n $ASAN_OPTIONS ]] && echo ok 1'
	run tests/run san-a a
	[ "$status" -eq 0 ]
	last_line "2 passed, 0 failed, 0 skipped"
}

@test "files of one line side by side: all are counted, and one that fails" {
	mkdir "$BATS_TEST_TMPDIR/d"
	# each waits for the other: one after the other, neither would end
	for i in 1 2; do
		cat >"$BATS_TEST_TMPDIR/d/$i" <<-END
			: >"$BATS_TEST_TMPDIR/here$i"
			until [ -e "$BATS_TEST_TMPDIR/here$((3 - i))" ]; do sleep 0.1; done
			echo 1..2; echo ok 1 - a; echo "ok 2 - b # SKIP for want of $i"
		END
	done
	cat >"$BATS_TEST_TMPDIR/d/3" <<<'echo 1..1; echo not ok 1 - third; exit 1'
	echo "a 20/2 $BATS_TEST_TMPDIR/d/* bash {}" >"$SUITES"
	run tests/run a
	[ "$status" -eq 1 ]
	last_line "2 passed, 1 failed, 2 skipped"
	grep -q 'FAIL third' <<<"$output"
	grep -q 'for want of 1' <<<"$output"
	grep -q 'for want of 2' <<<"$output"
	grep -q 'not ok 1 - third' "$TEST_LOGS/a_3.log"
}
