// SPDX-License-Identifier: Apache-2.0
/* gpusharectl inspect: which cards are meant, and each of them in full. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/xalloc.h"
#include "ctl/cards.h"
#include "ctl/inspect_card.h"
#include "ctl/table.h"

/* How much of an id is shown, and how much names a container. */
#define SHORT_ID 12
#define PREFIX_MIN 6

static const char *const part_key[N_PARTS] = { "holders", "sharers", "borrowers" };
static const char *const part_label[N_PARTS] = { "held by", "shared with", "borrowed by" };

/* ---- Which cards are meant. */

struct wanted {
	const char *name;
	bool whole; /* or the beginning of a container's id */
	bool found;
};

static void match_container(const struct pic_container *container, void *arg)
{
	struct wanted *wanted = arg;
	size_t len = strlen(wanted->name);

	if (wanted->whole)
		wanted->found |= strcmp(container->id, wanted->name) == 0 ||
				 (container->name && strcmp(container->name, wanted->name) == 0);
	else
		wanted->found |= len >= PREFIX_MIN &&
				 strncmp(container->id, wanted->name, len) == 0;
}

static bool matches(const struct picture *pic, const struct pic_card *card, const char *name,
		    bool whole)
{
	struct wanted wanted = { .name = name, .whole = whole };

	if (whole && (card == picture_card(pic, name) ||
		      (card->holding && strcmp(card->holding, name) == 0)))
		return true;
	for (enum part part = HOLDS; part < N_PARTS; part++)
		card_each(pic, card, part, match_container, &wanted);
	return wanted.found;
}

struct inspect_card *inspect_choose(const struct view *view, const char *name, size_t *ret_n)
{
	struct inspect_card *cards = NULL;

	*ret_n = 0;
	for (int whole = 1; whole >= 0 && !*ret_n; whole--)
		for (size_t i = 0; i < view->n; i++) {
			const struct picture *pic = &view->v[i].pic;

			for (size_t k = 0; k < pic->n_cards; k++) {
				if (name && !matches(pic, &pic->cards[k], name, whole))
					continue;
				cards = gs_grow(cards, *ret_n, sizeof(*cards));
				cards[(*ret_n)++] =
					(struct inspect_card){ &view->v[i], &pic->cards[k] };
			}
		}
	return cards;
}

/* What becomes of a return that makes no call. */
static char *stores_text(const struct pic_card *card)
{
	if (card->revocable > 0)
		return gs_strdup("yes: a return that makes no call is held, too");
	return gs_asprintf("no: a return that makes no call is seen by load at most%s%s%s",
			   card->unrevocable ? " (" : "",
			   card->unrevocable ? card->unrevocable : "",
			   card->unrevocable ? ")" : "");
}

/* ---- All about one card: a line each. */

/* Adds a line, unless there is nothing to say. */
static void add_line(struct ctl_table *table, const char *what, const char *text)
{
	if (!text)
		return;
	ctl_table_add(table, what);
	ctl_table_add(table, text);
}

struct lines {
	struct ctl_table *table;
	const char *what;
};

static void add_container(const struct pic_container *container, void *arg)
{
	cleanup_free char *text = gs_asprintf("%s (id %.*s, %s)", picture_label(container),
					      SHORT_ID, container->id, picture_life(container));
	const struct lines *lines = arg;

	add_line(lines->table, lines->what, text);
}

void inspect_print_card(const struct inspect_card *of)
{
	const struct picture *pic = &of->node->pic;
	const struct pic_card *card = of->card;
	const struct pic_holding *holding = picture_holding_of(pic, card);
	cleanup_free char *busy = card_busy(card), *memory = card_memory(card);
	cleanup_free char *stores = stores_text(card);
	cleanup_table struct ctl_table table = { .columns = 2 };
	char since[GS_DURATION_MAX], touches[24];

	add_line(&table, "node", of->node->name);
	if (of->node->stale)
		add_line(&table, "stale", "yes: its agent has not told anything since");
	add_line(&table, "card", card->name);
	add_line(&table, "vendor", card->vendor);
	add_line(&table, "id", card->id);
	add_line(&table, "uuid", card->uuid);
	add_line(&table, "state", picture_state(pic, card));
	add_line(&table, "since", card_since(pic, card, since));
	add_line(&table, "not lent", picture_why_not(pic, card));
	add_line(&table, "holding", card->holding);
	if (holding && holding->touches >= 0) {
		(void)snprintf(touches, sizeof(touches), "%" PRId64, holding->touches);
		add_line(&table, "touches", touches);
	}
	for (enum part part = HOLDS; part < N_PARTS; part++)
		card_each(pic, card, part, add_container,
			  &(struct lines){ .table = &table, .what = part_label[part] });
	add_line(&table, "busy", busy);
	add_line(&table, "memory", memory);
	if (card->revocable >= 0)
		add_line(&table, "revocable", stores);
	if (card->strangers)
		add_line(&table, "strangers", "a process that belongs to no container of it");
	ctl_table_print(&table);
}

/* ---- JSON. */

static void add_json(const struct pic_container *container, void *arg)
{
	(void)json_array_append_new(arg, picture_json_container(container));
}

json_t *inspect_json(const struct inspect_card *of)
{
	const struct picture *pic = &of->node->pic;
	const struct pic_card *card = of->card;
	const struct pic_holding *holding = picture_holding_of(pic, card);
	const char *why_not = picture_why_not(pic, card);
	json_t *json = picture_json_card(pic, card);

	(void)json_object_set_new(
		json, "since_ms",
		holding && holding->since_ms >= 0 ? json_integer(holding->since_ms) : json_null());
	(void)json_object_set_new(
		json, "touches",
		holding && holding->touches >= 0 ? json_integer(holding->touches) : json_null());
	(void)json_object_set_new(json, "why_not", why_not ? json_string(why_not) : json_null());
	for (enum part part = HOLDS; part < N_PARTS; part++) {
		json_t *containers = json_array();

		card_each(pic, card, part, add_json, containers);
		(void)json_object_set_new(json, part_key[part], containers);
	}
	if (!of->node->name)
		return json;
	(void)json_object_set_new(json, "node", json_string(of->node->name));
	(void)json_object_set_new(json, "stale", json_boolean(of->node->stale));
	(void)json_object_set_new(json, "age_ms",
				  of->node->age_ms < 0 ? json_null() :
							 json_integer(of->node->age_ms));
	return json;
}

static void add_tenant(const struct pic_container *container, void *arg)
{
	if (container->user_id)
		gs_strv_add_once(arg, container->user_id);
}

char *inspect_tenants(const struct inspect_card *of)
{
	cleanup_strv struct gs_strv names = { 0 };

	card_each(&of->node->pic, of->card, HOLDS, add_tenant, &names);
	return gs_strv_join(&names);
}
