/* SPDX-License-Identifier: Apache-2.0 */
/* The node's picture for the cluster's view: publisher.h with the agent's picture, log, metrics. */
#ifndef GPUSHARE_AGENT_CLUSTER_VIEW_H
#define GPUSHARE_AGENT_CLUSTER_VIEW_H

#include "agent/agent.h"

/* Begins, if there is a Kubernetes and the settings don't say no. After pods_start(). */
void cluster_view_start(struct agent *agent);

/* Ends it; before pods_stop(). */
void cluster_view_stop(struct agent *agent);

/* Something changed: it is published soon. */
void cluster_view_changed(struct agent *agent);

#endif
