// SPDX-License-Identifier: Apache-2.0
/* gpusharectl inspect: every card, who has it, and why it is not lent. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/picture.h"
#include "ctl/table.h"

/* How much of an id is shown, and how much names a container. */
#define SHORT_ID 12
#define PREFIX_MIN 6

/* What a container has to do with a card. */
enum part { HOLDS, SHARES, BORROWS, N_PARTS };

static const char *const part_key[N_PARTS] = { "holders", "sharers", "borrowers" };
static const char *const part_label[N_PARTS] = { "held by", "shared with", "borrowed by" };

/* Calls @each for the containers that have this part in the card. */
static void each(const struct picture *pic, const struct pic_card *card, enum part part,
		 void (*fn)(const struct pic_container *container, void *arg), void *arg)
{
	const struct pic_holding *holding = picture_holding_of(pic, card);

	for (size_t i = 0; part == BORROWS && i < pic->n_borrowers; i++)
		if (picture_uses(&pic->borrowers[i], card->name))
			fn(&pic->borrowers[i], arg);
	for (size_t i = 0; part != BORROWS && holding && i < holding->n_members; i++) {
		const struct pic_container *c = &holding->members[i];
		bool holds = c->role && strcmp(c->role, "holder") == 0;

		if (picture_uses(c, card->name) && holds == (part == HOLDS))
			fn(c, arg);
	}
}

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
		each(pic, card, part, match_container, &wanted);
	return wanted.found;
}

/* The cards that @name is about, in an array of its own; all without one. */
static const struct pic_card **choose(const struct picture *pic, const char *name, size_t *ret_n)
{
	const struct pic_card **cards = gs_calloc(pic->n_cards + 1, sizeof(const void *));

	*ret_n = 0;
	for (int whole = 1; whole >= 0 && !*ret_n; whole--)
		for (size_t i = 0; i < pic->n_cards; i++)
			if (!name || matches(pic, &pic->cards[i], name, whole))
				cards[(*ret_n)++] = &pic->cards[i];
	return cards;
}

/* ---- Words. */

static char *busy_text(const struct pic_card *card)
{
	return card->busy < 0 ? NULL : gs_asprintf("%.0f%%", card->busy * 100);
}

