/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls the agent may make; for sandbox.c. */
#ifndef GPUSHARE_AGENT_SANDBOX_RULES_H
#define GPUSHARE_AGENT_SANDBOX_RULES_H

#include <seccomp.h>

#include "common/err.h"

/* Adds them to a filter that does something else with every other call. */
int sandbox_rules(scmp_filter_ctx filter, struct gs_err *err);

#endif
