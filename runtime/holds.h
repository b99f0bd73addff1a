/* SPDX-License-Identifier: Apache-2.0 */
/* Does a vendor slice hold a card that a file of the agent's describes? */
#ifndef GPUSHARE_RUNTIME_HOLDS_H
#define GPUSHARE_RUNTIME_HOLDS_H

#include <jansson.h>

#include "runtime/slice.h"

/*
 * @card is of lent/<card> or of cards.json (include/gpushare/agent.h, cards.h): its "vendor", its
 * own "nodes" and what to "select" it by. The slice holds it by the number of such a node, unless
 * the spec lists every card of the node since it is privileged; or by the value of a selector that
 * the next runtime @next acts on, which in plain runc is a word (NULL: numbers alone).
 * @all_is_each: "all" names each card. It stands in every CUDA image and in no device plugin's
 * answer, so under a CRI it makes nobody a holder.
 */
bool slice_holds_card(const struct slice *own, const json_t *card, const char *next,
		      bool all_is_each);

#endif
