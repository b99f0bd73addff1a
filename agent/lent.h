/* SPDX-License-Identifier: Apache-2.0 */
/* Files that tell the runtime of a card (include/gpushare/agent.h): lent/ and shared/. */
#ifndef GPUSHARE_AGENT_LENT_H
#define GPUSHARE_AGENT_LENT_H

#include <jansson.h>

#include "agent/agent.h"

/*
 * Writes run_dir/@folder/<card>: what tells the runtime whether a container has that card, and the
 * members of @more (may be NULL; the reference is taken). -EINVAL: a name that is not UTF-8.
 */
int card_file_write(struct agent *agent, const char *folder, const struct card *card, json_t *more,
		    struct gs_err *err);

/* Takes it away; that it can't be is told in the log. */
void card_file_remove(struct agent *agent, const char *folder, const char *card);

/* Adds the cards that have one there, of the agent before us too. */
void card_file_names(const struct agent *agent, const char *folder, struct gs_strv *ret);

#endif
