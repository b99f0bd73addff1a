/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's socket: who is connected, and who waits for an answer. */
#ifndef GPUSHARE_AGENT_SERVER_H
#define GPUSHARE_AGENT_SERVER_H

#include <jansson.h>

#include "agent/agent.h"

/* A request that waits for something; owned by the server. */
struct waiting;

/*
 * Answers a request: {"v":1,"ok":true} with the members of @more (may be NULL; the reference is
 * taken), or with @err what is wrong. @waiting is gone after that.
 */
void server_answer(struct waiting *waiting, json_t *more, const struct gs_err *err);

/*
 * Carries out @request, or says what it waits for. ops.c. Called once when the request comes, which
 * is @first, and again at each server_changed() until it answers.
 */
void ops_serve(struct agent *agent, struct waiting *waiting, const json_t *request, bool first);

/* Can @request be carried out yet? Else the server asks again at each server_changed(). ops.c. */
bool ops_ready(const struct agent *agent, const json_t *request);

#endif
