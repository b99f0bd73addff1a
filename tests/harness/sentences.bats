#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/lint/sentences.py finds a sentence that is told and stands in no page, and one in a page
# that nobody tells.

source "$BATS_TEST_DIRNAME/agree.bash"

setup() {
	export lint=sentences
	cd "$BATS_TEST_DIRNAME/../.."
	export dir=$BATS_TEST_TMPDIR
	cp -r --parents docs/*.md include/gpushare agent controller ctl/picture.c \
		"$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR"
}

@test "they agree" {
	agrees
}

@test "another sentence in the code" {
	sed -i 's/"it is in use"/"it is at work"/' agent/lend.c ctl/picture.c
	sed -i 's/"nobody holds it"/"it is free"/' ctl/picture.c
	sed -i 's/"other pods share it"/"others share it"/' agent/policy.c
	sed -i 's/a critical pod can.t be/no critical pod may be/' controller/spot.c
	sed -i 's/is in quarantine: its holder/has its quarantine: its holder/' ctl/picture.c
	sed -i 's/a card to be shared is held on node/it is held on node/' controller/shadow_plan.c
	finds '"Why a card is not lent" lacks "it is at work"'
	finds '"Why a card is not lent": no code says `it is in use`'
	finds '"Why a card is not lent" lacks "others share it"'
	finds '"Why a card is not lent" lacks "it is free"'
	finds '"Why a pod is refused" lacks "no critical pod may be a spot pod"'
	finds '"What is wrong" lacks "holding %s has its quarantine:'
	finds '"Share pods and shadow pods" lacks "it is held on node %s%s"'
}

@test "an Event" {
	sed -i 's/"GpuReclaimed"/"GpuTaken"/' agent/pods.c
	finds "Event GpuTaken is in the code, and not there"
	finds "Event GpuReclaimed is in no code"
}
