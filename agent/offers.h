/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kubelet is offered: cards of shadow pods in parts, and cards whose holders are away or
 * that nobody holds. Worked out from the agent's picture, for gRPC's thread to answer from.
 */
#ifndef GPUSHARE_AGENT_OFFERS_H
#define GPUSHARE_AGENT_OFFERS_H

#include "agent/agent.h"
#include "agent/plugin.h"

/* A snapshot with what its functions need. */
struct offers {
	struct plugin_snapshot base; /* first */
	struct plugin_device *devices;
	bool *is_free; /* of each: nobody holds its card */
	size_t n;
};

/*
 * settings.share devices for each card that a shadow pod's container holds alone (one that holds
 * several is no source of one of them). The caller owns it until it is published.
 */
struct offers *offers_share(struct agent *agent);

/* A device for each card; healthy while its holding is lent, and the kubelet gave it to nobody. */
struct offers *offers_spot(struct agent *agent);

/* Do they tell the kubelet the same? */
bool offers_same(const struct offers *a, const struct offers *b);

/* The container by which share pods get the card; NULL: no shadow pod's. */
const struct container *offers_shadow(const struct agent *agent, const char *card);

/* For plugin_ops.prefer: cards that nobody holds before others, for nobody's return ends that. */
int offers_prefer_spot(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
		       struct gs_strv *ret, void *arg, struct gs_err *err);

/* For plugin_ops.prefer: different cards. */
int offers_prefer_share(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
			struct gs_strv *ret, void *arg, struct gs_err *err);

#endif
