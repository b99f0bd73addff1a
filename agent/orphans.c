// SPDX-License-Identifier: Apache-2.0
/* Targets outside the pod whose source no longer has its card. */
#include <string.h>

#include "agent/allocations.h"
#include "agent/lent.h"
#include "agent/orphans.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/log.h"
#include "gpushare/agent.h"
#include "gpushare/resources.h"

/* What is known of where a target has its cards from. */
struct origin {
	bool own_pod; /* from a container of its own pod: that is its author's affair */
	bool share; /* from the agent's device plugin */
	bool has; /* one of its sources' pods, or its own, has the card */
};

static void by_grant(const struct agent *agent, const struct container *c,
		     const struct allocated *allocated, const struct card *card,
		     struct origin *origin)
{
	const struct gs_catalogue *cat = inventory_catalogue(agent->inventory);
	cleanup_grant struct gs_grant grant = { 0 };

	if (!c->rec.grant || gs_grant_read(agent->config.lib_dir, c->rec.grant, &grant, NULL) < 0)
		return;
	origin->share = grant.resource && strcmp(grant.resource, GS_RESOURCE_SHARE) == 0;
	for (size_t i = 0; i < grant.n_sources; i++)
		origin->has |= allocated_pod_has(allocated, cat, &grant.sources[i], card);
}

static bool same_pod(const struct container *a, const struct container *b)
{
	return a->rec.pod_uid && b->rec.pod_uid && strcmp(a->rec.pod_uid, b->rec.pod_uid) == 0;
}

static void by_record(const struct agent *agent, const struct container *c,
		      const struct allocated *allocated, const struct card *card,
		      struct origin *origin)
{
	const struct gs_catalogue *cat = inventory_catalogue(agent->inventory);

	for (size_t i = 0; i < c->rec.sources.n; i++) {
		const struct container *from =
			containers_find(&agent->containers, c->rec.sources.v[i]);

		if (!from)
			continue;
		origin->own_pod |= same_pod(c, from);
		if (gs_identity_is_set(&from->rec.identity))
			origin->has |= allocated_pod_has(allocated, cat, &from->rec.identity, card);
	}
}

/* Is it one that may be left behind at all? */
static bool is_target(const struct container *c, const char *card)
{
	return c->rec.role == GS_ROLE_TARGET && c->alive && !c->exempt && c->rec.pod_uid &&
	       gs_identity_is_set(&c->rec.identity) && gs_strv_has(&c->cards, card);
}

/* Does it use the card without anybody who has it? */
static bool is_orphan(const struct agent *agent, const struct container *c,
		      const struct allocated *allocated, const struct card *card)
{
	const struct gs_catalogue *cat = inventory_catalogue(agent->inventory);
	enum allocated_state state = allocated_state(allocated, cat, card);
	struct origin origin = { 0 };

	if (state == ALLOCATED_UNKNOWN)
		return false;
	origin.has = allocated_pod_has(allocated, cat, &c->rec.identity, card);
	by_grant(agent, c, allocated, card, &origin);
	by_record(agent, c, allocated, card, &origin);
	return !origin.has && !origin.own_pod && (state == ALLOCATED_TAKEN || origin.share);
}

static void end_one(struct agent *agent, const struct container *c)
{
	if (!evicting(agent, c))
		evict(agent, c, "the pod that held its card is gone");
}

void orphans_end(struct agent *agent)
{
	const struct allocated *allocated = allocations_known(agent);
	const struct cards *cards = inventory_cards(agent->inventory);

	for (size_t i = 0; allocated && i < cards->n; i++)
		for (size_t k = 0; k < agent->containers.n; k++) {
			const struct container *c = &agent->containers.v[k];

			if (is_target(c, cards->v[i].name) &&
			    is_orphan(agent, c, allocated, &cards->v[i]))
				end_one(agent, c);
		}
}

static bool is_shared(const struct agent *agent, const char *card)
{
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];
		const struct container *from;

		if (!is_target(c, card))
			continue;
		if (c->rec.grant)
			return true;
		for (size_t k = 0; k < c->rec.sources.n; k++) {
			from = containers_find(&agent->containers, c->rec.sources.v[k]);
			if (!from || !same_pod(c, from))
				return true;
		}
	}
	return false;
}

bool orphans_wait(struct agent *agent, const struct gs_identity *asker, const char *name,
		  bool first)
{
	const struct card *card = cards_find(inventory_cards(agent->inventory), name);
	struct gs_err why = { 0 };
	const struct allocated *allocated;
	bool waits = false;

	if (!card || !is_shared(agent, name) || !gs_identity_is_set(asker))
		return false;
	/* what was answered before may not know that pod yet */
	if (first)
		allocations_ask(agent);
	if (allocations_asking(agent))
		return true;
	allocated = allocations_answer(agent, &why);
	if (!allocated || why.code ||
	    !allocated_pod_alone(allocated, inventory_catalogue(agent->inventory), asker, card))
		return false;
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (!is_target(c, name) || !is_orphan(agent, c, allocated, card))
			continue;
		end_one(agent, c);
		waits = true;
	}
	return waits;
}

void orphans_mark(struct agent *agent)
{
	const struct cards *cards = inventory_cards(agent->inventory);
	cleanup_strv struct gs_strv names = { 0 };

	if (!agent->allocations || !inventory_complete(agent->inventory))
		return;
	card_file_names(agent, GS_SHARED_DIR, &names);
	for (size_t i = 0; i < cards->n; i++) {
		const struct card *card = &cards->v[i];
		struct gs_err err = { 0 };

		if (is_shared(agent, card->name) && !gs_strv_has(&names, card->name) &&
		    card_file_write(agent, GS_SHARED_DIR, card, NULL, &err) < 0)
			told_log(&agent->told, GS_LOG_ERROR, "a shared card is not marked", "card",
				 card->name, err.msg);
	}
	for (size_t i = 0; i < names.n; i++)
		if (!is_shared(agent, names.v[i]))
			card_file_remove(agent, GS_SHARED_DIR, names.v[i]);
}
