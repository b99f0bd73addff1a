/* SPDX-License-Identifier: Apache-2.0 */
/* Merging the sources' vendor slices into the target's spec. */
#ifndef GPUSHARE_RUNTIME_INJECT_H
#define GPUSHARE_RUNTIME_INJECT_H

#include "runtime/rewrite.h"
#include "runtime/source.h"

/* A device that a source gives, with the access that the source has. */
struct granted {
	char type;
	int64_t major, minor;
	unsigned int access;
};

/* The devices of all sources, for the fence. Starts as {0}; free(v). */
struct granted_list {
	struct granted *v;
	size_t n;
};

/*
 * Adds devices, rules, mounts, environment and hooks of @sources to @rw. @next is the runtime
 * that runs the target: what it injects by selector itself is not injected twice.
 * -ENODEV: a source has nothing to share; -EEXIST: two things claim one path, destination or
 * variable (the message names both); -ESTALE: the host's node is another one than the source's;
 * -EACCES: which of the node's cards are a privileged source's own can't be told.
 */
int inject(struct rewrite *rw, const struct gs_catalogue *cat, const struct source *sources,
	   size_t n_sources, const char *next, struct granted_list *ret_granted,
	   struct gs_err *err);

/* inject_env.c: the environment's part of it. */
int inject_env(struct rewrite *rw, const struct gs_catalogue *cat, const struct source *sources,
	       size_t n_sources, const char *next, struct gs_err *err);

#endif
