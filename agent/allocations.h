/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the kubelet who has what, and what follows from the answer: which cards nobody holds, who
 * is no holder, whose pod has to go.
 */
#ifndef GPUSHARE_AGENT_ALLOCATIONS_H
#define GPUSHARE_AGENT_ALLOCATIONS_H

#include "agent/agent.h"
#include "agent/allocated.h"

/* Asks from now on, every ten seconds. */
void allocations_start(struct agent *agent);

/* Frees what it keeps, when the loop has closed its handles. */
void allocations_free(struct agent *agent);

/* Asks now, or again where a question is on its way that may be older than what happened. */
void allocations_ask(struct agent *agent);

/* A grant was made for a container that the kubelet tells of soon: asks who it is. */
void allocations_granted(struct agent *agent);

/* The same if a second has passed since the last question. */
void allocations_look(struct agent *agent);

/* Is a question on its way? server_changed() tells when that is over. */
bool allocations_asking(const struct agent *agent);

/*
 * The last answers; NULL: there were none. @ret_err (may be NULL) is why the last question had no
 * answer; code 0: it had one, or there was no question.
 */
const struct allocated *allocations_answer(const struct agent *agent, struct gs_err *ret_err);
const struct allocated *allocations_known(const struct agent *agent);

/* What the kubelet says of the agent's containers: allocated_confirm(). */
void allocations_confirm(struct agent *agent);

/*
 * Adds the names of cards that the kubelet has to give, gave to nobody, and that no container says
 * it holds. One that was so before stays so until the kubelet gives it away: nobody's word is as
 * good as its word, whether it restarts or the vendor's plugin does.
 */
void allocations_free_cards(struct agent *agent, struct gs_strv *ret);

/* 1: the kubelet answered the last question. */
bool allocations_up(const struct agent *agent);

#endif
