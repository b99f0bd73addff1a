#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime in front of a real crun, called as containerd's shim calls it.

source "$BATS_TEST_DIRNAME/oci-stories.bash"

setup_file() {
	oci_stories_start crun
}

setup() {
	skip_if_lacking
	oci_config
}

teardown_file() {
	node_stop
}

teardown() {
	oci_remove main main2 other nobody alone plain dind
}

@test "crun: a container can't open another's card without us" {
	story_without_us
}

@test "crun: a target opens its source's card and no other, in silence" {
	story_copy
}

@test "crun: what is not annotated is handed on byte for byte" {
	story_untouched
}

@test "crun: two sources of two makers in one container" {
	story_two_sources
}

@test "crun: the card stays open after an update of limits" {
	story_update
}

@test "crun: own rules in any order leave the source's card open and no other" {
	story_rule_order
}

@test "crun: a privileged target is fenced off the neighbour's card" {
	story_privileged
}

@test "crun: a missing source is named in the log and on stderr, and a retry works" {
	story_refused
}

@test "crun: an error in a log of text form" {
	story_text_log
}

@test "crun: exec, pause, resume, ps, kill, delete go through" {
	story_verbs
}

@test "crun: run in the foreground" {
	story_run_foreground
}

@test "crun: a restarted source is told from the dead one of its name" {
	story_restarted_source
}

@test "crun: a source that is older than gpushare" {
	story_older_than_us
}

@test "crun: version, help and plain containers do without a config" {
	story_pass_through
}

@test "crun: records go with their containers" {
	story_registry
}
