/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of containers' processes, at once: a container may die without a word to the registry,
 * and whoever looks at it only now and then would count it for so long.
 */
#ifndef GPUSHARE_AGENT_ENDS_H
#define GPUSHARE_AGENT_ENDS_H

#include "agent/agent.h"

/*
 * Watches the first process of each of the agent's containers that runs, and of no other any more.
 * When one ends, all is looked at anew (reconcile_soon). Where the kernel can't tell (before 5.3),
 * or too many are watched already, that container's end is seen by the next look, as before.
 */
void ends_watch(struct agent *agent);

/* Watches nobody any more; its memory goes once the loop has closed its handles. */
void ends_free(struct agent *agent);

#endif
