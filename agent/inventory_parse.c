// SPDX-License-Identifier: Apache-2.0
/* What a probe answers, checked: a broken library in it may have written over its memory. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory_source.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/json.h"
#include "common/kmsg.h"
#include "common/proc.h"
#include "common/xalloc.h"

#define TEXT_MAX 128 /* of an id */
#define SELECT_MAX 8
#define NODES_MAX 256
#define MINOR_MAX 0xfffff
#define MAJOR_MAX 0xfff

/* Can the text be shown, and kept in files? */
static bool plain(const char *s)
{
	size_t n = strlen(s);

	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return n && n <= TEXT_MAX;
}

static int get_text(const json_t *obj, const char *key, bool required, char **ret,
		    struct gs_err *err)
{
	int r = gs_json_str(obj, "a card", key, required, ret, err);

	if (r == 0 && *ret && !plain(*ret))
		return gs_err_set(err, EPROTO, "a card's %s is no plain text", key);
	return r;
}

static int get_node(const json_t *obj, struct card_node *node, struct gs_err *err)
{
	uint64_t node_major = 0, node_minor = 0;
	int r = gs_json_str(obj, "a node", "path", true, &node->path, err);

	if (r == 0)
		r = gs_json_uint(obj, "a node", "major", true, &node_major, err);
	if (r == 0)
		r = gs_json_uint(obj, "a node", "minor", true, &node_minor, err);
	if (r < 0)
		return r;
	if (!gs_path_plain(node->path) || node_major > MAJOR_MAX || node_minor > MINOR_MAX)
		return gs_err_set(err, EPROTO, "a node that can't be");
	node->dev = gs_kdev((unsigned int)node_major, (unsigned int)node_minor);
	node->own = json_is_true(json_object_get(obj, "own"));
	node->hook = json_is_true(json_object_get(obj, "hook"));
	node->revocable = json_is_true(json_object_get(obj, "revocable"));
	return 0;
}

static int get_nodes(const json_t *obj, struct card *card, struct gs_err *err)
{
	const json_t *list = json_object_get(obj, "nodes"), *item;
	size_t i;
	int r = 0;

	if (json_array_size(list) > NODES_MAX)
		return gs_err_set(err, EPROTO, "a card of %zu nodes", json_array_size(list));
	json_array_foreach(list, i, item) {
		card->nodes = gs_grow(card->nodes, card->n_nodes, sizeof(*card->nodes));
		card->nodes[card->n_nodes] = (struct card_node){ 0 };
		r = get_node(item, &card->nodes[card->n_nodes++], err);
		if (r < 0)
			break;
	}
	return r;
}

static int get_card(const struct vendor_side *side, const json_t *obj, struct card *card,
		    struct gs_err *err)
{
	uint64_t index = UINT64_MAX;
	int r = get_text(obj, "id", true, &card->id, err);

	if (r == 0)
		r = get_text(obj, "uuid", false, &card->uuid, err);
	if (r == 0)
		r = get_text(obj, "pci", false, &card->pci, err);
	if (r == 0)
		r = gs_json_uint(obj, "a card", "index", false, &index, err);
	if (r == 0)
		r = gs_json_strv(obj, "a card", "select", false, &card->select, err);
	if (r == 0 && card->select.n > SELECT_MAX)
		r = gs_err_set(err, EPROTO, "a card of %zu selectors", card->select.n);
	for (size_t i = 0; r == 0 && i < card->select.n; i++)
		if (!plain(card->select.v[i]))
			r = gs_err_set(err, EPROTO, "a card's selector is no plain text");
	if (r == 0)
		r = get_nodes(obj, card, err);
	if (r < 0)
		return r;
	card->index = index < INT_MAX ? (int)index : -1;
	card->vendor = gs_strdup(side->name);
	card->settle_ms = side->settle_ms;
	card->name = card_name(side->name, card->id);
	return 0;
}

/* Names of cards whose ids differ in what a file's name can't hold are told apart by a number. */
static int settle_names(struct cards *cards, struct gs_err *err)
{
	for (size_t i = 0; i < cards->n; i++) {
		unsigned int copies = 1;

		for (size_t j = 0; j < i; j++) {
			if (strcmp(cards->v[i].id, cards->v[j].id) == 0)
				return gs_err_set(err, EPROTO, "two cards with the id %s",
						  cards->v[i].id);
			if (strcmp(cards->v[i].name, cards->v[j].name) == 0) {
				char *name = card_name(cards->v[i].vendor, cards->v[i].id);

				free(cards->v[i].name);
				cards->v[i].name = gs_asprintf("%s+%u", name, ++copies);
				free(name);
				j = (size_t)-1; /* this one may be taken as well */
			}
		}
	}
	return 0;
}

