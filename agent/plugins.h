/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's device plugins, share-gpu and spot-gpu, at the kubelet of this node: started when one
 * is there, registered with each that comes, and told of whatever changes.
 */
#ifndef GPUSHARE_AGENT_PLUGINS_H
#define GPUSHARE_AGENT_PLUGINS_H

#include "agent/agent.h"
#include "common/metrics.h"
#include "agent/rpc.h"

/*
 * Waits for a kubelet, unless the settings say that there is none. Nothing fails for one that is
 * not there: gRPC itself is started with the first.
 */
void plugins_start(struct agent *agent);

/* Ends gRPC; the loop's handles are closed by others. Then, after the loop: frees the rest. */
void plugins_stop(struct agent *agent);
void plugins_free(struct agent *agent);

/* Something changed: what is offered may be otherwise, and is published soon. */
void plugins_changed(struct agent *agent);

/* Did the kubelet give that card to a container, by its last word? */
bool plugins_gave_away(struct agent *agent, const struct card *card);

/* Is there a kubelet, whether it knows us yet or not? */
bool plugins_have_kubelet(const struct agent *agent);

/* gRPC; NULL: no kubelet was there yet. */
struct rpc *plugins_rpc(struct agent *agent);

/* What is offered now, for metrics: sets @devices by "resource" and "health". */
void plugins_observe(struct agent *agent, const struct metric *devices);

#endif
