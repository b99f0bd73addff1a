/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with cards, made of a temporary directory, for the inventory's tests. */
#ifndef GPUSHARE_TESTS_FAKECARDS_H
#define GPUSHARE_TESTS_FAKECARDS_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/probe.h"
#include "common/config.h"

/*
 * Makes a root with /sys, /dev and /proc (the real one), tells the probe of it by
 * GPUSHARE_PROBE_ROOT, and gives its path; fakecards_end() removes it. The catalogue's folder is
 * <root>/vendors.
 */
char *fakecards_begin(void);
void fakecards_end(char *root);

/* A card as of tests/fakegpu: /sys/class/fakegpu/fakegpu<N>; its node is a link to @node. */
void fakecards_add(const char *root, unsigned int n, const char *node);

/* Changes a file of such a card. */
void fakecards_set(const char *root, unsigned int n, const char *file, const char *text);

/* Makes <root>/@path a symbolic link to @to, with the folders before it, unless it is that. */
void fakecards_link(const char *root, const char *path, const char *to);

/* Makes <root>/@path a copy of @name, a file of build/programs if that is no absolute path. */
void fakecards_copy(const char *root, const char *path, const char *name);

/* Puts the entry tests/fakegpu/fakegpu.json, or the text @entry, into the catalogue. */
void fakecards_fakegpu(const char *root);
void fakecards_vendor(const char *root, const char *file, const char *entry);

/* A config with that catalogue. */
void fakecards_config(struct gs_config *config, const char *root);

/* The path of a program of the build under test; the caller frees. */
char *fakecards_program(const char *name);

/* Asks the probe in this very process, and gives its answer; the caller decrefs. */
json_t *fakecards_ask(struct probe *probe, const char *request);
/* Gives it an entry. Fails the test where that is refused. */
void fakecards_tell(struct probe *probe, const char *entry);

/* The member of a card or load of an answer, by a path as "cards.0.nodes.1.path"; NULL: none. */
json_t *fakecards_at(json_t *answer, const char *path);
const char *fakecards_text(json_t *answer, const char *path);
/* -1: none. */
double fakecards_number(json_t *answer, const char *path);

/* A process that has @path open until it is killed, by fakecards_kill(). */
pid_t fakecards_holder(const char *path);
void fakecards_kill(pid_t pid);

#endif
