/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a node's CPU and memory can be sold once more: a pure function. What reserved pods
 * asked for and leave unused goes to jobs that may be taken from.
 */
#ifndef GPUSHARE_AGENT_OVERSALE_H
#define GPUSHARE_AGENT_OVERSALE_H

#include <stdbool.h>
#include <stddef.h>
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

/* A job: a pod that lives on what was sold once more. Strings are borrowed. */
struct oversale_job {
	const char *uid;
	uint64_t cpu, memory; /* what it bought: thousandths of a CPU, MiB */
	uint64_t memory_used; /* MiB */
	int64_t priority; /* Kubernetes' */
	const char *since; /* its creationTimestamp: sorts as text */
	bool going; /* it is being deleted already */
	bool only_cpu, only_memory; /* all of its CPU, or memory, is bought */
};

/*
 * Under pressure CPU is squeezed first: how much of what it bought, @bought, a job may use where
 * @sale is left of the @sold that all of them bought. Never nothing, for then it could not even
 * end. 0: it bought none.
 */
uint64_t oversale_squeezed(uint64_t bought, uint64_t sold, uint64_t sale);

/*
 * Memory can't be squeezed: how much of it has to come back from jobs. What they may use is as in
 * oversale_sell(), but never more than the kubelet has to give away, whatever the ratio, and by
 * what all others use now, not smoothed.
 */
uint64_t oversale_excess(const struct oversale_view *view);

/*
 * Which jobs are evicted to get @excess MiB back: the cheapest first, those of the lowest priority
 * and among them the youngest, until what they use is enough; what those use that are going already
 * counts. One that uses nothing brings nothing. Sorts @jobs; returns how many, the first of them.
 */
size_t oversale_victims(struct oversale_job *jobs, size_t n, uint64_t excess);

#endif
