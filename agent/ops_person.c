// SPDX-License-Identifier: Apache-2.0
/* What gpusharectl asks for: the picture, and what an operator wants now. */
#include <errno.h>
#include <string.h>

#include "agent/granted.h"
#include "agent/ops.h"
#include "agent/status.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "gpushare/grant.h"

/* ---- lend, withdraw: of a card or a holding. */

static struct hold *named(struct agent *agent, const json_t *request, struct gs_err *err)
{
	const char *name = json_string_value(json_object_get(request, "name"));
	const struct card *card = name ? cards_find(inventory_cards(agent->inventory), name) : NULL;
	struct hold *hold = name ? agent_hold(agent, name) : NULL;

	if (card)
		hold = agent_hold_of_card(agent, card->name);
	if (hold)
		return hold;
	(void)gs_err_set(err, ENOENT, card ? "nobody holds card %s" : "no card or holding %s",
			 name ? name : "\"\"");
	return NULL;
}

/* What nobody can do now, whatever card it is about; holdings are the module's. */
static int no_module(const struct agent *agent, struct gs_err *err)
{
	if (kernel_link(agent->kernel))
		return 0;
	return gs_err_set(
		err, ENODEV,
		"the kernel module is not loaded (modprobe gpushare), so nothing is lent");
}

static void lend(struct agent *agent, struct waiting *waiting, const json_t *request)
{
	struct gs_err err = { 0 };
	struct hold *hold = no_module(agent, &err) < 0 ? NULL : named(agent, request, &err);

	if (hold)
		(void)lend_now(agent, hold, &err);
	server_answer(waiting, NULL, err.code ? &err : NULL);
}

static void withdraw(struct agent *agent, struct waiting *waiting, const json_t *request,
		     bool first)
{
	struct gs_err err = { 0 };
	struct hold *hold = no_module(agent, &err) < 0 ? NULL : named(agent, request, &err);

	if (hold && first)
		(void)back_withdraw(agent, hold, &err);
	if (err.code || !hold || (hold->state != GS_LENT && hold->state != GS_RETURNING))
		server_answer(waiting, NULL, err.code ? &err : NULL);
}

/* ---- grant: a spot grant on lent cards. */

static int make_grant(struct agent *agent, const json_t *request, struct gs_grant *grant,
		      char name[33], struct gs_err *err)
{
	const char *to = json_string_value(json_object_get(request, "to"));
	json_t *cards = json_object_get(request, "cards");
	json_t *value;
	size_t i;
	int r;

	if (!json_array_size(cards))
		return gs_err_set(err, EINVAL, "a spot grant needs a card");
	r = no_module(agent, err);
	if (r < 0)
		return r;
	json_array_foreach(cards, i, value) {
		const char *text = json_string_value(value);
		const struct card *card =
			text ? cards_find(inventory_cards(agent->inventory), text) : NULL;

		if (!card)
			return gs_err_set(err, ENOENT, "no card %s", text ? text : "\"\"");
		r = granted_add_spot(agent, card, NULL, grant, err);
		if (r < 0)
			return r;
	}
	if (to) {
		r = gs_identity_parse(to, strlen(to), NULL, &grant->to, err);
		if (r < 0)
			return r;
	}
	r = granted_lease(grant, err);
	return r < 0 ? r : gs_grant_create(agent->config.lib_dir, grant, name, err);
}

static void grant(struct agent *agent, struct waiting *waiting, const json_t *request)
{
	cleanup_grant struct gs_grant grant = { 0 };
	struct gs_err err = { 0 };
	char name[33], buf[10];
	json_t *sources;

	if (make_grant(agent, request, &grant, name, &err) < 0) {
		server_answer(waiting, NULL, &err);
		return;
	}
	sources = json_array();
	for (size_t i = 0; i < grant.n_sources; i++) {
		cleanup_free char *text = gs_identity_text(&grant.sources[i]);

		(void)json_array_append_new(sources, json_string(text));
	}
	gs_log_fields(GS_LOG_INFO, "a spot grant is made", "grant", gs_grant_short(name, buf),
		      NULL);
	server_answer(waiting,
		      json_pack("{s:s, s:o, s:o}", "grant", name, "sources", sources, "cards",
				gs_json_list(&grant.cards)),
		      NULL);
}

bool ops_person(struct agent *agent, struct waiting *waiting, const char *op, const json_t *request,
		bool first)
{
	if (strcmp(op, GS_OP_STATUS) == 0)
		server_answer(waiting, status_json(agent), NULL);
	else if (strcmp(op, GS_OP_LEND) == 0)
		lend(agent, waiting, request);
	else if (strcmp(op, GS_OP_WITHDRAW) == 0)
		withdraw(agent, waiting, request, first);
	else if (strcmp(op, GS_OP_GRANT) == 0)
		grant(agent, waiting, request);
	else
		return false;
	return true;
}
