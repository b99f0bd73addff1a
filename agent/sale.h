/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's sale of CPU and memory: seller.h with its pods, log and metrics. */
#ifndef GPUSHARE_AGENT_SALE_H
#define GPUSHARE_AGENT_SALE_H

#include "agent/agent.h"
#include "common/metrics.h"

/* Begins, if the settings say so and there is a Kubernetes. After pods_start(). */
void sale_start(struct agent *agent);

/* Ends it; before pods_stop(). */
void sale_stop(struct agent *agent);

/* Sets the two, by "what": sale, others, jobs. Cores and bytes. */
void sale_observe(struct agent *agent, const struct metric *cpu, const struct metric *memory);

#endif
