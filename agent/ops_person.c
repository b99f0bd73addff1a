// SPDX-License-Identifier: Apache-2.0
/* What gpusharectl asks for: the picture, and what an operator wants now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/granted.h"
#include "agent/ops.h"
#include "agent/strangers.h"
#include "agent/unseen.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/json.h"
#include "common/kname.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "gpushare/grant.h"

/* ---- status */

static bool is_hooked(const struct agent *agent, const struct card *card)
{
	for (size_t i = 0; i < card->n_nodes; i++)
		if (card->nodes[i].hook && gs_kstate_node(&agent->state, card->nodes[i].dev))
			return true;
	return false;
}

static json_t *card_status(struct agent *agent, const struct card *card)
{
	const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card->name);
	const struct load *load = inventory_load(agent->inventory, card->name);
	json_t *o = json_pack("{s:s, s:s, s:s, s:s*, s:s*}", "card", card->name, "vendor",
			      card->vendor, "id", card->id, "uuid", card->uuid, "holding",
			      plan ? plan->name : NULL);

	if (load && load->known) {
		(void)json_object_set_new(o, "busy", json_real(load->busy));
		(void)json_object_set_new(o, "memory_used",
					  json_integer((json_int_t)load->memory_used));
		(void)json_object_set_new(o, "memory_total",
					  json_integer((json_int_t)load->memory_total));
	}
	if (load && load->known && strangers_on(agent, card->name, load))
		(void)json_object_set_new(o, "strangers", json_true());
	if (is_hooked(agent, card))
		(void)json_object_set_new(o, "revocable",
					  json_boolean(!unseen_card(&agent->state, card)));
	if (agent_card(agent, card->name)->unrevocable)
		(void)json_object_set_new(o, "unrevocable",
					  json_string(agent_card(agent, card->name)->unrevocable));
	return o;
}

static json_t *container_status(const struct agent *agent, const char *id)
{
	const struct container *c = containers_find(&agent->containers, id);
	cleanup_free char *label = c ? container_label(&c->rec) : NULL;

	if (!c)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "id", c->rec.id, "name", label, "role",
			 gs_role_name(c->rec.role), "running", c->alive, "cards",
			 gs_json_list(&c->cards));
}

static json_t *holding_status(struct agent *agent, const struct plan_holding *plan)
{
	const struct gs_kholding *k = gs_kstate_holding(&agent->state, plan->name);
	const struct hold *hold = agent_hold(agent, plan->name);
	json_t *members = json_array();
	json_t *o;

	for (size_t i = 0; i < plan->members.n; i++)
		(void)json_array_append_new(members, container_status(agent, plan->members.v[i]));
	o = json_pack("{s:s, s:s, s:o, s:o, s:b}", "holding", plan->name, "state",
		      hold ? gs_kname_state(hold->state) : "unknown", "cards",
		      gs_json_list(&plan->cards), "members", members, "lend", plan->lend);
	if (hold && hold->since_ms)
		(void)json_object_set_new(
			o, "since_ms",
			json_integer((json_int_t)(gs_boottime_ms() - hold->since_ms)));
	if (hold && hold->state != GS_LENT && (hold->why_not[0] || plan->why_not))
		(void)json_object_set_new(
			o, "why_not", json_string(plan->why_not ? plan->why_not : hold->why_not));
	if (k)
		(void)json_object_set_new(
			o, "touches",
			json_integer((json_int_t)gs_kstate_touches(&agent->state, k)));
	return o;
}

static void status(struct agent *agent, struct waiting *waiting)
{
	const struct cards *cards = inventory_cards(agent->inventory);
	json_t *list[3] = { json_array(), json_array(), json_array() };

	reconcile_counts(agent);
	for (size_t i = 0; i < cards->n; i++)
		(void)json_array_append_new(list[0], card_status(agent, &cards->v[i]));
	for (size_t i = 0; i < agent->plan.n_holdings; i++)
		(void)json_array_append_new(list[1],
					    holding_status(agent, &agent->plan.holdings[i]));
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];
		json_t *o;

		if (c->rec.role != GS_ROLE_BORROWER)
			continue;
		o = container_status(agent, c->rec.id);
		(void)json_object_set_new(o, "ending", json_boolean(evicting(agent, c)));
		(void)json_array_append_new(list[2], o);
	}
	server_answer(waiting,
		      json_pack("{s:o, s:o, s:o, s:{s:b, s:s*}}", "cards", list[0], "holdings",
				list[1], "borrowers", list[2], "kernel", "loaded",
				kernel_link(agent->kernel) != NULL, "version",
				agent->state.status.version[0] ? agent->state.status.version :
								 NULL),
		      NULL);
}

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
		status(agent, waiting);
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
