/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: what people are told of a card, for inspect and top. */
#ifndef GPUSHARE_CTL_CARDS_H
#define GPUSHARE_CTL_CARDS_H

#include "ctl/picture.h"

/* What a container has to do with a card. */
enum part { HOLDS, SHARES, BORROWS, N_PARTS };

/* Calls @fn for the containers that have this part in the card. */
void card_each(const struct picture *pic, const struct pic_card *card, enum part part,
	       void (*fn)(const struct pic_container *container, void *arg), void *arg);

/* Their names with commas between, "" for none; the caller frees. */
char *card_names(const struct picture *pic, const struct pic_card *card, enum part part);

/* "38%", "12.0/80.0 GiB"; NULL: not known. The caller frees. */
char *card_busy(const struct pic_card *card);
char *card_memory(const struct pic_card *card);

/*
 * How long it has been in its state, into @buf of GS_DURATION_MAX bytes; NULL: not known, or nobody
 * holds it.
 */
const char *card_since(const struct picture *pic, const struct pic_card *card, char *buf);

/* Bytes as people read them: "512 MiB", "12.0 GiB"; the caller frees. */
char *card_bytes(uint64_t bytes);

#endif
