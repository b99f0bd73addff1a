/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be asked of a probe, in that order. */
#ifndef GPUSHARE_AGENT_QUESTION_H
#define GPUSHARE_AGENT_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/probe.h"
#include "common/buf.h"

enum question_kind { ASK_VENDOR, ASK_CARDS, ASK_ALL, ASK_ONE };

struct question {
	enum question_kind kind;
	char *card; /* ASK_ONE: its id */
	enum probe_when when; /* ASK_ALL, ASK_ONE: the list of processes */
};

/* Starts as {0}. */
struct questions {
	struct question *v;
	size_t n;
};

/* Puts a question at that place; its card goes over to the list. */
void questions_add(struct questions *list, size_t at, struct question question);

/* Takes the question at that place out; its card goes over to the caller. */
struct question questions_take(struct questions *list, size_t at);

/* Where that is to be asked (@card: of which card, for ASK_ONE); list->n: nowhere. */
size_t questions_find(const struct questions *list, enum question_kind kind, const char *card);

/* Drops what is to be asked of cards that are not in @ids. */
void questions_keep(struct questions *list, const struct gs_strv *ids);

/* Frees what it holds; it is {0} then. */
void questions_free(struct questions *list);

#endif