int vendor_source_parse_cards(const struct vendor_side *side, const json_t *list, struct card **ret,
			      size_t *ret_n, struct gs_err *err)
{
	struct cards cards = { 0 };
	const json_t *item;
	size_t i;
	int r = 0;

	if (!json_is_array(list) || json_array_size(list) > PROBE_CARDS_MAX)
		return gs_err_set(err, EPROTO, "no list of cards");
	json_array_foreach(list, i, item) {
		cards.v = gs_grow(cards.v, cards.n, sizeof(*cards.v));
		cards.v[cards.n] = (struct card){ .index = -1 };
		r = get_card(side, item, &cards.v[cards.n++], err);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = settle_names(&cards, err);
	if (r < 0) {
		cards_free(&cards);
		return r;
	}
	*ret = cards.v;
	*ret_n = cards.n;
	return 0;
}

/* What part of a time; none: not known. */
static int get_part(const json_t *busy, bool *ret_known, double *ret, struct gs_err *err)
{
	if (busy && (!json_is_number(busy) || !(json_number_value(busy) >= 0) ||
		     json_number_value(busy) > 1))
		return gs_err_set(err, EPROTO, "a load that can't be");
	*ret_known = busy != NULL;
	*ret = busy ? json_number_value(busy) : 0;
	return 0;
}

static int get_process(const json_t *item, struct load_process *ret, struct gs_err *err)
{
	uint64_t pid = 0;
	int r = gs_json_uint(item, "a process", "pid", true, &pid, err);

	if (r == 0)
		r = gs_json_uint(item, "a process", "memory", false, &ret->memory, err);
	if (r == 0)
		r = get_part(json_object_get(item, "busy"), &ret->busy_known, &ret->busy, err);
	if (r == 0 && (pid == 0 || pid > INT_MAX))
		r = gs_err_set(err, EPROTO, "a process number that can't be");
	ret->pid = (pid_t)pid;
	return r;
}

/* @unseen is taken over where it goes well. */
static int get_processes(const json_t *list, uint64_t since, struct gs_strv *unseen,
			 struct load *load, struct gs_err *err)
{
	struct load_process *v;
	const json_t *item;
	size_t i, n = json_array_size(list);

	if (!json_is_array(list) || n > PROBE_PROCESSES_MAX)
		return gs_err_set(err, EPROTO, "no list of processes");
	v = gs_calloc(n + 1, sizeof(*v));
	json_array_foreach(list, i, item) {
		int r = get_process(item, &v[i], err);

		if (r < 0) {
			free(v);
			return r;
		}
	}
	gs_strv_free(&load->unseen);
	load->unseen = *unseen;
	*unseen = (struct gs_strv){ 0 };
	free(load->processes);
	load->processes = v;
	load->n_processes = n;
	load->processes_known = true;
	load->processes_at_ms = load->at_ms;
	load->busy_since_ms = since < load->at_ms ? since : load->at_ms;
	return 0;
}

int vendor_source_parse_load(const json_t *obj, struct load *load, struct gs_err *err)
{
	const json_t *processes = json_object_get(obj, "processes");
	uint64_t now = gs_boottime_ms(), at = now, used = 0, total = 0, since = 0;
	cleanup_strv struct gs_strv unseen = { 0 };
	double part;
	bool known;
	int r = gs_json_uint(obj, "a load", "at_ms", true, &at, err);

	if (r == 0)
		r = gs_json_uint(obj, "a load", "memory_used", false, &used, err);
	if (r == 0)
		r = gs_json_uint(obj, "a load", "memory_total", false, &total, err);
	if (r == 0)
		r = gs_json_uint(obj, "a load", "busy_since_ms", false, &since, err);
	if (r == 0)
		r = get_part(json_object_get(obj, "busy"), &known, &part, err);
	if (r == 0)
		r = gs_json_strv(obj, "a load", "unseen", false, &unseen, err);
	if (r == 0 && unseen.n > PROBE_UNSEEN_MAX)
		r = gs_err_set(err, EPROTO, "too many pods that were not looked at");
	if (r < 0)
		return r;
	load->at_ms = at < now ? at : now;
	load->known = known;
	load->busy = part;
	load->memory_known = json_object_get(obj, "memory_used") != NULL;
	load->memory_used = used;
	load->memory_total = total;
	return processes ? get_processes(processes, since, &unseen, load, err) : 0;
}
