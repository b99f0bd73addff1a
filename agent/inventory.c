// SPDX-License-Identifier: Apache-2.0
/* The node's cards and their load, put together from the vendors' sources. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory_source.h"
#include "agent/node_watch.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* How often to look for cards where no node can be watched. */
#define BLIND_MS 60000
#define VENDOR_TEXT_MAX (256 * 1024)

struct inventory {
	uv_loop_t *loop;
	struct inventory_ops ops;
	struct gs_catalogue catalogue;
	struct vendor_side *drivers; /* of all vendors, for their driver sections */
	size_t n_drivers;
	struct vendor_source **v; /* of the vendors that have an inventory */
	bool *answered; /* of each: it told its cards, or failed */
	size_t n;
	struct cards cards;
	struct load *loads; /* of each card */
	uv_timer_t poll, soon;
	struct node_watch *nodes; /* NULL: none, and to look again at refresh_ms */
	uint64_t refresh_ms;
	bool refresh; /* asked for */
	struct gs_strv unanswered; /* names of cards to be told as they are */
	unsigned int open; /* timers and sources that are not closed yet */
};

static void load_free(struct load *load)
{
	free(load->processes);
	gs_strv_free(&load->unseen);
	*load = (struct load){ 0 };
}

static size_t index_of(const struct inventory *inventory, const char *vendor, const char *id)
{
	size_t i = 0;

	while (i < inventory->cards.n && (strcmp(inventory->cards.v[i].vendor, vendor) != 0 ||
					  strcmp(inventory->cards.v[i].id, id) != 0))
		i++;
	return i;
}

/* The vendor's cards stand together. */
static void range_of(const struct inventory *inventory, const char *vendor, size_t *ret_first,
		     size_t *ret_n)
{
	const struct cards *cards = &inventory->cards;
	size_t i = 0, n = 0;

	while (i < cards->n && strcmp(cards->v[i].vendor, vendor) != 0)
		i++;
	while (i + n < cards->n && strcmp(cards->v[i + n].vendor, vendor) == 0)
		n++;
	*ret_first = i;
	*ret_n = n;
}

static void add_card(struct cards *cards, struct load **loads, struct card *card, struct load *load)
{
	cards->v = gs_grow(cards->v, cards->n, sizeof(*cards->v));
	*loads = gs_grow(*loads, cards->n, sizeof(**loads));
	cards->v[cards->n] = *card;
	(*loads)[cards->n++] = *load;
	*card = (struct card){ 0 };
	*load = (struct load){ 0 };
}

bool inventory_complete(const struct inventory *inventory)
{
	for (size_t i = 0; i < inventory->n; i++)
		if (!inventory->answered[i])
			return false;
	return true;
}

/* It told its cards, or failed to. */
static void has_answered(struct inventory *inventory, const struct vendor_source *source)
{
	size_t i = 0;

	while (inventory->v[i] != source)
		i++;
	if (inventory->answered[i])
		return;
	inventory->answered[i] = true;
	if (inventory->ops.complete && inventory_complete(inventory))
		inventory->ops.complete(inventory->ops.arg);
}

static void got_cards(struct vendor_source *source, struct card *fresh, size_t n, void *arg)
{
	struct inventory *inventory = arg;
	const char *vendor = vendor_source_side(source)->name;
	struct cards cards = { 0 }, told = { fresh, n };
	struct load *loads = NULL;
	size_t first, had;

	range_of(inventory, vendor, &first, &had);
	if (cards_equal(inventory->cards.v + first, had, fresh, n)) {
		cards_free(&told);
		has_answered(inventory, source);
		return;
	}
	/* The vendors stay in the catalogue's order, whoever answers first. */
	for (size_t i = 0; i < inventory->n; i++) {
		const char *name = vendor_source_side(inventory->v[i])->name;
		size_t at, count;

		range_of(inventory, name, &at, &count);
		for (size_t j = 0; inventory->v[i] != source && j < count; j++)
			add_card(&cards, &loads, &inventory->cards.v[at + j],
				 &inventory->loads[at + j]);
		for (size_t j = 0; inventory->v[i] == source && j < n; j++) {
			size_t old = 0;
			struct load none = { 0 };

			while (old < had &&
			       strcmp(inventory->cards.v[first + old].id, fresh[j].id) != 0)
				old++;
			add_card(&cards, &loads, &fresh[j],
				 old < had ? &inventory->loads[first + old] : &none);
		}
		/* What was moved is empty, and is no vendor's any more. */
		for (size_t j = 0; inventory->v[i] != source && j < count; j++)
			inventory->cards.v[at + j].vendor = gs_strdup("");
	}
	for (size_t i = 0; i < inventory->cards.n; i++)
		load_free(&inventory->loads[i]);
	cards_free(&inventory->cards);
	cards_free(&told);
	free(inventory->loads);
	inventory->cards = cards;
	inventory->loads = loads;
	inventory->ops.changed(inventory->ops.arg);
	has_answered(inventory, source);
}

