/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a node's CPU and memory can be sold once more: a pure function. What reserved pods
 * asked for and leave unused goes to jobs that may be taken from.
 */
#ifndef GPUSHARE_AGENT_OVERSALE_H
#define GPUSHARE_AGENT_OVERSALE_H

#include <stdbool.h>
#include <stdint.h>

/* One resource at one moment; thousandths of a CPU, or MiB. */
struct oversale_view {
	uint64_t allocatable; /* as the kubelet tells */
	unsigned int ratio; /* percent of that which may be used at all */
	uint64_t floor; /* of that, never sold */
	uint64_t used; /* of the whole node, the system's own included; */
	uint64_t jobs; /* by whom it was sold to */
};

/* What is remembered of a resource between two moments. */
struct oversale {
	bool begun;
	double others; /* use by everybody else, smoothed */
	uint64_t told; /* what is for sale, as told last */
};

/*
 * What is for sale now: allocatable * ratio - floor - what all others use, smoothed: more of that
 * counts at once, less by and by. In steps of @step, so that little changes nothing. *ret_news: it
 * differs from what was told last by so much that it is worth telling: a twentieth, or nothing at
 * all now or then.
 */
uint64_t oversale_sell(struct oversale *sale, const struct oversale_view *view, uint64_t step,
		       bool *ret_news);

#endif
