/* SPDX-License-Identifier: Apache-2.0 */
/* The word that was meant, where one is misspelt. */
#ifndef GPUSHARE_COMMON_NEAREST_H
#define GPUSHARE_COMMON_NEAREST_H

#include <stddef.h>

/*
 * The one of the @n @words that is the fewest slips away from the @len bytes at @word: a letter
 * more, one less, another one, or two neighbours in the wrong order. NULL: each is more than a
 * third of its length away, or @word is longer than any of ours could be. The first one wins of
 * two that are as near.
 */
const char *gs_nearest(const char *word, size_t len, const char *const *words, size_t n);

#endif
