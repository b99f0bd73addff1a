// SPDX-License-Identifier: Apache-2.0
/* The agent's picture of its node. */
#include <stdlib.h>
#include <string.h>

#include "agent/status.h"
#include "agent/strangers.h"
#include "agent/unseen.h"
#include "agent/usage.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/kname.h"
#include "common/proc.h"
#include "common/utf8.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"

/* An account's or partition's name that is longer is cut: an annotation may have 256 KiB. */
#define NAME_MAX_BYTES 253

struct picture_of {
	struct agent *agent;
	/* Of each container: bytes on its cards, and whether anybody tells that of all of them. */
	uint64_t *memory;
	bool *untold;
};

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

/* ---- Containers. */

static void add_name(json_t *o, const char *member, const json_t *annotations, const char *key)
{
	const char *text = json_string_value(json_object_get(annotations, key));
	size_t len = 0, n;

	if (!text)
		return;
	while (text[len] && (n = gs_utf8_len(text + len, text + strlen(text))) &&
	       len + n <= NAME_MAX_BYTES)
		len += n;
	(void)json_object_set_new(o, member, json_stringn(text, len));
}

/* Whose pod it is, as the platform says. */
static void add_owner(json_t *o, const struct gs_record *rec)
{
	cleanup_json json_t *annotations = NULL;

	if (!rec->annotations || gs_json_parse("annotations", rec->annotations,
					       strlen(rec->annotations), &annotations, NULL) < 0)
		return;
	add_name(o, "user_id", annotations, GS_KEY_USER_ID);
	add_name(o, "partition", annotations, GS_KEY_PARTITION);
}

static json_t *container_status(const struct picture_of *of, const struct container *c)
{
	cleanup_free char *label = container_label(&c->rec);
	size_t at = (size_t)(c - of->agent->containers.v);
	json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:o}", "id", c->rec.id, "name", label, "role",
			      gs_role_name(c->rec.role), "running", c->alive, "cards",
			      gs_json_list(&c->cards));

	add_owner(o, &c->rec);
	if (c->cards.n && !of->untold[at])
		(void)json_object_set_new(o, "memory_used",
					  json_integer((json_int_t)of->memory[at]));
	return o;
}

static void look_at_memory(struct picture_of *of)
{
	const struct containers *all = &of->agent->containers;
	const struct cards *cards = inventory_cards(of->agent->inventory);

	of->memory = gs_calloc(all->n + 1, sizeof(*of->memory));
	of->untold = gs_calloc(all->n + 1, sizeof(*of->untold));
	for (size_t i = 0; i < cards->n; i++) {
		const char *name = cards->v[i].name;
		const struct load *load = inventory_load(of->agent->inventory, name);

		if (load && usage_add(of->agent, load, of->memory))
			continue;
		for (size_t k = 0; k < all->n; k++)
			of->untold[k] |= gs_strv_has(&all->v[k].cards, name);
	}
}

static json_t *holding_status(const struct picture_of *of, const struct plan_holding *plan)
{
	struct agent *agent = of->agent;
	const struct gs_kholding *k = gs_kstate_holding(&agent->state, plan->name);
	const struct hold *hold = agent_hold(agent, plan->name);
	json_t *members = json_array();
	json_t *o;

	for (size_t i = 0; i < plan->members.n; i++) {
		const struct container *c = containers_find(&agent->containers, plan->members.v[i]);

		if (c)
			(void)json_array_append_new(members, container_status(of, c));
	}
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

static json_t *borrowers_status(const struct picture_of *of)
{
	struct agent *agent = of->agent;
	json_t *list = json_array();

	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];
		json_t *o;

		if (c->rec.role != GS_ROLE_BORROWER)
			continue;
		o = container_status(of, c);
		(void)json_object_set_new(o, "ending", json_boolean(evicting(agent, c)));
		(void)json_array_append_new(list, o);
	}
	return list;
}

json_t *status_json(struct agent *agent)
{
	const struct cards *cards = inventory_cards(agent->inventory);
	struct picture_of of = { .agent = agent };
	json_t *list[2] = { json_array(), json_array() };
	json_t *o;

	reconcile_counts(agent);
	look_at_memory(&of);
	for (size_t i = 0; i < cards->n; i++)
		(void)json_array_append_new(list[0], card_status(agent, &cards->v[i]));
	for (size_t i = 0; i < agent->plan.n_holdings; i++)
		(void)json_array_append_new(list[1], holding_status(&of, &agent->plan.holdings[i]));
	o = json_pack("{s:o, s:o, s:o, s:{s:b, s:s*}}", "cards", list[0], "holdings", list[1],
		      "borrowers", borrowers_status(&of), "kernel", "loaded",
		      kernel_link(agent->kernel) != NULL, "version",
		      agent->state.status.version[0] ? agent->state.status.version : NULL);
	free(of.memory);
	free(of.untold);
	return o;
}
