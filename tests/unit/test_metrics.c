// SPDX-License-Identifier: Apache-2.0
/* The agent's metrics: what is counted, and the text that Prometheus gets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/metrics.h"

static const double bounds[] = { 0.001, 0.01, 0.25, 5 };
static const struct metric lends = {
	.name = "gpushare_lends_total",
	.help = "Cards lent.",
	.type = METRIC_COUNTER,
};
static const struct metric evictions = {
	.name = "gpushare_evictions_total",
	.help = "Borrowers that had to go,\nby outcome: a\\b.",
	.type = METRIC_COUNTER,
	.labels = { "outcome" },
};
static const struct metric memory = {
	.name = "gpushare_card_memory_used_bytes",
	.help = "Memory in use.",
	.type = METRIC_GAUGE,
	.labels = { "card", "namespace", "pod", "container" },
};
static const struct metric hold = {
	.name = "gpushare_hold_seconds",
	.help = "How long a call was held.",
	.type = METRIC_HISTOGRAM,
	.labels = { "vendor" },
	.buckets = bounds,
	.n_buckets = 4,
};

#define DROPPED                                                                              \
	"# HELP gpushare_metrics_dropped_total Updates that were lost because their family " \
	"has too many series.\n"                                                             \
	"# TYPE gpushare_metrics_dropped_total counter\n"                                    \
	"gpushare_metrics_dropped_total "

static int setup(void **state)
{
	*state = metrics_new();
	return 0;
}

static int teardown(void **state)
{
	metrics_free(*state);
	return 0;
}

/* Does a program that reads stdin like this text? -1: it isn't there. */
static int liked_by(const char *command, const struct gs_buf *text)
{
	FILE *f = popen(command, "w"); /* NOLINT(cert-env33-c): a constant command */
	int status;

	assert_non_null(f);
	assert_int_equal(fwrite(text->data, 1, text->len, f), text->len);
	status = pclose(f);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The text as it should be; and nobody finds a mistake in it. */
static void text_is(const struct metrics *metrics, const char *want)
{
	cleanup_buf struct gs_buf out = { 0 };

	metrics_text(metrics, &out);
	if (want)
		assert_string_equal(out.data, want);
	assert_int_equal(liked_by("tests/lib/promcheck.py", &out), 0);
	if (access("/usr/bin/promtool", X_OK) == 0)
		assert_int_equal(liked_by("/usr/bin/promtool check metrics", &out), 0);
}

static void has_line(const struct metrics *metrics, const char *line)
{
	cleanup_buf struct gs_buf out = { 0 }, want = { 0 };

	metrics_text(metrics, &out);
	gs_buf_addf(&want, "\n%s\n", line);
	if (!strstr(out.data, want.data))
		fail_msg("no line %s in\n%s", line, out.data);
}

static void counts(void **state)
{
	struct metrics *m = *state;

	metrics_add(m, &lends);
	metrics_add(m, &evictions);
	text_is(m, DROPPED
		"0\n"
		"# HELP gpushare_lends_total Cards lent.\n"
		"# TYPE gpushare_lends_total counter\n"
		"gpushare_lends_total 0\n"
		"# HELP gpushare_evictions_total Borrowers that had to go,\\nby outcome: a\\\\b.\n"
		"# TYPE gpushare_evictions_total counter\n");
	metrics_inc(m, &lends, 1);
	metrics_inc(m, &lends, 2.5);
	metrics_inc(m, &lends, -1); /* a counter never falls */
	metrics_inc(m, &lends, NAN);
	metrics_inc(m, &lends, INFINITY);
	metrics_inc(m, &evictions, 1, "killed");
	metrics_inc(m, &evictions, 1, "gone");
	metrics_inc(m, &evictions, 1, "killed");
	metrics_add(m, &evictions); /* forgets nothing */
	text_is(m, DROPPED
		"0\n"
		"# HELP gpushare_lends_total Cards lent.\n"
		"# TYPE gpushare_lends_total counter\n"
		"gpushare_lends_total 3.5\n"
		"# HELP gpushare_evictions_total Borrowers that had to go,\\nby outcome: a\\\\b.\n"
		"# TYPE gpushare_evictions_total counter\n"
		"gpushare_evictions_total{outcome=\"killed\"} 2\n"
		"gpushare_evictions_total{outcome=\"gone\"} 1\n");
}

/* Somebody else counts. */
static void counters_that_are_set(void **state)
{
	struct metrics *m = *state;

	metrics_set(m, &evictions, 7, "killed");
	metrics_set(m, &evictions, 9, "killed");
	has_line(m, "gpushare_evictions_total{outcome=\"killed\"} 9");
	metrics_clear(m, &evictions);
	metrics_set(m, &evictions, 1, "gone");
	text_is(m, DROPPED
		"0\n"
		"# HELP gpushare_evictions_total Borrowers that had to go,\\nby outcome: a\\\\b.\n"
		"# TYPE gpushare_evictions_total counter\n"
		"gpushare_evictions_total{outcome=\"gone\"} 1\n");
}

static void gauges_and_four_labels(void **state)
{
	struct metrics *m = *state;

	metrics_set(m, &memory, 81559.0 * 1048576, "nvidia-0", "ml", "train-0", "main");
	metrics_set(m, &memory, 7, "nvidia-1", "ml", "train-0", "main");
	metrics_set(m, &memory, 8, "nvidia-1", "ml", "train-0", "main");
	has_line(m, "gpushare_card_memory_used_bytes{card=\"nvidia-0\",namespace=\"ml\","
		    "pod=\"train-0\",container=\"main\"} 85520809984");
	has_line(m, "gpushare_card_memory_used_bytes{card=\"nvidia-1\",namespace=\"ml\","
		    "pod=\"train-0\",container=\"main\"} 8");
	text_is(m, NULL);
	metrics_clear(m, &memory);
	metrics_set(m, &memory, 9, "nvidia-2", "", "", "");
	text_is(m,
		DROPPED "0\n"
			"# HELP gpushare_card_memory_used_bytes Memory in use.\n"
			"# TYPE gpushare_card_memory_used_bytes gauge\n"
			"gpushare_card_memory_used_bytes{card=\"nvidia-2\",namespace=\"\",pod=\"\","
			"container=\"\"} 9\n");
}

static void numbers(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ -0.0, "0" },
		{ -12, "-12" },
		{ 0.1, "0.1" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 999999999999999, "999999999999999" },
		{ 1e300, "1e+300" },
		{ 5e-324, "5e-324" },
		{ INFINITY, "+Inf" },
		{ -INFINITY, "-Inf" },
		{ NAN, "NaN" },
	};
	static const struct metric ratio = { .name = "gpushare_card_busy_ratio",
					     .help = "Load.",
					     .type = METRIC_GAUGE };
	struct metrics *m = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup_buf struct gs_buf line = { 0 };

		metrics_set(m, &ratio, cases[i].value);
		gs_buf_addf(&line, "gpushare_card_busy_ratio %s", cases[i].text);
		has_line(m, line.data);
		text_is(m, NULL);
	}
}