static char *memory_text(const struct pic_card *card)
{
	const double gib = 1024.0 * 1024 * 1024;

	if (!card->memory_total)
		return NULL;
	return gs_asprintf("%.1f/%.1f GiB", (double)card->memory_used / gib,
			   (double)card->memory_total / gib);
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

/* How long it has been in its state; NULL: not known. */
static const char *since_text(const struct picture *pic, const struct pic_card *card, char *buf)
{
	const struct pic_holding *holding = picture_holding_of(pic, card);

	if (!holding || holding->since_ms < 0)
		return NULL;
	return gs_duration_short((uint64_t)holding->since_ms, buf);
}

/* ---- The table. */

static void add_label(const struct pic_container *container, void *arg)
{
	gs_strv_add(arg, picture_label(container));
}

static void add_row(struct ctl_table *table, const struct picture *pic, const struct pic_card *card)
{
	cleanup_free char *busy = busy_text(card), *memory = memory_text(card);
	char since[GS_DURATION_MAX];

	ctl_table_add(table, card->name);
	ctl_table_add(table, picture_state(pic, card));
	ctl_table_add(table, since_text(pic, card, since));
	for (enum part part = HOLDS; part < N_PARTS; part++) {
		cleanup_strv struct gs_strv names = { 0 };
		cleanup_free char *joined = NULL;

		each(pic, card, part, add_label, &names);
		joined = gs_strv_join(&names);
		ctl_table_add(table, joined);
	}
	ctl_table_add(table, busy);
	ctl_table_add(table, memory);
	ctl_table_add(table, picture_why_not(pic, card));
}

static void print_table(const struct picture *pic, const struct pic_card **cards, size_t n)
{
	static const char *const heading[] = { "CARD",	  "STATE",	 "SINCE",
					       "HELD-BY", "SHARED-WITH", "BORROWED-BY",
					       "BUSY",	  "MEMORY",	 "NOT-LENT" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };

	for (size_t i = 0; i < GS_ARRAY_SIZE(heading); i++)
		ctl_table_add(&table, heading[i]);
	for (size_t i = 0; i < n; i++)
		add_row(&table, pic, cards[i]);
	ctl_table_print(&table);
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

static void print_card(const struct picture *pic, const struct pic_card *card)
{
	const struct pic_holding *holding = picture_holding_of(pic, card);
	cleanup_free char *busy = busy_text(card), *memory = memory_text(card);
	cleanup_free char *stores = stores_text(card);
	cleanup_table struct ctl_table table = { .columns = 2 };
	char since[GS_DURATION_MAX], touches[24];

	add_line(&table, "card", card->name);
	add_line(&table, "vendor", card->vendor);
	add_line(&table, "id", card->id);
	add_line(&table, "uuid", card->uuid);
	add_line(&table, "state", picture_state(pic, card));
	add_line(&table, "since", since_text(pic, card, since));
	add_line(&table, "not lent", picture_why_not(pic, card));
	add_line(&table, "holding", card->holding);
	if (holding && holding->touches >= 0) {
		(void)snprintf(touches, sizeof(touches), "%" PRId64, holding->touches);
		add_line(&table, "touches", touches);
	}
	for (enum part part = HOLDS; part < N_PARTS; part++)
		each(pic, card, part, add_container,
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

static json_t *card_json(const struct picture *pic, const struct pic_card *card)
{
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

		each(pic, card, part, add_json, containers);
		(void)json_object_set_new(json, part_key[part], containers);
	}
	return json;
}

/* ---- The verb. */

static int show(const struct gs_config *config, const char *name, enum ctl_format format)
{
	cleanup_picture struct picture pic = { 0 };
	cleanup_free const struct pic_card **cards = NULL;
	struct gs_err err = { 0 };
	size_t n;

	if (picture_ask(config, &pic, &err) < 0)
		return ctl_failed(&err);
	cards = choose(&pic, name, &n);
	if (name && !n) {
		ctl_say("no card, holding or container with a card is called %s", name);
		return CTL_FAILED;
	}
	if (format == CTL_JSON) {
		json_t *array = json_array();

		for (size_t i = 0; i < n; i++)
			(void)json_array_append_new(array, card_json(&pic, cards[i]));
		ctl_print_json(array);
	} else if (name) {
		for (size_t i = 0; i < n; i++) {
			if (i)
				(void)putchar('\n');
			print_card(&pic, cards[i]);
		}
	} else if (n) {
		print_table(&pic, cards, n);
	} else {
		ctl_say("the agent knows no card of this node");
	}
	return CTL_OK;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config = { 0 };
	enum ctl_format format = CTL_TABLE;
	int opt;

	while ((opt = ctl_getopt(&ctl_inspect, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_inspect);
		if (opt == '?' || ctl_read_format(&ctl_inspect, optarg, false, &format) != CTL_OK)
			return CTL_USAGE;
	}
	if (argc - optind > 1)
		return ctl_misused(&ctl_inspect, "what is %s?", argv[optind + 1]);
	if (ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	return show(&config, argv[optind], format);
}

const struct ctl_verb ctl_inspect = {
	.name = "inspect",
	.summary = "each card: who has it, since when, why it is not lent",
	.help = "usage: gpusharectl inspect [-o json] [CARD|HOLDING|CONTAINER]\n"
		"\n"
		"Lists every card of this node: its state and since when, who holds it, whom it\n"
		"is shared with, who borrows it, its load and memory, and why it is not lent.\n"
		"With a name, all about the cards that it is about: a card (its name, id or\n"
		"UUID), a holding, or a container (NS/POD/CONTAINER, or its id or at least the\n"
		"first six characters of that).\n"
		"\n"
		"  -o json  JSON instead: an array of cards\n"
		"\n"
		"Example: gpusharectl inspect team-a/dev/main\n",
	.run = run,
};
