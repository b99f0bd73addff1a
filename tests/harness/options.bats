#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/lint/options.py finds an option, a verb or a check of doctor that code, --help, manual page
# and completion do not agree about.

source "$BATS_TEST_DIRNAME/agree.bash"

setup() {
	export lint=options
	cd "$BATS_TEST_DIRNAME/../.."
	dir=$BATS_TEST_TMPDIR/tree
	mkdir "$dir"
	cp -r --parents docs/man packaging/completion ctl runtime {agent,controller}/main.c \
		common/program.c "$dir"
}

@test "they agree" {
	agrees
}

@test "an option that has another name in the code" {
	sed -i 's/{ "timeout", required/{ "wait", required/' "$dir/ctl/steer.c"
	sed -i 's/{ "all", no_argument/{ "every", no_argument/' "$dir/runtime/dryrun.c"
	sed -i 's/":aho:"/":aqho:"/' "$dir/ctl/containers.c"
	finds "gpusharectl reclaim --help: reclaim lacks --wait"
	finds "gpusharectl reclaim --help: reclaim has --timeout, which is in no code"
	finds "gpusharectl.8, its section: reclaim lacks --wait"
	finds "gpusharectl.8, SYNOPSIS: reclaim has --timeout, which is in no code"
	finds "gpusharectl spec --help: spec lacks --every"
	finds "gpusharectl.8, its section: containers lacks -q"
}

@test "a verb without its section, and a help without its example" {
	sed -i 's/^\.Ss reclaim/.Ss recall/' "$dir/docs/man/gpusharectl.8"
	sed -i '/"Example: gpusharectl lend/d' "$dir/ctl/steer.c"
	finds "DESCRIPTION: the list of verbs lacks reclaim"
	finds "DESCRIPTION: the list of verbs has recall"
	finds "gpusharectl lend --help: no example"
}

@test "completion of what is not there" {
	sed -i 's/"containerd", required/"version", required/' "$dir/ctl/setup.c"
	finds "packaging/completion/gpusharectl.bash: setup has no --containerd"
	finds "packaging/completion/_gpusharectl: setup has no --containerd"
}

@test "a check of doctor, an option of a service" {
	sed -i 's/{ "dev-char", doctor/{ "links", doctor/' "$dir/ctl/doctor.c"
	sed -i 's/{ "config", required/{ "file", required/' "$dir/common/program.c"
	finds "section doctor: the list of checks lacks links"
	finds "section doctor: the list of checks has dev-char"
	finds "docs/man/gpushared.8: --file of common/program.c is missing"
}