static void histograms(void **state)
{
	struct metrics *m = *state;

	metrics_add(m, &hold);
	metrics_observe(m, &hold, 0.001, "nvidia"); /* a bound belongs to its bucket */
	metrics_observe(m, &hold, 0.0011, "nvidia");
	metrics_observe(m, &hold, 0.2, "nvidia");
	metrics_observe(m, &hold, 0.2, "nvidia");
	metrics_observe(m, &hold, 30, "nvidia");
	metrics_observe(m, &hold, NAN, "nvidia");
	metrics_observe(m, &hold, 0, "amd");
	text_is(m, DROPPED "0\n"
			   "# HELP gpushare_hold_seconds How long a call was held.\n"
			   "# TYPE gpushare_hold_seconds histogram\n"
			   "gpushare_hold_seconds_bucket{vendor=\"nvidia\",le=\"0.001\"} 1\n"
			   "gpushare_hold_seconds_bucket{vendor=\"nvidia\",le=\"0.01\"} 2\n"
			   "gpushare_hold_seconds_bucket{vendor=\"nvidia\",le=\"0.25\"} 4\n"
			   "gpushare_hold_seconds_bucket{vendor=\"nvidia\",le=\"5\"} 4\n"
			   "gpushare_hold_seconds_bucket{vendor=\"nvidia\",le=\"+Inf\"} 5\n"
			   "gpushare_hold_seconds_sum{vendor=\"nvidia\"} 30.4021\n"
			   "gpushare_hold_seconds_count{vendor=\"nvidia\"} 5\n"
			   "gpushare_hold_seconds_bucket{vendor=\"amd\",le=\"0.001\"} 1\n"
			   "gpushare_hold_seconds_bucket{vendor=\"amd\",le=\"0.01\"} 1\n"
			   "gpushare_hold_seconds_bucket{vendor=\"amd\",le=\"0.25\"} 1\n"
			   "gpushare_hold_seconds_bucket{vendor=\"amd\",le=\"5\"} 1\n"
			   "gpushare_hold_seconds_bucket{vendor=\"amd\",le=\"+Inf\"} 1\n"
			   "gpushare_hold_seconds_sum{vendor=\"amd\"} 0\n"
			   "gpushare_hold_seconds_count{vendor=\"amd\"} 1\n");
}

