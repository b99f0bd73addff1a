// SPDX-License-Identifier: Apache-2.0
/* What people are told of a card. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/xalloc.h"
#include "ctl/cards.h"

static const double GIB = 1024.0 * 1024 * 1024;

void card_each(const struct picture *pic, const struct pic_card *card, enum part part,
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

static void add_label(const struct pic_container *container, void *arg)
{
	gs_strv_add(arg, picture_label(container));
}

char *card_names(const struct picture *pic, const struct pic_card *card, enum part part)
{
	cleanup_strv struct gs_strv names = { 0 };

	card_each(pic, card, part, add_label, &names);
	return gs_strv_join(&names);
}

char *card_busy(const struct pic_card *card)
{
	return card->busy < 0 ? NULL : gs_asprintf("%.0f%%", card->busy * 100);
}

char *card_memory(const struct pic_card *card)
{
	if (!card->memory_total)
		return NULL;
	return gs_asprintf("%.1f/%.1f GiB", (double)card->memory_used / GIB,
			   (double)card->memory_total / GIB);
}

char *card_bytes(uint64_t bytes)
{
	if ((double)bytes < GIB)
		return gs_asprintf("%.0f MiB", (double)bytes / GIB * 1024);
	return gs_asprintf("%.1f GiB", (double)bytes / GIB);
}

const char *card_since(const struct picture *pic, const struct pic_card *card, char *buf)
{
	const struct pic_holding *holding = picture_holding_of(pic, card);

	if (!holding || holding->since_ms < 0)
		return NULL;
	return gs_duration_short((uint64_t)holding->since_ms, buf);
}
