/* SPDX-License-Identifier: Apache-2.0 */
/* Writes run_dir/cards.json, which include/gpushare/cards.h describes. */
#ifndef GPUSHARE_AGENT_CARDS_JSON_H
#define GPUSHARE_AGENT_CARDS_JSON_H

#include "agent/card.h"
#include "common/err.h"

/*
 * Replaces the file by one that tells of @cards, whole or not at all; does nothing where it says so
 * already. What inventory's `changed` is for, and the agent's start.
 */
int inventory_cards_json(const struct cards *cards, const char *run_dir, struct gs_err *err);

/* The text of the file. */
void cards_json_text(const struct cards *cards, struct gs_buf *out);

#endif