static void a_histogram_without_labels_is_there_at_once(void **state)
{
	static const double one = 1;
	static const struct metric release = { .name = "gpushare_release_seconds",
					       .help = "Return to release.",
					       .type = METRIC_HISTOGRAM,
					       .buckets = &one,
					       .n_buckets = 1 };
	struct metrics *m = *state;

	metrics_add(m, &release);
	has_line(m, "gpushare_release_seconds_bucket{le=\"1\"} 0");
	has_line(m, "gpushare_release_seconds_bucket{le=\"+Inf\"} 0");
	has_line(m, "gpushare_release_seconds_sum 0");
	has_line(m, "gpushare_release_seconds_count 0");
	text_is(m, NULL);
}

static void values_from_outside(void **state)
{
	struct metrics *m = *state;

	metrics_inc(m, &evictions, 1, "a\"b\\c\nd");
	has_line(m, "gpushare_evictions_total{outcome=\"a\\\"b\\\\c\\nd\"} 1");
	metrics_inc(m, &evictions, 1, "\xff\xc3\xbc{},= \t");
	has_line(m, "gpushare_evictions_total{outcome=\"\xef\xbf\xbd\xc3\xbc{},= \t\"} 1");
	/* no value can look like another label */
	metrics_set(m, &memory, 1, "a", "b\",pod=\"c", "d", "e");
	metrics_set(m, &memory, 2, "a", "b", "c\",pod=\"d", "e");
	has_line(m, "gpushare_card_memory_used_bytes{card=\"a\",namespace=\"b\\\",pod=\\\"c\","
		    "pod=\"d\",container=\"e\"} 1");
	text_is(m, NULL);
}

static void too_many_series(void **state)
{
	struct metrics *m = *state;
	char name[16];

	for (int i = 0; i < 1003; i++) {
		(void)snprintf(name, sizeof(name), "card%d", i);
		metrics_inc(m, &evictions, 1, name);
	}
	metrics_inc(m, &evictions, 1, "card999"); /* one that is there goes on */
	has_line(m, "gpushare_evictions_total{outcome=\"card999\"} 2");
	has_line(m, "gpushare_metrics_dropped_total 3");
	text_is(m, NULL);
}

static void none(void **state)
{
	metrics_free(NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(counts),
		TEST(counters_that_are_set),
		TEST(gauges_and_four_labels),
		TEST(numbers),
		TEST(histograms),
		TEST(a_histogram_without_labels_is_there_at_once),
		TEST(values_from_outside),
		TEST(too_many_series),
		TEST(none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
