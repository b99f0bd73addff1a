/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel module and the inventories tell, and what it means for the agent. */
#ifndef GPUSHARE_AGENT_EVENTS_H
#define GPUSHARE_AGENT_EVENTS_H

#include "agent/agent.h"

/* Start listening to the kernel module; looking at cards. As kernel_new() and inventory_new(). */
int events_kernel(struct agent *agent, struct gs_err *err);
int events_inventory(struct agent *agent, struct gs_err *err);

#endif
