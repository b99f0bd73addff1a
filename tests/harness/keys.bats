#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/lint/keys.py finds a key, an annotation, a label or a resource that code and docs do not
# agree about.

source "$BATS_TEST_DIRNAME/agree.bash"

setup() {
	export lint=keys
	cd "$BATS_TEST_DIRNAME/../.."
	dir=$BATS_TEST_TMPDIR/tree
	mkdir "$dir"
	cp -r --parents README.md docs common include packaging ctl controller "$dir"
}

@test "they agree" {
	agrees
}

@test "a key of the configuration that the page lacks, and one that the code lacks" {
	sed -i 's/"create_wait_ms", GS/"create_wait", GS/' "$dir/common/config.c"
	sed -i 's/"lend_shared", GS/"lend_some", GS/; s/"kubelet_dir", GS/"kubelet", GS/
		s/"account_cards", GS/"cards", GS/' "$dir/common/sections.c"
	finds "gpushare-config.5: no item create_wait in KEYS"
	finds "gpushare-config.5: create_wait_ms is no key of the code"
	finds "gpushare-config.5: no item lend_some in THE AGENT"
	finds "gpushare-config.5: lend_shared is no key of the code"
	finds "gpushare-config.5: device_plugins in THE AGENT does not tell of kubelet"
	finds "gpushare-config.5: kubelet_dir is no key of the code"
	finds "gpushare-config.5: shadow in THE CONTROLLER does not tell of cards"
	finds "gpushare-config.5: shadow.account_cards is no key of the code"
}

@test "another type" {
	sed -i 's/^\.It Li hold_max : length of time/.It Li hold_max : number/' \
		"$dir/docs/man/gpushare-config.5"
	finds 'hold_max is "number, at least 1s", in the code DURATION'
}

@test "a key in a page's example" {
	sed -i 's/"cross_pod": "annotation"/"crosspod": "annotation"/' "$dir/docs/operator.md"
	finds "docs/operator.md: crosspod is no key of the configuration or catalogue"
	sed -i 's/{"next": \["\/usr\/bin\/crun"\]}/{"then": ["\/usr\/bin\/crun"]}/' \
		"$dir/docs/operator.md"
	finds "docs/operator.md: then is no key"
}

@test "a key of the catalogue" {
	sed -i 's/"skip_lines", GS/"skip", GS/' "$dir/common/catalogue_check.c"
	finds "gpushare-vendors.5: skip is missing"
	finds "gpushare-vendors.5: skip_lines is no key of the code"
}

@test "an annotation, a resource, a label" {
	sed -i 's/PREFIX "lend-after"/PREFIX "lend-when"/' "$dir/include/gpushare/annotations.h"
	sed -i 's/"gpushare\/vmem"/"gpushare\/memory"/' "$dir/include/gpushare/resources.h"
	sed -i 's/^| `gpushare.k8s.io\/agent`/| `gpushare.k8s.io\/node`/' "$dir/docs/annotations.md"
	finds "docs/annotations.md: annotation gpushare.k8s.io/lend-when is missing"
	finds "docs/annotations.md: annotation gpushare.k8s.io/lend-after is in no code"
	finds "README.md: gpushare.k8s.io/lend-after is no annotation and no label"
	finds "docs/annotations.md: resource gpushare/memory is missing"
	finds "docs/annotations.md: resource gpushare/vmem is in no code"
	finds "docs/annotations.md: label gpushare.k8s.io/node is in no manifest"
	finds "packaging/k8s/base/agent.yaml: gpushare.k8s.io/agent is no annotation and no label"
}
