/* SPDX-License-Identifier: Apache-2.0 */
/* What metrics.c keeps and metrics_text.c writes; nobody else's. */
#ifndef GPUSHARE_COMMON_METRICS_FAMILY_H
#define GPUSHARE_COMMON_METRICS_FAMILY_H

#include <stdint.h>

#include "common/metrics.h"

struct series {
	char *labels; /* as they stand between the braces, escaped: the key too */
	double value; /* a histogram's sum */
	uint64_t *counts; /* a histogram's, one a bucket and the rest; not summed up */
};

struct family {
	const struct metric *metric;
	struct series *series;
	size_t n;
};

struct metrics {
	struct family *families;
	size_t n;
};

#endif
