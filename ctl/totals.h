/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: how many cards each pod and each tenant has. */
#ifndef GPUSHARE_CTL_TOTALS_H
#define GPUSHARE_CTL_TOTALS_H

#include <jansson.h>

#include "ctl/view.h"

/* What a pod, or all pods of a tenant in a partition, have. Texts are the view's or totals' own. */
struct total {
	const char *pod; /* NULL: a tenant's total */
	const char *node; /* of a pod; NULL: the one that we are on */
	const char *tenant; /* its user_id; where it has none, its namespace; NULL: neither */
	const char *partition; /* NULL: none */
	size_t pods;
	size_t held, lent; /* cards, and how many of these are lent at the moment */
	size_t shared, borrowed;
	uint64_t memory; /* bytes that its processes use on all of them */
	bool memory_known;
};

struct totals {
	struct total *pods, *tenants; /* sorted by name */
	size_t n_pods, n_tenants;
	struct gs_strv names; /* whose texts some of these are */
};

/* Counts; @view must outlive @ret, which the caller frees. */
void totals_of(const struct view *view, struct totals *ret);
void totals_free(struct totals *totals);
#define cleanup_totals __attribute__((cleanup(totals_free)))

/* Prints two tables. */
void totals_print(const struct totals *totals, bool cluster);

/* {"pods":[...],"tenants":[...]}, null where something is not known. */
json_t *totals_json(const struct totals *totals);

#endif
