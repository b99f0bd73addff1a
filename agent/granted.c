// SPDX-License-Identifier: Apache-2.0
/* Grants that the agent makes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "agent/granted.h"
#include "agent/offers.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/grant.h"
#include "gpushare/resources.h"

static void add_source(struct gs_grant *grant, const struct gs_identity *source)
{
	if (gs_grant_has_source(grant, source))
		return;
	grant->sources = gs_grow(grant->sources, grant->n_sources, sizeof(*grant->sources));
	grant->sources[grant->n_sources++] = gs_identity_copy(source);
}

/* The holder of a holding, by whose name its cards can be copied; NULL: none has one. */
static const struct gs_identity *holder_of(const struct agent *agent,
					   const struct plan_holding *plan)
{
	for (size_t i = 0; i < plan->members.n; i++) {
		const struct container *c = containers_find(&agent->containers, plan->members.v[i]);

		if (c->rec.role == GS_ROLE_HOLDER && gs_identity_is_set(&c->rec.identity))
			return &c->rec.identity;
	}
	return NULL;
}

/* Is the whole holding asked for? Its source is copied as a whole. */
static bool wants_all(const struct plan_holding *plan, const struct gs_strv *asked)
{
	for (size_t i = 0; asked && i < plan->cards.n; i++)
		if (!gs_strv_has(asked, plan->cards.v[i]))
			return false;
	return true;
}

int granted_add_spot(struct agent *agent, const struct card *card, const struct gs_strv *asked,
		     struct gs_grant *grant, struct gs_err *err)
{
	const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card->name);
	const struct hold *hold = plan ? agent_hold(agent, plan->name) : NULL;
	const struct gs_identity *holder;

	if (!hold || hold->state != GS_LENT)
		return gs_err_set(err, EBUSY, "card %s is not lent now", card->name);
	holder = holder_of(agent, plan);
	if (holder && wants_all(plan, asked)) {
		gs_strv_merge(&grant->cards, &plan->cards);
		add_source(grant, holder);
		return 0;
	}
	if (!asked && plan->members.n)
		return gs_err_set(err, ENOENT, "holding %s has no holder with a name", plan->name);
	gs_strv_add_once(&grant->cards, card->name);
	gs_strv_add_once(&grant->free, card->name);
	return 0;
}

int granted_lease(struct gs_grant *grant, struct gs_err *err)
{
	char boot_id[37];
	int r = gs_boot_id(boot_id, err);

	if (r < 0)
		return r;
	grant->kind = GS_GRANT_SPOT;
	free(grant->lease_boot_id);
	grant->lease_boot_id = gs_strdup(boot_id);
	grant->lease_deadline_ms = gs_boottime_ms() + GS_LEASE_MS;
	return 0;
}

static int add_share(struct agent *agent, const char *device, struct gs_grant *grant,
		     struct gs_err *err)
{
	cleanup_free char *name = gs_strndup(device, devices_card(device));
	const struct container *shadow = offers_shadow(agent, name);
	int number = devices_number(device);

	/* it was given out while a card had more shares: others have all that there are now */
	if (number < 0 || (unsigned int)number >= agent->settings.share)
		return gs_err_set(err, EBUSY,
				  "card %s is shared by %u pods now, and %s is none of "
				  "their shares",
				  name, agent->settings.share, device);
	if (!shadow || !gs_identity_is_set(&shadow->rec.identity))
		return gs_err_set(err, EBUSY, "card %s is no shadow pod's now", name);
	gs_strv_add_once(&grant->cards, name);
	add_source(grant, &shadow->rec.identity);
	return 0;
}

int granted_write(struct agent *agent, const char *name, const char *resource,
		  const struct gs_strv *devices, const struct gs_identity *to, struct gs_err *err)
{
	bool spot = strcmp(resource, GS_RESOURCE_SPOT) == 0;
	cleanup_grant struct gs_grant grant = { .resource = gs_strdup(resource) };
	int r = 0;

	gs_strv_merge(&grant.devices, devices);
	if (to && gs_identity_is_set(to))
		grant.to = gs_identity_copy(to);
	for (size_t i = 0; i < devices->n && r == 0; i++) {
		const char *device = devices->v[i];
		const struct card *card =
			spot ? cards_find(inventory_cards(agent->inventory), device) : NULL;

		if (!spot)
			r = add_share(agent, device, &grant, err);
		else if (card)
			r = granted_add_spot(agent, card, devices, &grant, err);
		else
			r = gs_err_set(err, EBUSY, "card %s is gone", device);
	}
	if (r == 0 && spot)
		r = granted_lease(&grant, err);
	return r < 0 ? r : gs_grant_create_as(agent->config.lib_dir, name, &grant, err);
}
