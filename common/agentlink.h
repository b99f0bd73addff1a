/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the agent over its socket (include/gpushare/agent.h has the messages). */
#ifndef GPUSHARE_COMMON_AGENTLINK_H
#define GPUSHARE_COMMON_AGENTLINK_H

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

/*
 * Sends @request (borrowed) to run_dir/agent.sock and waits for the answer until CLOCK_BOOTTIME
 * @deadline_ms. The socket must be root's own, and its peer root (SO_PEERCRED).
 * 0: the agent said ok; @ret (may be NULL) gets the answer, which the caller decrefs.
 * -ENOENT: no agent (no socket, nobody listens, or somebody else's). -ETIMEDOUT: no answer in
 * time. -EPROTO: an answer that is none or is too long, or it hung up. -EREMOTEIO: it refused; the
 * message is its own sentence. -EINVAL: the request is larger than GS_AGENT_PACKET_MAX.
 */
int gs_agent_ask(const char *run_dir, json_t *request, uint64_t deadline_ms, json_t **ret,
		 struct gs_err *err);

#endif
