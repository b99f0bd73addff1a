#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpushare-runtime in front of runc on cgroup version 2, where device rules are BPF programs that a
# runtime makes of the rules in config.json. (crun 1.8 needs CAP_SYS_RESOURCE for that.)

source "$BATS_TEST_DIRNAME/oci-stories.bash"

setup_file() {
	oci_stories_start runc cgroup2
}

setup() {
	skip_if_lacking
	oci_config
}

teardown() {
	oci_remove main main2 other nobody alone plain dind
}

teardown_file() {
	node_stop
}

@test "cgroup2: the node has no other" {
	equals "$(node_exec stat -f -c %T /sys/fs/cgroup)" cgroup2fs
}

@test "cgroup2: a container can't open another's card without us" {
	story_without_us
}

@test "cgroup2: a target opens its source's card and no other, in silence" {
	story_copy
}

@test "cgroup2: what is not annotated is handed on byte for byte" {
	story_untouched
}

@test "cgroup2: two sources of two makers in one container" {
	story_two_sources
}

@test "cgroup2: the card stays open after an update of limits" {
	# an empty set of limits: version 2 has none of the controllers that version 1 has here
	story_update --resources=<(echo '{}')
}

@test "cgroup2: own rules in any order leave the source's card open and no other" {
	story_rule_order
}

@test "cgroup2: a privileged target is fenced off the neighbour's card" {
	story_privileged
}

@test "cgroup2: a restarted source is told from the dead one of its name" {
	story_restarted_source
}

@test "cgroup2: a source that is older than gpushare" {
	story_older_than_us
}