static int got_load(struct vendor_source *source, const json_t *told, struct gs_err *err, void *arg)
{
	struct inventory *inventory = arg;
	const char *id = json_string_value(json_object_get(told, "card"));
	size_t i = id ? index_of(inventory, vendor_source_side(source)->name, id) :
			inventory->cards.n;
	int r;

	if (i == inventory->cards.n)
		return gs_err_set(err, EPROTO, "the load of a card that is none");
	r = vendor_source_parse_load(told, &inventory->loads[i], err);
	if (r == 0)
		inventory->ops.loaded(&inventory->cards.v[i], &inventory->loads[i],
				      inventory->ops.arg);
	return r;
}

static void got_unknown(struct vendor_source *source, void *arg)
{
	struct inventory *inventory = arg;
	size_t first, n;

	range_of(inventory, vendor_source_side(source)->name, &first, &n);
	for (size_t i = first; i < first + n; i++) {
		load_free(&inventory->loads[i]);
		inventory->loads[i].at_ms = gs_boottime_ms();
		inventory->ops.loaded(&inventory->cards.v[i], &inventory->loads[i],
				      inventory->ops.arg);
	}
}

static void got_failed(struct vendor_source *source, const char *why, void *arg)
{
	struct inventory *inventory = arg;

	inventory->ops.failed(vendor_source_side(source)->name, why, inventory->ops.arg);
	has_answered(inventory, source);
}

static void one_closed(void *arg)
{
	struct inventory *inventory = arg;

	if (--inventory->open)
		return;
	for (size_t i = 0; i < inventory->n_drivers; i++)
		vendor_side_free(&inventory->drivers[i]);
	for (size_t i = 0; i < inventory->cards.n; i++)
		load_free(&inventory->loads[i]);
	free(inventory->loads);
	cards_free(&inventory->cards);
	gs_catalogue_free(&inventory->catalogue);
	gs_strv_free(&inventory->unanswered);
	free(inventory->drivers);
	free(inventory->v);
	free(inventory->answered);
	free(inventory);
}

static void timer_closed(uv_handle_t *handle)
{
	one_closed(handle->data);
}

static void poll_all(uv_timer_t *timer)
{
	struct inventory *inventory = timer->data;

	for (size_t i = 0; i < inventory->n; i++)
		vendor_source_poll(inventory->v[i]);
	if (!inventory->nodes && gs_boottime_ms() >= inventory->refresh_ms) {
		inventory->refresh_ms = gs_boottime_ms() + BLIND_MS;
		inventory_refresh(inventory);
	}
}

/* What was asked for, from the loop: nobody is called back from inside a call of his. */
static void do_soon(uv_timer_t *timer)
{
	struct inventory *inventory = timer->data;
	cleanup_strv struct gs_strv names = inventory->unanswered;
	bool refresh = inventory->refresh;

	inventory->refresh = false;
	inventory->unanswered = (struct gs_strv){ 0 };
	for (size_t i = 0; i < names.n; i++) {
		const struct card *card = cards_find(&inventory->cards, names.v[i]);

		if (card)
			inventory->ops.loaded(card, &inventory->loads[card - inventory->cards.v],
					      inventory->ops.arg);
	}
	for (size_t i = 0; refresh && i < inventory->n; i++)
		vendor_source_refresh(inventory->v[i]);
}

/* Reads one vendor's file once more, for the sections that the catalogue does not keep. */
static int add_vendor(struct inventory *inventory, const char *file, const char *probe,
		      struct gs_err *err)
{
	const struct vendor_source_ops ops = { got_cards,  got_load,   got_unknown,
					       got_failed, one_closed, inventory };
	cleanup_vendor_side struct vendor_side side = { 0 };
	cleanup_free char *text = NULL;
	size_t len;
	int r = gs_file_read(AT_FDCWD, file, 0, VENDOR_TEXT_MAX, &text, &len, NULL, err);

	if (r == 0)
		r = vendor_side_parse(&side, file, text, len, err);
	if (r == 0)
		r = vendor_side_parse(&inventory->drivers[inventory->n_drivers], file, text, len,
				      err);
	if (r < 0)
		return r;
	inventory->n_drivers++;
	if (side.inventory.source == INVENTORY_NONE)
		return 0;
	inventory->v[inventory->n++] = vendor_source_new(inventory->loop, inventory->ops.spawner,
							 probe, file, gs_steal(text), &side, &ops);
	inventory->open++;
	return 0;
}

