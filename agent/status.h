/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's picture of its node: what "status" answers, and what the cluster's view shows. */
#ifndef GPUSHARE_AGENT_STATUS_H
#define GPUSHARE_AGENT_STATUS_H

#include <jansson.h>

#include "agent/agent.h"

/*
 * Cards, holdings, borrowers and the kernel module, as include/gpushare/agent.h describes them:
 * counts and states are read anew. No grant's name is in it. The caller decrefs.
 */
json_t *status_json(struct agent *agent);

#endif
