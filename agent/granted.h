/* SPDX-License-Identifier: Apache-2.0 */
/* Grants that the agent makes: for a person, and for whom the kubelet gave a device of ours. */
#ifndef GPUSHARE_AGENT_GRANTED_H
#define GPUSHARE_AGENT_GRANTED_H

#include "agent/agent.h"
#include "common/grant.h"

/*
 * Adds a lent card to a spot grant. With its holder as the source if @asked (NULL: anything) has
 * all cards of the holding, which come with it then; else the card alone, out of the inventory.
 * -EBUSY: it is not lent; -ENOENT: its holder has no name.
 */
int granted_add_spot(struct agent *agent, const struct card *card, const struct gs_strv *asked,
		     struct gs_grant *grant, struct gs_err *err);

/* Makes it a spot grant with a fresh lease. */
int granted_lease(struct gs_grant *grant, struct gs_err *err);

/*
 * Writes the grant @name for @devices of @resource (GS_RESOURCE_SHARE, GS_RESOURCE_SPOT), by what
 * is true now. @to (NULL or unset: whoever comes first): for that container alone. -EEXIST: it is
 * written already; -EBUSY: a card is not to be had any more; else as gs_grant_create_as().
 */
int granted_write(struct agent *agent, const char *name, const char *resource,
		  const struct gs_strv *devices, const struct gs_identity *to, struct gs_err *err);

#endif
