// SPDX-License-Identifier: Apache-2.0
/* A picture of a node as a text that is not too long. */
#include <stdlib.h>
#include <string.h>

#include "agent/publisher.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* Cuts the list to @n elements; gives how many that were too many. */
static size_t cut(json_t *list, size_t n)
{
	size_t before = json_array_size(list), gone = before > n ? before - n : 0;

	while (json_array_size(list) > n)
		(void)json_array_remove(list, json_array_size(list) - 1);
	return gone;
}

/* Leaves at most @n containers of each holding, and @n borrowers. */
static size_t cut_containers(json_t *picture, size_t n)
{
	const json_t *holdings = json_object_get(picture, "holdings");
	size_t gone = cut(json_object_get(picture, "borrowers"), n);

	for (size_t i = 0; i < json_array_size(holdings); i++)
		gone += cut(json_object_get(json_array_get(holdings, i), "members"), n);
	return gone;
}

static char *text_of(json_t *picture, size_t left_out)
{
	char *text;

	if (left_out)
		(void)json_object_set_new(picture, "left_out", json_integer((json_int_t)left_out));
	text = json_dumps(picture, JSON_COMPACT);
	return text ? text : gs_strdup("{}");
}

char *publisher_fit(json_t *picture, size_t max)
{
	static const size_t most[] = { 64, 16, 4, 1, 0 };
	json_t *cards = json_object_get(picture, "cards");
	json_t *holdings = json_object_get(picture, "holdings");
	char *text = text_of(picture, 0);
	size_t left_out = 0;

	for (size_t i = 0; i < GS_ARRAY_SIZE(most) && strlen(text) > max; i++) {
		left_out += cut_containers(picture, most[i]);
		free(text);
		text = text_of(picture, left_out);
	}
	while (strlen(text) > max && (json_array_size(cards) || json_array_size(holdings))) {
		left_out += cut(cards, json_array_size(cards) / 2);
		(void)cut(holdings, json_array_size(holdings) / 2);
		free(text);
		text = text_of(picture, left_out);
	}
	return text;
}
