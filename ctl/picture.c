// SPDX-License-Identifier: Apache-2.0
/* The agent's answer to "status", taken apart. */
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"
#include "ctl/ask.h"
#include "ctl/picture.h"
#include "gpushare/agent.h"

/* ---- Reading. */

static const char *text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

/* A number that is not negative; -1: there is none. */
static int64_t count(const json_t *o, const char *key)
{
	const json_t *n = json_object_get(o, key);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? json_integer_value(n) : -1;
}

static void list(const json_t *o, const char *key, struct gs_strv *ret)
{
	const json_t *array = json_object_get(o, key);

	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_is_string(json_array_get(array, i)))
			gs_strv_add(ret, json_string_value(json_array_get(array, i)));
}

static void read_containers(const json_t *array, struct pic_container **ret, size_t *ret_n)
{
	*ret = gs_calloc(json_array_size(array) + 1, sizeof(**ret));
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *o = json_array_get(array, i);
		struct pic_container *c = &(*ret)[*ret_n];

		if (!text(o, "id"))
			continue;
		c->id = text(o, "id");
		c->name = text(o, "name");
		c->role = text(o, "role");
		c->user_id = text(o, "user_id");
		c->partition = text(o, "partition");
		c->memory_used = count(o, "memory_used");
		c->running = flag(o, "running");
		c->ending = flag(o, "ending");
		list(o, "cards", &c->cards);
		(*ret_n)++;
	}
}

static void read_card(const json_t *o, struct pic_card *card)
{
	const json_t *busy = json_object_get(o, "busy");
	const json_t *revocable = json_object_get(o, "revocable");
	int64_t used = count(o, "memory_used"), total = count(o, "memory_total");

	card->name = text(o, "card");
	card->vendor = text(o, "vendor");
	card->id = text(o, "id");
	card->uuid = text(o, "uuid");
	card->holding = text(o, "holding");
	card->busy = json_is_number(busy) ? json_number_value(busy) : -1;
	/* some tools tell of more than there is */
	if (card->busy > 1)
		card->busy = 1;
	card->memory_used = used > 0 ? (uint64_t)used : 0;
	card->memory_total = total > 0 ? (uint64_t)total : 0;
	card->strangers = flag(o, "strangers");
	card->revocable = json_is_boolean(revocable) ? json_is_true(revocable) : -1;
	card->unrevocable = text(o, "unrevocable");
}

static void read_holding(const json_t *o, struct pic_holding *holding)
{
	holding->name = text(o, "holding");
	holding->state = text(o, "state") ? text(o, "state") : "unknown";
	holding->since_ms = count(o, "since_ms");
	holding->touches = count(o, "touches");
	list(o, "cards", &holding->cards);
	read_containers(json_object_get(o, "members"), &holding->members, &holding->n_members);
	holding->lend = flag(o, "lend");
	holding->why_not = text(o, "why_not");
}

void picture_read(json_t *answer, struct picture *ret)
{
	const json_t *kernel = json_object_get(answer, "kernel");
	const json_t *loaded = json_object_get(kernel, "loaded");
	const json_t *cards = json_object_get(answer, "cards");
	const json_t *holdings = json_object_get(answer, "holdings");

	*ret = (struct picture){ .answer = answer };
	ret->loaded = json_is_boolean(loaded) ? json_is_true(loaded) : -1;
	ret->version = text(kernel, "version");
	ret->cards = gs_calloc(json_array_size(cards) + 1, sizeof(*ret->cards));
	for (size_t i = 0; i < json_array_size(cards); i++)
		if (text(json_array_get(cards, i), "card"))
			read_card(json_array_get(cards, i), &ret->cards[ret->n_cards++]);
	ret->holdings = gs_calloc(json_array_size(holdings) + 1, sizeof(*ret->holdings));
	for (size_t i = 0; i < json_array_size(holdings); i++)
		if (text(json_array_get(holdings, i), "holding"))
			read_holding(json_array_get(holdings, i),
				     &ret->holdings[ret->n_holdings++]);
	read_containers(json_object_get(answer, "borrowers"), &ret->borrowers, &ret->n_borrowers);
}

int picture_ask(const struct gs_config *config, struct picture *ret, struct gs_err *err)
{
	json_t *answer = NULL;
	int r = ctl_ask(config, GS_OP_STATUS, NULL, CTL_ASK_MS, &answer, err);

	if (r == 0)
		picture_read(answer, ret);
	return r;
}

static void free_containers(struct pic_container *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gs_strv_free(&v[i].cards);
	free(v);
}

void picture_free(struct picture *pic)
{
	for (size_t i = 0; i < pic->n_holdings; i++) {
		gs_strv_free(&pic->holdings[i].cards);
		free_containers(pic->holdings[i].members, pic->holdings[i].n_members);
	}
	free_containers(pic->borrowers, pic->n_borrowers);
	free(pic->holdings);
	free(pic->cards);
	json_decref(pic->answer);
	*pic = (struct picture){ 0 };
}

