// SPDX-License-Identifier: Apache-2.0
/* How much can be sold once more. */
#include <stdlib.h>
#include <string.h>

#include "agent/oversale.h"

/* How much of a fall in use counts at each look: half of it after seven. */
#define FALL 0.1
/* A change by less than this part of what is told is none. */
#define NEWS 20
/* The least that a job is squeezed to: a hundredth of a CPU. */
#define LEAST_MILLI 10

static double smooth(struct oversale *sale, double others)
{
	if (!sale->begun || others > sale->others)
		sale->others = others;
	else
		sale->others += (others - sale->others) * FALL;
	return sale->others;
}

uint64_t oversale_sell(struct oversale *sale, const struct oversale_view *view, uint64_t step,
		       bool *ret_news)
{
	/* two readings are never of the same moment: jobs may seem to use more than all do */
	double others = view->used > view->jobs ? (double)(view->used - view->jobs) : 0;
	double left = (double)view->allocatable * view->ratio / 100 - (double)view->floor -
		      smooth(sale, others);
	uint64_t sell = left > 0 ? (uint64_t)left / step * step : 0;
	uint64_t differs = sell > sale->told ? sell - sale->told : sale->told - sell;

	*ret_news = !sale->begun || (differs && (!sell || !sale->told)) ||
		    differs * NEWS > sale->told;
	sale->begun = true;
	if (*ret_news)
		sale->told = sell;
	return sale->told;
}

uint64_t oversale_squeezed(uint64_t bought, uint64_t sold, uint64_t sale)
{
	uint64_t part;

	if (sale >= sold)
		return bought;
	part = (uint64_t)((double)bought * (double)sale / (double)sold);
	if (part < LEAST_MILLI)
		part = LEAST_MILLI;
	return part < bought ? part : bought;
}

uint64_t oversale_excess(const struct oversale_view *view)
{
	uint64_t ratio = view->ratio < 100 ? view->ratio : 100;
	uint64_t all = view->allocatable * ratio / 100;
	uint64_t limit = all > view->floor ? all - view->floor : 0;
	uint64_t excess = view->used > limit ? view->used - limit : 0;

	/* what others use beyond it no job can give back */
	return excess < view->jobs ? excess : view->jobs;
}

static int cheapest_first(const void *a, const void *b)
{
	const struct oversale_job *x = a, *y = b;
	bool x_brings = !x->going && x->memory_used, y_brings = !y->going && y->memory_used;

	if (x_brings != y_brings)
		return x_brings ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return strcmp(y->since, x->since);
}

size_t oversale_victims(struct oversale_job *jobs, size_t n, uint64_t excess)
{
	uint64_t back = 0;
	size_t victims = 0;

	for (size_t i = 0; i < n; i++)
		if (jobs[i].going)
			back += jobs[i].memory_used;
	if (n)
		qsort(jobs, n, sizeof(*jobs), cheapest_first);
	while (back < excess && victims < n && !jobs[victims].going && jobs[victims].memory_used)
		back += jobs[victims++].memory_used;
	return victims;
}
