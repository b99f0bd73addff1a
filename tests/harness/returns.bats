#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/returns.md says of each vendor what the catalogue says, and tests/lint/returns.py would tell
# if it did not.

setup() {
	returns=$BATS_TEST_DIRNAME/../lint/returns.py
	cd "$BATS_TEST_DIRNAME/../.."
	cp -r --parents vendors docs/returns.md "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR"
}

# differs LINE: the page lacks that line, and has one in its place.
differs() {
	run "$returns"
	printf '%s\n' "$output"
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 2 ]
	grep -qxF -- "docs/returns.md lacks the line: $1" <<<"$output"
	grep -q '^docs/returns.md has a line that the catalogue does not make: ' <<<"$output"
}

@test "the page has every vendor" {
	run "$returns"
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ "$(grep -cxFf <("$returns" --table) docs/returns.md)" -eq \
		$(($(ls vendors/*.json | wc -l) + 2)) ]
}

@test "a vendor that becomes revocable, or is it no more" {
	sed -i 's|"revocable": \[\]|"revocable": ["/dev/iluvatar[0-9]*"]|' vendors/iluvatar.json
	differs '| Iluvatar CoreX | yes | held | held | held |'
	cp "$BATS_TEST_DIRNAME/../../vendors/iluvatar.json" vendors
	sed -i 's|"revocable": \[.*\]|"revocable": []|' vendors/nvidia.json
	differs '| NVIDIA | yes | held | seen, if its library tells | seen |'
}

@test "a load that is told otherwise, or by nobody" {
	sed -i 's|"source": "fdinfo"|"source": "none"|' vendors/intel.json
	sed -i '/"load": {/,$d' vendors/iluvatar.json
	sed -i '$s/,$/}/' vendors/iluvatar.json
	run "$returns" --table
	[ "$status" -eq 0 ]
	grep -qxF '| Iluvatar CoreX | by hand | held | not seen | not seen |' <<<"$output"
	grep -qxF '| Intel | yes | held | not seen | seen |' <<<"$output"
}

@test "a row that was changed, added or lost, or no table" {
	sed -i 's/^| AMD | yes | held | not seen |/| AMD | yes | held | held |/' docs/returns.md
	differs '| AMD | yes | held | not seen | seen |'
	cp "$BATS_TEST_DIRNAME/../../docs/returns.md" docs
	sed -i 's/^| NVIDIA .*/&\n| Acme | yes | held | held | held |/' docs/returns.md
	run "$returns"
	[ "$status" -eq 1 ]
	local line='| Acme | yes | held | held | held |'
	[ "$output" = "docs/returns.md has a line that the catalogue does not make: $line" ]
	rm vendors/nvidia.json
	run "$returns"
	[ "$status" -eq 1 ]
	grep -q 'does not make: | NVIDIA ' <<<"$output"
	: >docs/returns.md
	run "$returns"
	[ "$status" -eq 1 ]
}
