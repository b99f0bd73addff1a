// SPDX-License-Identifier: Apache-2.0
/* What is to be asked of a probe, in that order. */
#include <stdlib.h>
#include <string.h>

#include "agent/question.h"
#include "common/xalloc.h"

void questions_add(struct questions *list, size_t at, struct question question)
{
	list->v = gs_grow(list->v, list->n, sizeof(*list->v));
	memmove(list->v + at + 1, list->v + at, (list->n - at) * sizeof(*list->v));
	list->v[at] = question;
	list->n++;
}

struct question questions_take(struct questions *list, size_t at)
{
	struct question question = list->v[at];

	list->n--;
	memmove(list->v + at, list->v + at + 1, (list->n - at) * sizeof(*list->v));
	return question;
}

size_t questions_find(const struct questions *list, enum question_kind kind, const char *card)
{
	size_t i = 0;

	while (i < list->n &&
	       (list->v[i].kind != kind || (kind == ASK_ONE && strcmp(list->v[i].card, card) != 0)))
		i++;
	return i;
}

void questions_keep(struct questions *list, const struct gs_strv *ids)
{
	for (size_t i = list->n; i-- > 0;)
		if (list->v[i].kind == ASK_ONE && !gs_strv_has(ids, list->v[i].card))
			free(questions_take(list, i).card);
}

void questions_free(struct questions *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].card);
	free(list->v);
	*list = (struct questions){ 0 };
}
