// SPDX-License-Identifier: Apache-2.0
/* Numbers for Prometheus: what is counted. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/metrics_family.h"
#include "common/cleanup.h"
#include "common/utf8.h"
#include "common/xalloc.h"

/* How many series a family may have: names from outside must not fill the memory. */
#define MAX_SERIES 1000

static const struct metric dropped_total = {
	.name = "gpushare_metrics_dropped_total",
	.help = "Updates that were lost because their family has too many series.",
	.type = METRIC_COUNTER,
};

static size_t n_labels(const struct metric *metric)
{
	size_t n = 0;

	while (n < GS_ARRAY_SIZE(metric->labels) && metric->labels[n])
		n++;
	return n;
}

static void free_series(struct family *family)
{
	for (size_t i = 0; i < family->n; i++) {
		free(family->series[i].labels);
		free(family->series[i].counts);
	}
	free(family->series);
	family->series = NULL;
	family->n = 0;
}

/* @labels is taken over. */
static struct series *add_series(struct family *family, char *labels)
{
	struct series *series;

	family->series = gs_grow(family->series, family->n, sizeof(*family->series));
	series = &family->series[family->n++];
	*series = (struct series){ .labels = labels };
	if (family->metric->type == METRIC_HISTOGRAM)
		series->counts = gs_calloc(family->metric->n_buckets + 1, sizeof(*series->counts));
	return series;
}

static struct family *find_family(struct metrics *metrics, const struct metric *metric)
{
	struct family *family;

	for (size_t i = 0; i < metrics->n; i++)
		if (metrics->families[i].metric == metric)
			return &metrics->families[i];
	metrics->families = gs_grow(metrics->families, metrics->n, sizeof(*metrics->families));
	family = &metrics->families[metrics->n++];
	*family = (struct family){ .metric = metric };
	/* Its only series: there from the beginning, so that rate() sees the step from 0 to 1. */
	if (n_labels(metric) == 0)
		(void)add_series(family, gs_strdup(""));
	return family;
}

struct metrics *metrics_new(void)
{
	struct metrics *metrics = gs_calloc(1, sizeof(*metrics));

	metrics_add(metrics, &dropped_total);
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->n; i++)
		free_series(&metrics->families[i]);
	free(metrics->families);
	free(metrics);
}

void metrics_add(struct metrics *metrics, const struct metric *metric)
{
	(void)find_family(metrics, metric);
}

/* The exposition is UTF-8, and one bad byte makes Prometheus throw the whole of it away. */
static void add_value(struct gs_buf *out, const char *value)
{
	const char *end = value + strlen(value);

	while (value < end) {
		size_t n = gs_utf8_len(value, end);

		if (n == 0)
			gs_buf_adds(out, "\xef\xbf\xbd");
		else if (*value == '\n')
			gs_buf_adds(out, "\\n");
		else if (*value == '\\' || *value == '"')
			gs_buf_addf(out, "\\%c", *value);
		else
			gs_buf_add(out, value, n);
		value += n ? n : 1;
	}
}

/* NULL: no room for another one; that is counted. */
static struct series *find_series(struct metrics *metrics, const struct metric *metric, va_list ap)
{
	struct family *family = find_family(metrics, metric);
	cleanup_buf struct gs_buf key = { 0 };

	for (size_t i = 0; i < n_labels(metric); i++) {
		const char *value = va_arg(ap, const char *);

		gs_buf_addf(&key, "%s%s=\"", i ? "," : "", metric->labels[i]);
		add_value(&key, value ? value : "");
		gs_buf_addc(&key, '"');
	}
	for (size_t i = 0; i < family->n; i++)
		if (strcmp(family->series[i].labels, key.data ? key.data : "") == 0)
			return &family->series[i];
	if (family->n >= MAX_SERIES) {
		metrics_inc(metrics, &dropped_total, 1);
		return NULL;
	}
	return add_series(family, gs_buf_steal(&key));
}

void metrics_inc(struct metrics *metrics, const struct metric *metric, double by, ...)
{
	struct series *series;
	va_list ap;

	assert(metric->type == METRIC_COUNTER);
	/* A counter that falls, or is no number, would look like a restart for ever. */
	if (!(by >= 0) || isinf(by))
		by = 0;
	va_start(ap, by);
	series = find_series(metrics, metric, ap);
	va_end(ap);
	if (series)
		series->value += by;
}

void metrics_set(struct metrics *metrics, const struct metric *metric, double value, ...)
{
	struct series *series;
	va_list ap;

	assert(metric->type != METRIC_HISTOGRAM);
	va_start(ap, value);
	series = find_series(metrics, metric, ap);
	va_end(ap);
	if (series)
		series->value = value;
}

void metrics_observe(struct metrics *metrics, const struct metric *metric, double value, ...)
{
	struct series *series;
	size_t bucket = 0;
	va_list ap;

	assert(metric->type == METRIC_HISTOGRAM);
	va_start(ap, value);
	series = find_series(metrics, metric, ap);
	va_end(ap);
	if (!series || !series->counts || isnan(value))
		return;
	while (bucket < metric->n_buckets && value > metric->buckets[bucket])
		bucket++;
	series->counts[bucket]++;
	series->value += value;
}

void metrics_clear(struct metrics *metrics, const struct metric *metric)
{
	free_series(find_family(metrics, metric));
}
