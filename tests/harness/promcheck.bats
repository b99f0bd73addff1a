#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tests/lib/promcheck.py finds what is wrong with a Prometheus exposition.

setup() {
	check=$BATS_TEST_DIRNAME/../lib/promcheck.py
	head=$'# HELP gpushare_a_total A.\n# TYPE gpushare_a_total counter\n'
	gauge=$'# HELP gpushare_g G.\n# TYPE gpushare_g gauge\n'
	hist=$'# HELP gpushare_h_seconds H.\n# TYPE gpushare_h_seconds histogram\n'
}

# finds TEXT EXPOSITION: the check says TEXT.
finds() {
	run "$check" < <(printf '%s' "$2")
	printf '%s\n' "$output"
	[ "$status" -eq 1 ]
	grep -qF -- "$1" <<<"$output"
}

well() {
	run "$check" < <(printf '%s' "$1")
	printf '%s\n' "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "a good one passes" {
	well "${head}gpushare_a_total{b=\"x\\\"\\\\\\n},{\",c=\"\"} 3
${gauge}gpushare_g -1.5e-3
${hist}gpushare_h_seconds_bucket{le=\"1\"} 1
gpushare_h_seconds_bucket{le=\"+Inf\"} 2
gpushare_h_seconds_sum 4.5
gpushare_h_seconds_count 2
"
}

@test "names" {
	finds "does not begin with gpushare_" $'# HELP x X.\n# TYPE x gauge\nx 1\n'
	finds "ends in _total" $'# HELP gpushare_a A.\n# TYPE gpushare_a counter\ngpushare_a 1\n'
	finds "ends in _total" "${head/counter/gauge}gpushare_a_total 1"$'\n'
	finds "milliseconds, not seconds" "${gauge//_g/_g_milliseconds}"
	finds "the unit bytes does not stand last" "${gauge//_g/_bytes_used}"
	finds "not a name" "${gauge//_g/_gA}gpushare_gA 1"$'\n'
	finds "what histograms and counters add" "${gauge//_g/_g_count}gpushare_g_count 1"$'\n'
}

@test "families" {
	finds "no HELP" $'# TYPE gpushare_g gauge\ngpushare_g 1\n'
	finds "no HELP or no TYPE" $'# HELP gpushare_g G.\n'
	finds "in two places" "${gauge}gpushare_g 1
${head}gpushare_a_total 1
${gauge}"
	finds "not below its own" "${gauge}gpushare_a_total 1"$'\n'
	finds "empty HELP" $'# HELP gpushare_g \n# TYPE gpushare_g gauge\n'
}

@test "samples" {
	finds "twice" "${gauge}gpushare_g{a=\"1\",b=\"2\"} 1
gpushare_g{b=\"2\",a=\"1\"} 1
"
	finds "label a twice" "${gauge}gpushare_g{a=\"1\",a=\"2\"} 1"$'\n'
	finds "labels differ" "${gauge}gpushare_g{a=\"1\"} 1"$'\n'"gpushare_g{b=\"1\"} 1"$'\n'
	finds "not a sample" "${gauge}gpushare_g{a=\"1\"}"$'\n'
	finds "labels" "${gauge}gpushare_g{a=\"1\",} 1"$'\n'
	finds "labels" "${gauge}gpushare_g{a=\"\\t\"} 1"$'\n'
	finds "no number" "${gauge}gpushare_g nan"$'\n'
	finds "counts -1" "${head}gpushare_a_total -1"$'\n'
	finds "no newline" "${gauge}gpushare_g 1"
	finds "not UTF-8" "${gauge}"$'gpushare_g{a="\xff"} 1\n'
	finds "nothing" $'\n'
}

@test "histograms" {
	finds "no +Inf bucket" "${hist}gpushare_h_seconds_bucket{le=\"1\"} 1
gpushare_h_seconds_sum 1
gpushare_h_seconds_count 1
"
	finds "not cumulative" "${hist}gpushare_h_seconds_bucket{le=\"1\"} 2
gpushare_h_seconds_bucket{le=\"+Inf\"} 1
gpushare_h_seconds_sum 1
gpushare_h_seconds_count 1
"
	finds "+Inf is not _count" "${hist}gpushare_h_seconds_bucket{le=\"+Inf\"} 1
gpushare_h_seconds_sum 1
gpushare_h_seconds_count 2
"
	finds "bounds do not rise" "${hist}gpushare_h_seconds_bucket{le=\"+Inf\"} 1
gpushare_h_seconds_bucket{le=\"1\"} 1
gpushare_h_seconds_sum 1
gpushare_h_seconds_count 1
"
	finds "no _sum or no _count" "${hist}gpushare_h_seconds_bucket{le=\"+Inf\"} 1"$'\n'
}
