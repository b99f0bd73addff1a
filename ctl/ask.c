// SPDX-License-Identifier: Apache-2.0
/* Asking the agent for something. */
#include <errno.h>
#include <unistd.h>

#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "ctl/ask.h"
#include "gpushare/agent.h"

int ctl_ask(const struct gs_config *config, const char *op, json_t *more, uint64_t timeout_ms,
	    json_t **ret, struct gs_err *err)
{
	cleanup_json json_t *request = more ? more : json_object();
	struct gs_err why = { 0 };
	int r;

	(void)json_object_set_new(request, "v", json_integer(GS_AGENT_VERSION));
	(void)json_object_set_new(request, "op", json_string(op));
	r = gs_agent_ask(config->run_dir, request, gs_boottime_ms() + timeout_ms, ret, &why);
	if (r == 0)
		return 0;
	if (r != -ENOENT)
		return gs_err_set(err, why.code, "%s", why.msg);
	/* Nobody else gets past the folder, or to the socket: that says nothing of the agent. */
	if (geteuid() != 0)
		return gs_err_set(err, EACCES, "%s", why.msg);
	return gs_err_set(err, ENOENT, "%s (is gpushared running? systemctl status gpushared)",
			  why.msg);
}
