#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/lint/metrics.py finds a metric that code, page, rules and dashboards do not agree about.

source "$BATS_TEST_DIRNAME/agree.bash"

setup() {
	export lint=metrics
	cd "$BATS_TEST_DIRNAME/../.."
	dir=$BATS_TEST_TMPDIR/tree
	mkdir -p "$dir"/{docs,packaging}
	cp -r agent common controller "$dir"
	cp -r docs/metrics.md docs/man "$dir/docs"
	cp -r packaging/{prometheus,grafana} "$dir/packaging"
}

@test "they agree" {
	agrees
}

@test "a metric that the page lacks, and one that the code lacks" {
	sed -i '/^COUNTER(lends,/s/lends/loans/' "$dir/agent/observe.c"
	finds "docs/metrics.md: gpushare_loans_total is missing"
	finds "docs/metrics.md: gpushare_lends_total is in no code"
	finds "packaging/grafana/node.json: gpushare_lends_total is in no code"
	finds "gpushare_loans_total: in no rule and on no dashboard"
}

@test "what all names of a program begin with" {
	sed -i 's/^#define PREFIX "gpushare_controller_"/#define PREFIX "gpushare_chief_"/' \
		"$dir/controller/figures.c"
	finds "docs/metrics.md: gpushare_chief_leader is missing"
	finds "packaging/prometheus/gpushare.rules.yml: gpushare_controller_leader is in no code"
}

@test "a metric that the manual page lacks" {
	sed -i '/^\.It Li borrowers/d; s/, borrowers ,/,/' "$dir/docs/man/gpushared.8"
	sed -i '/^\.It Li leader/s/leader , //' "$dir/docs/man/gpushare-controller.8"
	finds "docs/man/gpushared.8: gpushare_borrowers is missing"
	finds "docs/man/gpushare-controller.8: gpushare_controller_leader is missing"
}

@test "another type, other labels" {
	sed -i 's/^\(| `gpushare_borrowers` |\) gauge/\1 counter/
		s/^\(| `gpushare_card_strangers` | gauge |\) `card`/\1 `pod`/' \
		"$dir/docs/metrics.md"
	finds "gpushare_borrowers is ('counter', [])"
	finds "gpushare_card_strangers is ('gauge', ['pod'])"
}

@test "an alert without its row" {
	sed -i '/^| `GpushareUnknown`/d' "$dir/docs/metrics.md"
	finds "alert GpushareUnknown is None"
}
