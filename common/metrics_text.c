// SPDX-License-Identifier: Apache-2.0
/* Numbers for Prometheus: the text, format 0.0.4. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/metrics_family.h"

/* Room for a double or a uint64_t as text. */
#define NUMBER 32

/* The shortest text that reads back as the same number; whole numbers as such. */
static const char *number(char buf[NUMBER], double value)
{
	if (isnan(value))
		return "NaN";
	if (isinf(value))
		return value > 0 ? "+Inf" : "-Inf";
	if (fabs(value) < 1e15 && value == trunc(value)) {
		/* + 0.0: "-0" is no number that anybody wants to see */
		(void)snprintf(buf, NUMBER, "%.0f", value + 0.0);
		return buf;
	}
	for (int digits = 1; digits <= 17; digits++) {
		(void)snprintf(buf, NUMBER, "%.*g", digits, value);
		if (strtod(buf, NULL) == value)
			break;
	}
	return buf;
}

static void add_sample(struct gs_buf *out, const struct metric *metric, const char *suffix,
		       const char *labels, const char *le, const char *value)
{
	gs_buf_addf(out, "%s%s", metric->name, suffix);
	if (*labels || le) {
		gs_buf_addf(out, "{%s", labels);
		if (le)
			gs_buf_addf(out, "%sle=\"%s\"", *labels ? "," : "", le);
		gs_buf_addc(out, '}');
	}
	gs_buf_addf(out, " %s\n", value);
}

static void add_histogram(struct gs_buf *out, const struct metric *metric,
			  const struct series *series)
{
	char bound[NUMBER], value[NUMBER];
	uint64_t count = 0;

	for (size_t i = 0; i <= metric->n_buckets; i++) {
		count += series->counts[i];
		(void)snprintf(value, sizeof(value), "%" PRIu64, count);
		add_sample(out, metric, "_bucket", series->labels,
			   number(bound, i < metric->n_buckets ? metric->buckets[i] : INFINITY),
			   value);
	}
	add_sample(out, metric, "_sum", series->labels, NULL, number(bound, series->value));
	add_sample(out, metric, "_count", series->labels, NULL, value);
}

static void add_help(struct gs_buf *out, const char *help)
{
	for (; *help; help++) {
		if (*help == '\\')
			gs_buf_adds(out, "\\\\");
		else if (*help == '\n')
			gs_buf_adds(out, "\\n");
		else
			gs_buf_addc(out, *help);
	}
}

void metrics_text(const struct metrics *metrics, struct gs_buf *out)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	char value[NUMBER];

	for (size_t i = 0; i < metrics->n; i++) {
		const struct family *family = &metrics->families[i];
		const struct metric *metric = family->metric;

		gs_buf_addf(out, "# HELP %s ", metric->name);
		add_help(out, metric->help);
		gs_buf_addf(out, "\n# TYPE %s %s\n", metric->name, types[metric->type]);
		for (size_t j = 0; j < family->n; j++) {
			const struct series *series = &family->series[j];

			if (metric->type == METRIC_HISTOGRAM)
				add_histogram(out, metric, series);
			else
				add_sample(out, metric, "", series->labels, NULL,
					   number(value, series->value));
		}
	}
}
