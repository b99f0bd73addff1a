// SPDX-License-Identifier: Apache-2.0
/*
 * Grants that were promised to the kubelet and are not there: the agent was ended between its
 * answer and the writing, or the disk was full. What the container was given the kubelet knows, so
 * the grant is made anew under its name, for that container alone.
 */
#include <errno.h>
#include <string.h>

#include "agent/allocations.h"
#include "agent/granted.h"
#include "agent/observe.h"
#include "agent/ops.h"
#include "agent/plugins.h"
#include "agent/pods.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/log.h"
#include "gpushare/resources.h"

static bool is_there(const struct agent *agent, const char *name)
{
	cleanup_grant struct gs_grant grant = { 0 };

	return gs_grant_read(agent->config.lib_dir, name, &grant, NULL) == 0;
}

/* Writes it by the kubelet's word. */
static int make_good(struct agent *agent, const char *name, const struct gs_identity *to,
		     struct gs_err *err)
{
	struct gs_err why = { 0 };
	const struct allocated *allocated = allocations_answer(agent, &why);
	const struct gs_strv *share, *spot;
	const char *resource;
	char buf[10];
	int r;

	if (!allocated || why.code)
		return gs_err_set(err, EAGAIN, "the kubelet does not tell who holds what%s%s",
				  why.code ? ": " : "", why.msg);
	share = allocated_ids(allocated, to, GS_RESOURCE_SHARE);
	spot = allocated_ids(allocated, to, GS_RESOURCE_SPOT);
	if (!share == !spot)
		return gs_err_set(err, ENOENT, "no such grant %s, and the kubelet gave %s",
				  gs_grant_short(name, buf),
				  share ? "devices of both kinds" :
					  "this container no device of gpushare");
	resource = share ? GS_RESOURCE_SHARE : GS_RESOURCE_SPOT;
	r = granted_write(agent, name, resource, share ? share : spot, to, err);
	if (r == -EEXIST)
		return 0;
	if (r == 0) {
		observe_allocation(agent, resource, "claimed");
		gs_log_fields(GS_LOG_INFO, "a promised grant is claimed", "grant",
			      gs_grant_short(name, buf), "resource", resource, NULL);
	}
	return r;
}

void ops_claim(struct agent *agent, struct waiting *waiting, const json_t *request, bool first)
{
	const char *name = json_string_value(json_object_get(request, "grant"));
	const char *text = json_string_value(json_object_get(request, "to"));
	cleanup_identity struct gs_identity to = { 0 };
	struct gs_err err = { 0 };
	int r;

	if (!name || !gs_grant_name_valid(name))
		r = gs_err_set(&err, EINVAL, "that is not the name of a grant");
	else
		r = gs_identity_parse(text ? text : "", text ? strlen(text) : 0, NULL, &to, &err);
	if (r == 0 && !is_there(agent, name)) {
		if (first)
			allocations_ask(agent);
		/* a kubelet that was not asked yet will be in a moment */
		if (allocations_asking(agent) ||
		    (!allocations_answer(agent, &err) && !err.code && plugins_have_kubelet(agent)))
			return;
		err = (struct gs_err){ 0 };
		r = make_good(agent, name, &to, &err);
	}
	server_answer(waiting, NULL, r < 0 ? &err : NULL);
}
