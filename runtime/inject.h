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

/* What the merge looks at. */
struct inject {
	const struct gs_catalogue *cat;
	const struct slice *own; /* the target's own vendor slice */
	const struct source *sources;
	size_t n_sources;
	const char *next; /* the runtime that will run the target */
	/*
	 * The target may have nothing but its sources' cards (it is fenced, or a borrower): what it
	 * selects of other makers, as a rule by its image's "all", is taken away too.
	 */
	bool strict;
};

/*
 * Adds devices, rules, mounts, environment and hooks of the sources to @rw. What the next runtime
 * injects by selector itself is not injected twice.
 * -ENODEV: a source has nothing to share; -EEXIST: two things claim one path, destination or
 * variable (the message names both); -ESTALE: the host's node is another one than the source's;
 * -EACCES: which of the node's cards are a privileged source's own can't be told.
 */
int inject(struct rewrite *rw, const struct inject *in, struct granted_list *ret_granted,
	   struct gs_err *err);

/*
 * Does @src give cards of @vendor: has it nodes, or a selector that somebody acts on (the next
 * runtime, or a hook that is copied along)? A word that nobody reads gives nothing.
 */
bool inject_gives(const struct inject *in, const struct source *src,
		  const struct gs_vendor *vendor);

/* inject_env.c: the environment's part of it, and the selectors. */
int inject_env(struct rewrite *rw, const struct inject *in, struct gs_err *err);

#endif
