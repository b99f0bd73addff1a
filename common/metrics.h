/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for Prometheus: families with labels, and their text (exposition format 0.0.4). */
#ifndef GPUSHARE_COMMON_METRICS_H
#define GPUSHARE_COMMON_METRICS_H

#include <stddef.h>

#include "common/buf.h"

struct metrics;

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* A family. Static: the pointer is its key. */
struct metric {
	const char *name; /* gpushare_..., base units, _total for a counter */
	const char *help;
	enum metric_type type;
	const char *labels[4]; /* names, NULL behind the last */
	const double *buckets; /* a histogram's upper bounds, ascending */
	size_t n_buckets;
};

/* A set of families, empty but for gpushare_metrics_dropped_total; and its end (NULL is none). */
struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/* Shows a family even while it has no series. */
void metrics_add(struct metrics *metrics, const struct metric *metric);

/*
 * The values stand in the order of metric->labels, as many as it has. A family keeps at most 1000
 * series; what comes beyond is counted in gpushare_metrics_dropped_total. A counter is set where
 * somebody else does the counting; it may begin anew.
 */
void metrics_inc(struct metrics *metrics, const struct metric *metric, double by, ...);
void metrics_set(struct metrics *metrics, const struct metric *metric, double value, ...);
void metrics_observe(struct metrics *metrics, const struct metric *metric, double value, ...);

/* Forgets every series of a family, to be set anew. */
void metrics_clear(struct metrics *metrics, const struct metric *metric);

/* Appends the exposition. */
void metrics_text(const struct metrics *metrics, struct gs_buf *out);

#endif
