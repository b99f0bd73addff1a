/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of the agent over its socket. */
#ifndef GPUSHARE_AGENT_OPS_H
#define GPUSHARE_AGENT_OPS_H

#include "agent/server.h"

/*
 * ops_person.c: the ops that gpusharectl makes (status, lend, withdraw, grant), as ops_serve().
 * False: @op is none of them.
 */
bool ops_person(struct agent *agent, struct waiting *waiting, const char *op, const json_t *request,
		bool first);

/*
 * claim: a grant that the kubelet was told of is written, if it is not yet and the kubelet says
 * that this container has devices of ours. ops_claim.c.
 */
void ops_claim(struct agent *agent, struct waiting *waiting, const json_t *request, bool first);

/*
 * confirm: did the kubelet give these cards to that container's pod? Yes as well where it does not
 * tell, and for what the settings exempt. ops_confirm.c.
 */
void ops_confirm(struct agent *agent, struct waiting *waiting, const json_t *request, bool first);

#endif
