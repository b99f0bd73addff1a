/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does an idle card's user make stores that nobody sees? Where the operator wants to know
 * (sample_period), his mappings are taken away every now and then, as when the card is lent: the
 * next store is a touch, and ends the idle time. What is not revocable is left alone.
 */
#ifndef GPUSHARE_AGENT_SAMPLE_H
#define GPUSHARE_AGENT_SAMPLE_H

#include "agent/agent.h"

/* Takes the mappings away, if the holding is idle, may be lent, and it is time for that. */
void sample_idle(struct agent *agent, struct hold *hold, const struct plan_holding *plan);

/* Has nobody made a store for a whole period? True also where that is not to be known. */
bool sample_proves(struct agent *agent, const struct hold *hold, const struct plan_holding *plan);

#endif
