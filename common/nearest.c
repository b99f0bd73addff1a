// SPDX-License-Identifier: Apache-2.0
/* The word that was meant: the distance by Damerau and Levenshtein, of short words. */
#include <string.h>

#include "common/nearest.h"

/* Longer than any key; bounds the work on what comes from outside. */
#define WORD_MAX 40

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	/* Of the beginnings of both; the last three lines are enough. */
	size_t rows[3][WORD_MAX + 1];

	for (size_t i = 0; i <= n; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			if (i == 0) {
				row[j] = j;
				continue;
			}
			row[j] = least(above[j], row[j - 1]) + 1;
			row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], higher[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

const char *gs_nearest(const char *word, size_t len, const char *const *words, size_t n)
{
	const char *ret = NULL;
	size_t best = WORD_MAX;

	if (len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(words[i]), d;

		if (size > WORD_MAX)
			continue;
		d = distance(word, len, words[i], size);
		if (d < best && d * 3 <= size) {
			best = d;
			ret = words[i];
		}
	}
	return ret;
}
