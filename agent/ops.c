// SPDX-License-Identifier: Apache-2.0
/* What can be asked of the agent: by the runtime and its hook. */
#include <errno.h>
#include <string.h>

#include "agent/ops.h"
#include "agent/orphans.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/json.h"
#include "common/log.h"
#include "common/proc.h"
#include "gpushare/agent.h"

/* How long a holder that asked for its cards has time to start before they may be lent again. */
#define STARTING_MS 60000

static void done(struct waiting *waiting)
{
	server_answer(waiting, NULL, NULL);
}

static void refuse(struct waiting *waiting, const struct gs_err *err)
{
	server_answer(waiting, NULL, err);
}

/* ---- reclaim: a holder is about to start. */

static void reclaim(struct agent *agent, struct waiting *waiting, const json_t *request, bool first)
{
	const char *to = json_string_value(json_object_get(request, "to"));
	json_t *cards = json_object_get(request, "cards");
	cleanup_identity struct gs_identity asker = { 0 };
	bool waits = false;
	json_t *card;
	size_t i;

	if (to)
		(void)gs_identity_parse(to, strlen(to), NULL, &asker, NULL);

	json_array_foreach(cards, i, card) {
		const char *name = json_string_value(card);
		struct hold *hold = name ? agent_hold_of_card(agent, name) : NULL;
		struct gs_err err = { 0 };

		if (hold && first) {
			hold->starting_until_ms = gs_boottime_ms() + STARTING_MS;
			if (back_withdraw(agent, hold, &err) < 0) {
				refuse(waiting, &err);
				return;
			}
		}
		waits |= name && agent_away(agent, name);
		waits |= name && orphans_wait(agent, &asker, name, first);
	}
	if (!waits)
		done(waiting);
}

/* ---- borrow: may a spot container start? */

static int check_card(struct agent *agent, const char *card, struct gs_err *err)
{
	const struct hold *hold = agent_hold_of_card(agent, card);

	if (!hold || hold->state != GS_LENT)
		return gs_err_set(err, EBUSY, "card %s is not lent now", card);
	return 0;
}

/* Every card of the sources must be lent, and be one that the grant is about. */
static int check_sources(struct agent *agent, const json_t *request, const struct gs_grant *grant,
			 struct gs_err *err)
{
	json_t *sources = json_object_get(request, "sources");
	json_t *source;
	size_t i;

	json_array_foreach(sources, i, source) {
		const char *id = json_string_value(source);
		const struct container *c = id ? containers_find(&agent->containers, id) : NULL;

		if (!c)
			return gs_err_set(err, ENOENT, "a source is not in the registry");
		if (!c->cards.n)
			return gs_err_set(err, ENODEV, "no card of a source is known");
		for (size_t j = 0; j < c->cards.n; j++) {
			int r = check_card(agent, c->cards.v[j], err);

			if (r < 0)
				return r;
			if (grant->name[0] && grant->cards.n &&
			    !gs_strv_has(&grant->cards, c->cards.v[j]))
				return gs_err_set(err, EACCES, "the grant does not name card %s",
						  c->cards.v[j]);
		}
	}
	for (i = 0; i < grant->free.n; i++) {
		int r = check_card(agent, grant->free.v[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

static void borrow(struct agent *agent, struct waiting *waiting, const json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "grant"));
	cleanup_grant struct gs_grant grant = { 0 };
	struct gs_err err = { 0 };
	int r = 0;

	if (!kernel_link(agent->kernel))
		r = gs_err_set(&err, ENODEV, "the kernel module is not loaded");
	/* a borrower of a borrower has none of its own */
	if (r == 0 && name && name[0])
		r = gs_grant_read(agent->config.lib_dir, name, &grant, &err);
	if (r == 0 && name && name[0])
		r = gs_grant_in_force(&grant, &err);
	if (r == 0) {
		reconcile(agent); /* its source may be younger than our picture */
		r = check_sources(agent, request, &grant, &err);
	}
	if (r < 0)
		refuse(waiting, &err);
	else
		done(waiting);
}

/* ---- watched: does its watch stand? */

/* The card's file names its borrowers before one of them runs. */
static int write_lent(struct agent *agent, const struct container *c, struct gs_err *err)
{
	for (size_t i = 0; i < c->cards.n; i++) {
		const struct card *card =
			cards_find(inventory_cards(agent->inventory), c->cards.v[i]);
		int r = card ? lent_write(agent, card, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int check_watch(struct agent *agent, const struct container *c, struct gs_err *err)
{
	const struct plan_watch *planned = plan_watch(&agent->plan, c->rec.id);
	const struct gs_kwatch *w = planned ? gs_kstate_watch(&agent->state, planned->name) : NULL;

	if (evicting(agent, c) || (w && w->revoked))
		return gs_err_set(err, ECANCELED, "the GPU was reclaimed by its holder");
	if (!planned)
		return gs_err_set(err, ENODEV, "nobody lends its card");
	if (!w)
		return gs_err_set(err, ENODEV, "the kernel module has no watch on it");
	return write_lent(agent, c, err);
}

static void watched(struct agent *agent, struct waiting *waiting, const json_t *request)
{
	const char *id = json_string_value(json_object_get(request, "container"));
	const struct container *c;
	struct gs_err err = { 0 };

	reconcile(agent);
	c = id ? containers_find(&agent->containers, id) : NULL;
	/* whether it may run is not known yet, and it can wait */
	if (c && c->rec.role == GS_ROLE_BORROWER && !inventory_complete(agent->inventory))
		return;
	if (!c)
		(void)gs_err_set(&err, ENOENT, "no such container in the registry");
	else if (c->rec.role == GS_ROLE_BORROWER)
		(void)check_watch(agent, c, &err);
	/* a member goes on: what fails is told in the log, and its holding is not lent */
	if (err.code)
		refuse(waiting, &err);
	else
		done(waiting);
}

bool ops_ready(const struct agent *agent, const json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));

	if (inventory_complete(agent->inventory))
		return true;
	/* a picture is what there is; a user's container that starts waits for nothing */
	return op && (strcmp(op, GS_OP_STATUS) == 0 || strcmp(op, GS_OP_WATCHED) == 0);
}

void ops_serve(struct agent *agent, struct waiting *waiting, const json_t *request, bool first)
{
	const char *op = json_string_value(json_object_get(request, "op"));
	struct gs_err err = { 0 };

	if (!op)
		op = "";
	if (strcmp(op, GS_OP_RECLAIM) == 0) {
		reclaim(agent, waiting, request, first);
	} else if (strcmp(op, GS_OP_BORROW) == 0) {
		borrow(agent, waiting, request);
	} else if (strcmp(op, GS_OP_WATCHED) == 0) {
		watched(agent, waiting, request);
	} else if (strcmp(op, GS_OP_CLAIM) == 0) {
		ops_claim(agent, waiting, request, first);
	} else if (strcmp(op, GS_OP_CONFIRM) == 0) {
		ops_confirm(agent, waiting, request, first);
	} else if (!ops_person(agent, waiting, op, request, first)) {
		(void)gs_err_set(&err, EINVAL, "unknown op \"%s\"", op);
		refuse(waiting, &err);
	}
}