/* ---- Looking up. */

const struct pic_holding *picture_holding(const struct picture *pic, const char *name)
{
	for (size_t i = 0; name && i < pic->n_holdings; i++)
		if (strcmp(pic->holdings[i].name, name) == 0)
			return &pic->holdings[i];
	return NULL;
}

const struct pic_holding *picture_holding_of(const struct picture *pic, const struct pic_card *card)
{
	return picture_holding(pic, card->holding);
}

static bool is(const char *s, const char *name)
{
	return s && strcmp(s, name) == 0;
}

const struct pic_card *picture_card(const struct picture *pic, const char *name)
{
	for (size_t i = 0; i < pic->n_cards; i++) {
		const struct pic_card *card = &pic->cards[i];

		if (is(card->name, name) || is(card->id, name) || is(card->uuid, name))
			return card;
	}
	return NULL;
}

const char *picture_state(const struct picture *pic, const struct pic_card *card)
{
	const struct pic_holding *holding = picture_holding_of(pic, card);

	return holding ? holding->state : "free";
}

const char *picture_why_not(const struct picture *pic, const struct pic_card *card)
{
	const struct pic_holding *holding = picture_holding_of(pic, card);

	if (!holding)
		return "nobody holds it";
	if (strcmp(holding->state, "lent") == 0)
		return NULL;
	if (pic->loaded == 0)
		return "the kernel module is not loaded";
	if (holding->why_not)
		return holding->why_not;
	return strcmp(holding->state, "active") == 0 ? "it is in use" : NULL;
}

bool picture_uses(const struct pic_container *container, const char *card)
{
	return gs_strv_has(&container->cards, card);
}

const char *picture_label(const struct pic_container *container)
{
	return container->name ? container->name : container->id;
}

const char *picture_life(const struct pic_container *container)
{
	if (container->ending)
		return "ending";
	return container->running ? "running" : "gone";
}

size_t picture_run(const struct gs_strv *list, size_t i)
{
	size_t n = 1;

	while (i + n < list->n && strcmp(list->v[i], list->v[i + n]) == 0)
		n++;
	return n;
}

/* ---- What is wrong. */

static void problem_of_holding(const struct picture *pic, const struct pic_holding *holding,
			       struct gs_strv *ret)
{
	if (strcmp(holding->state, "quarantine") == 0)
		gs_strv_take(ret,
			     gs_asprintf("holding %s is in quarantine: its holder goes on, and "
					 "a borrower still has files of its cards open",
					 holding->name));
	/* Without the module all of them are unknown. */
	if (strcmp(holding->state, "unknown") == 0 && pic->loaded)
		gs_strv_take(ret, gs_asprintf("the state of holding %s is not known, so it is not "
					      "lent: see which nodes are hooked (gpusharectl kmod "
					      "status)",
					      holding->name));
}

static void problem_of_card(const struct pic_card *card, struct gs_strv *ret)
{
	if (card->strangers)
		gs_strv_take(ret, gs_asprintf("card %s is used by a process that belongs to no "
					      "container of it",
					      card->name));
	if (card->unrevocable)
		gs_strv_take(ret, gs_asprintf("a return to card %s that makes no call is not held: "
					      "%s",
					      card->name, card->unrevocable));
	if (card->busy < 0)
		gs_strv_take(ret, gs_asprintf("the load of card %s is not known, so it is not lent",
					      card->name));
}

/* A borrower that goes on where nothing is lent any more. */
static void problem_of_borrower(const struct picture *pic, const struct pic_container *borrower,
				struct gs_strv *ret)
{
	for (size_t i = 0; borrower->running && i < borrower->cards.n; i++) {
		const struct pic_card *card = picture_card(pic, borrower->cards.v[i]);
		const char *state = card ? picture_state(pic, card) : "gone";

		if (strcmp(state, "lent") != 0 && strcmp(state, "returning") != 0 &&
		    strcmp(state, "quarantine") != 0)
			gs_strv_take(ret, gs_asprintf("borrower %s runs on card %s, which is not "
						      "lent (%s)",
						      picture_label(borrower), borrower->cards.v[i],
						      state));
	}
}

void picture_problems(const struct picture *pic, struct gs_strv *ret)
{
	if (pic->loaded == 0)
		gs_strv_add(ret, "the kernel module is not loaded (modprobe gpushare), so nothing "
				 "is lent");
	if (!pic->n_cards)
		gs_strv_add(ret, "the agent knows no card of this node");
	for (size_t i = 0; i < pic->n_holdings; i++)
		problem_of_holding(pic, &pic->holdings[i], ret);
	for (size_t i = 0; i < pic->n_cards; i++)
		problem_of_card(&pic->cards[i], ret);
	for (size_t i = 0; i < pic->n_borrowers; i++)
		problem_of_borrower(pic, &pic->borrowers[i], ret);
}
