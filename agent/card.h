/* SPDX-License-Identifier: Apache-2.0 */
/* The node's cards, as the vendors' inventories tell them. */
#ifndef GPUSHARE_AGENT_CARD_H
#define GPUSHARE_AGENT_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/* A device node of a card, or one that the vendor's cards share and that is hooked. */
struct card_node {
	char *path; /* on the host */
	uint32_t dev; /* as the kernel module writes it: gs_kdev() */
	bool own; /* this card's alone; else shared: a control node, or the node of a sliced card */
	bool hook; /* its functions are to be hooked; else it only tells whose card it is */
	bool revocable; /* mappings of it can be taken away */
};

struct card {
	char *name; /* unique on the node and usable as a file name: "<vendor>-<id>" */
	char *vendor; /* name of the catalogue's entry */
	char *id; /* as the kubelet knows it */
	char *uuid, *pci; /* NULL: not told */
	struct card_node *nodes;
	size_t n_nodes;
	struct gs_strv select; /* values that name it in a selecting variable, best first */
	int index; /* -1: not told */
	unsigned int settle_ms; /* how long after the last close memory may still be in use */
};

struct cards {
	struct card *v;
	size_t n;
};

/* Frees what it holds; it is {0} then. */
void cards_free(struct cards *cards);

/* The card of that name or kubelet's id; NULL: none. */
const struct card *cards_find(const struct cards *cards, const char *name);

/* The card that has this node for its own; NULL: none. */
const struct card *cards_of_dev(const struct cards *cards, uint32_t dev);

/* Do both tell the same of the same cards in the same order? */
bool cards_equal(const struct card *a, size_t n, const struct card *b, size_t m);

/* A name for the card @id of @vendor: what can't be in a file's name is '_'. The caller frees. */
char *card_name(const char *vendor, const char *id);

/* Frees what one card holds. */
void card_free(struct card *card);

#endif
