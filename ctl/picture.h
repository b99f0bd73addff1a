/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: the agent's answer to "status" (include/gpushare/agent.h), taken apart. */
#ifndef GPUSHARE_CTL_PICTURE_H
#define GPUSHARE_CTL_PICTURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/config.h"
#include "common/err.h"

/* Strings are the answer's; NULL where they are not told. */
struct pic_container {
	const char *id, *name, *role;
	const char *user_id, *partition; /* whose it is, as the platform says */
	bool running, ending;
	int64_t memory_used; /* bytes, on all its cards; -1: not known */
	struct gs_strv cards;
};

struct pic_card {
	const char *name, *vendor, *id, *uuid, *holding;
	double busy; /* 0 to 1; below 0: not known */
	uint64_t memory_used, memory_total; /* total 0: not known */
	bool strangers;
	int revocable; /* is a return that makes no call held, too? -1: not known */
	const char *unrevocable; /* why not, though its vendor's entry says so; NULL */
};

struct pic_holding {
	const char *name, *state;
	int64_t since_ms, touches; /* -1: not known */
	struct gs_strv cards;
	struct pic_container *members;
	size_t n_members;
	bool lend;
	const char *why_not;
};

struct picture {
	json_t *answer; /* whose strings the others are */
	int loaded; /* is the kernel module there? -1: not known */
	const char *version; /* the module's */
	struct pic_card *cards;
	struct pic_holding *holdings;
	struct pic_container *borrowers;
	size_t n_cards, n_holdings, n_borrowers;
};

/*
 * Takes the answer apart; what is missing in it, or is of another type, counts as not told. The
 * reference is taken, and the caller frees @ret.
 */
void picture_read(json_t *answer, struct picture *ret);

/* Asks the agent for it; errors as ctl_ask(). */
int picture_ask(const struct gs_config *config, struct picture *ret, struct gs_err *err);

/* Frees what it holds. */
void picture_free(struct picture *pic);
#define cleanup_picture __attribute__((cleanup(picture_free)))

/* The holding of that card, of that name; NULL: none. */
const struct pic_holding *picture_holding_of(const struct picture *pic,
					     const struct pic_card *card);
const struct pic_holding *picture_holding(const struct picture *pic, const char *name);

/* The card of that name, kubelet's id or UUID; NULL: none. */
const struct pic_card *picture_card(const struct picture *pic, const char *name);

/* A card's state: its holding's, or "free". */
const char *picture_state(const struct picture *pic, const struct pic_card *card);

/* Why the card is not lent, in words; NULL where it is, or where nothing is against it. */
const char *picture_why_not(const struct picture *pic, const struct pic_card *card);

/* Does the container use that card? */
bool picture_uses(const struct pic_container *container, const char *card);

/* What people call it: its name, else its id. */
const char *picture_label(const struct pic_container *container);

/* "running", "ending" or "gone". */
const char *picture_life(const struct pic_container *container);

/* How many of the sorted list are the same as its @i-th: at least 1. */
size_t picture_run(const struct gs_strv *list, size_t i);

/* What is wrong, a sentence each. */
void picture_problems(const struct picture *pic, struct gs_strv *ret);

/* As JSON. What is not known is null, so that every object of a kind has the same keys. */
json_t *picture_json_container(const struct pic_container *container);
json_t *picture_json_card(const struct picture *pic, const struct pic_card *card);
json_t *picture_json_holding(const struct pic_holding *holding);

#endif
