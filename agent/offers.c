// SPDX-License-Identifier: Apache-2.0
/* What the kubelet is offered. */
#include <stdlib.h>
#include <string.h>

#include "agent/devices.h"
#include "agent/offers.h"
#include "agent/plugins.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"

static void offers_free(struct plugin_snapshot *snapshot)
{
	struct offers *offers = (struct offers *)snapshot;

	for (size_t i = 0; i < offers->n; i++)
		free((void *)(uintptr_t)offers->devices[i].id);
	free(offers->devices);
	free(offers->is_free);
	free(offers);
}

static struct offers *offers_new(void)
{
	struct offers *offers = gs_calloc(1, sizeof(*offers));

	offers->base.free = offers_free;
	return offers;
}

static void add(struct offers *offers, char *id, bool healthy, bool is_free)
{
	offers->devices = gs_grow(offers->devices, offers->n, sizeof(*offers->devices));
	offers->is_free = gs_grow(offers->is_free, offers->n, sizeof(*offers->is_free));
	offers->devices[offers->n] = (struct plugin_device){ id, healthy, -1 };
	offers->is_free[offers->n++] = is_free;
	offers->base.devices = offers->devices;
	offers->base.n = offers->n;
}

bool offers_same(const struct offers *a, const struct offers *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->devices[i].id, b->devices[i].id) != 0 ||
		    a->devices[i].healthy != b->devices[i].healthy ||
		    a->is_free[i] != b->is_free[i])
			return false;
	return true;
}

static bool is_shadow(const struct container *c)
{
	cleanup_json json_t *annotations = NULL;
	const char *value;

	if (c->rec.role != GS_ROLE_HOLDER || !c->alive || c->cards.n != 1 || !c->rec.annotations)
		return false;
	(void)gs_json_parse("annotations", c->rec.annotations, strlen(c->rec.annotations),
			    &annotations, NULL);
	value = json_string_value(json_object_get(annotations, GS_KEY_SHADOW));
	return value && strcmp(value, "true") == 0;
}

const struct container *offers_shadow(const struct agent *agent, const char *card)
{
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (gs_strv_has(&c->cards, card) && is_shadow(c))
			return c;
	}
	return NULL;
}

struct offers *offers_share(struct agent *agent)
{
	const struct cards *cards = inventory_cards(agent->inventory);
	struct offers *offers = offers_new();

	for (size_t i = 0; i < cards->n; i++) {
		if (!offers_shadow(agent, cards->v[i].name))
			continue;
		for (unsigned int k = 0; k < agent->settings.share; k++) {
			char *id;

			/* a name that is too long for the kubelet is none of a card that it gave */
			if (devices_name(cards->v[i].name, k, &id, NULL) == 0)
				add(offers, id, true, false);
		}
	}
	return offers;
}

static bool is_to_be_had(struct agent *agent, const struct card *card, bool *ret_free)
{
	const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card->name);
	const struct hold *hold = plan ? agent_hold(agent, plan->name) : NULL;

	*ret_free = plan && !plan->members.n;
	if (!hold || hold->state != GS_LENT)
		return false;
	return !*ret_free || !plugins_gave_away(agent, card);
}

struct offers *offers_spot(struct agent *agent)
{
	const struct cards *cards = inventory_cards(agent->inventory);
	struct offers *offers = offers_new();

	for (size_t i = 0; i < cards->n; i++) {
		bool is_free, healthy = is_to_be_had(agent, &cards->v[i], &is_free);

		if (strlen(cards->v[i].name) <= PLUGIN_ID_MAX)
			add(offers, gs_strdup(cards->v[i].name), healthy, is_free);
	}
	return offers;
}

static bool is_free(const struct offers *offers, const char *id)
{
	for (size_t i = 0; i < offers->n; i++)
		if (strcmp(offers->devices[i].id, id) == 0)
			return offers->is_free[i];
	return false;
}

int offers_prefer_spot(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
		       struct gs_strv *ret, void *arg, struct gs_err *err)
{
	const struct offers *offers = (const struct offers *)snapshot;

	(void)arg, (void)err;
	gs_strv_merge(ret, &wish->must);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < wish->available.n && ret->n < wish->size; i++)
			if (is_free(offers, wish->available.v[i]) == (pass == 0))
				gs_strv_add_once(ret, wish->available.v[i]);
	return 0;
}

int offers_prefer_share(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
			struct gs_strv *ret, void *arg, struct gs_err *err)
{
	(void)snapshot, (void)arg;
	return devices_prefer(wish, ret, err);
}
