/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: asking the agent for something. */
#ifndef GPUSHARE_CTL_ASK_H
#define GPUSHARE_CTL_ASK_H

#include <jansson.h>
#include <stdint.h>

#include "common/config.h"
#include "common/err.h"

/* How long the agent has for what it can answer at once. */
#define CTL_ASK_MS 10000

/*
 * Asks for @op (include/gpushare/agent.h) with the members of @more (may be NULL; the reference is
 * taken) and waits at most @timeout_ms. @ret (may be NULL) gets the answer, which the caller
 * decrefs. Errors as gs_agent_ask(), with a message for people: where there is no agent it names
 * the socket and what to do.
 */
int ctl_ask(const struct gs_config *config, const char *op, json_t *more, uint64_t timeout_ms,
	    json_t **ret, struct gs_err *err);

#endif
