// SPDX-License-Identifier: Apache-2.0
/* How much can be sold once more. */
#include "agent/oversale.h"

/* How much of a fall in use counts at each look: half of it after seven. */
#define FALL 0.1
/* A change by less than this part of what is told is none. */
#define NEWS 20

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