static void nodes_changed(void *arg)
{
	inventory_refresh(arg);
}

/*
 * A vendor without cards has no process that could notice a driver, and no hook either. A user has
 * few inotify instances, and without one the agent is still worth having.
 */
static void watch_nodes(struct inventory *inventory)
{
	cleanup_strv struct gs_strv globs = { 0 };

	for (size_t i = 0; i < inventory->n; i++) {
		const struct gs_vendor *rules =
			vendor_side_rules(vendor_source_side(inventory->v[i]));

		for (size_t j = 0; j < rules->n_nodes; j++)
			gs_strv_add(&globs, rules->nodes[j].glob);
	}
	if (node_watch_new(inventory->loop, &globs, nodes_changed, one_closed, inventory,
			   &inventory->nodes, NULL) == 0)
		inventory->open++;
}

int inventory_new(uv_loop_t *loop, const struct gs_config *config, const char *probe,
		  unsigned int period_ms, const struct inventory_ops *ops, struct inventory **ret,
		  struct gs_err *err)
{
	struct inventory *inventory = gs_calloc(1, sizeof(*inventory));
	int r;

	inventory->loop = loop;
	inventory->ops = *ops;
	(void)uv_timer_init(loop, &inventory->poll);
	(void)uv_timer_init(loop, &inventory->soon);
	inventory->poll.data = inventory->soon.data = inventory;
	inventory->open = 2;
	r = gs_catalogue_load(&inventory->catalogue, &config->vendor_dirs, err);
	inventory->drivers = gs_calloc(inventory->catalogue.n + 1, sizeof(*inventory->drivers));
	inventory->v = gs_calloc(inventory->catalogue.n + 1, sizeof(void *));
	inventory->answered = gs_calloc(inventory->catalogue.n + 1, sizeof(*inventory->answered));
	for (size_t i = 0; r == 0 && i < inventory->catalogue.n; i++)
		r = add_vendor(inventory, inventory->catalogue.v[i].file, probe, err);
	if (r < 0) {
		inventory_free(inventory);
		return r;
	}
	watch_nodes(inventory);
	(void)uv_timer_start(&inventory->poll, poll_all, period_ms, period_ms);
	*ret = inventory;
	inventory_refresh(inventory);
	return 0;
}

void inventory_free(struct inventory *inventory)
{
	if (!inventory)
		return;
	for (size_t i = 0; i < inventory->n; i++)
		vendor_source_free(inventory->v[i]);
	if (inventory->nodes)
		node_watch_free(inventory->nodes);
	uv_close((uv_handle_t *)&inventory->poll, timer_closed);
	uv_close((uv_handle_t *)&inventory->soon, timer_closed);
}

const struct cards *inventory_cards(const struct inventory *inventory)
{
	return &inventory->cards;
}

const struct gs_catalogue *inventory_catalogue(const struct inventory *inventory)
{
	return &inventory->catalogue;
}

const struct vendor_driver *inventory_driver(const struct inventory *inventory, const char *vendor)
{
	for (size_t i = 0; i < inventory->n_drivers; i++)
		if (strcmp(inventory->drivers[i].name, vendor) == 0)
			return inventory->drivers[i].driver.vendor ? &inventory->drivers[i].driver :
								     NULL;
	return NULL;
}

const struct load *inventory_load(const struct inventory *inventory, const char *card)
{
	const struct card *found = cards_find(&inventory->cards, card);

	return found ? &inventory->loads[found - inventory->cards.v] : NULL;
}

void inventory_refresh(struct inventory *inventory)
{
	inventory->refresh = true;
	(void)uv_timer_start(&inventory->soon, do_soon, 0, 0);
}

static void read_card(struct inventory *inventory, const char *name, enum probe_when when)
{
	const struct card *card = cards_find(&inventory->cards, name);

	if (!card)
		return;
	for (size_t i = 0; i < inventory->n; i++)
		if (strcmp(vendor_source_side(inventory->v[i])->name, card->vendor) == 0 &&
		    vendor_source_read(inventory->v[i], card->id, when))
			return;
	gs_strv_add_once(&inventory->unanswered, card->name);
	(void)uv_timer_start(&inventory->soon, do_soon, 0, 0);
}

void inventory_read(struct inventory *inventory, const char *card)
{
	read_card(inventory, card, PROBE_FREE);
}

void inventory_read_all(struct inventory *inventory, const char *card)
{
	read_card(inventory, card, PROBE_NOW);
}
