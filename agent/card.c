// SPDX-License-Identifier: Apache-2.0
/* Cards and lists of them. */
#include <stdlib.h>
#include <string.h>

#include "agent/card.h"
#include "common/xalloc.h"

void card_free(struct card *card)
{
	free(card->name);
	free(card->vendor);
	free(card->id);
	free(card->uuid);
	free(card->pci);
	for (size_t i = 0; i < card->n_nodes; i++)
		free(card->nodes[i].path);
	free(card->nodes);
	gs_strv_free(&card->select);
	*card = (struct card){ 0 };
}

void cards_free(struct cards *cards)
{
	for (size_t i = 0; i < cards->n; i++)
		card_free(&cards->v[i]);
	free(cards->v);
	*cards = (struct cards){ 0 };
}

const struct card *cards_find(const struct cards *cards, const char *name)
{
	for (size_t i = 0; i < cards->n; i++)
		if (strcmp(cards->v[i].name, name) == 0)
			return &cards->v[i];
	for (size_t i = 0; i < cards->n; i++)
		if (strcmp(cards->v[i].id, name) == 0)
			return &cards->v[i];
	return NULL;
}

const struct card *cards_of_dev(const struct cards *cards, uint32_t dev)
{
	for (size_t i = 0; i < cards->n; i++)
		for (size_t j = 0; j < cards->v[i].n_nodes; j++)
			if (cards->v[i].nodes[j].own && cards->v[i].nodes[j].dev == dev)
				return &cards->v[i];
	return NULL;
}

/* NULL is a value too. */
static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_nodes(const struct card *a, const struct card *b)
{
	if (a->n_nodes != b->n_nodes)
		return false;
	for (size_t i = 0; i < a->n_nodes; i++) {
		const struct card_node *x = &a->nodes[i], *y = &b->nodes[i];

		if (!same(x->path, y->path) || x->dev != y->dev || x->own != y->own ||
		    x->hook != y->hook || x->revocable != y->revocable)
			return false;
	}
	return true;
}

static bool same_card(const struct card *a, const struct card *b)
{
	if (!same(a->name, b->name) || !same(a->vendor, b->vendor) || !same(a->id, b->id) ||
	    !same(a->uuid, b->uuid) || !same(a->pci, b->pci) || a->index != b->index ||
	    a->settle_ms != b->settle_ms || a->select.n != b->select.n)
		return false;
	for (size_t i = 0; i < a->select.n; i++)
		if (strcmp(a->select.v[i], b->select.v[i]) != 0)
			return false;
	return same_nodes(a, b);
}

bool cards_equal(const struct card *a, size_t n, const struct card *b, size_t m)
{
	if (n != m)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!same_card(&a[i], &b[i]))
			return false;
	return true;
}

char *card_name(const char *vendor, const char *id)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_+-.:";
	char *name = gs_asprintf("%s-%s", vendor, id), *s = name;

	while (*(s += strspn(s, plain)))
		*s = '_';
	return name;
}
