/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl inspect: which cards are meant, and each of them in full. */
#ifndef GPUSHARE_CTL_INSPECT_CARD_H
#define GPUSHARE_CTL_INSPECT_CARD_H

#include <jansson.h>

#include "ctl/view.h"

struct inspect_card {
	const struct view_node *node;
	const struct pic_card *card;
};

/*
 * The cards of the view that @name is about, NULL: all; a card's, a holding's or a container's
 * whole name, or else the beginning of a container's id. The caller frees.
 */
struct inspect_card *inspect_choose(const struct view *view, const char *name, size_t *ret_n);

/* All about the card, a line each, to stdout. */
void inspect_print_card(const struct inspect_card *of);

/* The same as JSON; for a card of a cluster with "node", "stale" and "age_ms". */
json_t *inspect_json(const struct inspect_card *of);

/* The accounts of its holders, with commas between; the caller frees. */
char *inspect_tenants(const struct inspect_card *of);

#endif
