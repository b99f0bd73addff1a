/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory it is that a card's processes use. */
#ifndef GPUSHARE_AGENT_USAGE_H
#define GPUSHARE_AGENT_USAGE_H

#include "agent/agent.h"

/*
 * Adds the bytes of the card's memory that each container uses to @sums, which has a number for
 * each of agent->containers. Of what is nobody's nothing is added. False: the vendor does not
 * tell of processes, or not what memory they use, and nothing was added.
 */
bool usage_add(const struct agent *agent, const struct load *load, uint64_t *sums);

#endif
