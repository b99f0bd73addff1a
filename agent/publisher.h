/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the node's picture into a ConfigMap, for the cluster's view (include/gpushare/view.h). Who
 * restarts writes nothing while nothing changed: what was written last stands in a file on the
 * node, so that no right to read ConfigMaps is needed.
 */
#ifndef GPUSHARE_AGENT_PUBLISHER_H
#define GPUSHARE_AGENT_PUBLISHER_H

#include <jansson.h>
#include <uv.h>

#include "kube/kube.h"
#include "common/err.h"

struct publisher;

struct publisher_config {
	uv_loop_t *loop; /* what is borrowed outlives the publisher */
	struct kube *kube;
	const char *server; /* the file's text is of that server alone */
	const char *node, *namespace;
	const char *run_dir; /* of the file */
	/*
	 * From one write, or try, to the next; where only what is fickle changed; where nothing
	 * did. And how long after the beginning or a change the picture is complete.
	 */
	unsigned int change_ms, load_ms, refresh_ms, settle_ms;
	size_t max; /* bytes of the picture */
	/* The picture, without version and time; the reference is ours. NULL: there is none yet. */
	json_t *(*look)(void *arg);
	/* It was written (NULL), or not. */
	void (*told)(const struct gs_err *err, void *arg);
	void *arg;
};

/* Begins, with a look in settle_ms. The configuration is copied. */
struct publisher *publisher_new(const struct publisher_config *config);

/* Something may have changed: looks again in settle_ms, or as soon as change_ms allow. */
void publisher_changed(struct publisher *publisher);

/* Ends it; its memory goes once the loop has closed its timer. NULL is none. */
void publisher_free(struct publisher *publisher);

/*
 * Do two pictures tell the same, but for their times, and for the ages of states that began at the
 * same time? Load, memory, touches and why something is not lent, which change all the time, count
 * only if @all. publisher_same.c.
 */
bool publisher_same(const json_t *a, const json_t *b, bool all);

/* When the picture was made, in milliseconds since 1970; 0: it does not say. */
int64_t publisher_time(const json_t *picture);

/*
 * The picture as text of at most @max bytes: containers are left out of it where it would be
 * longer, then cards, and "left_out" tells how many. @picture is changed. The caller frees.
 * publisher_fit.c.
 */
char *publisher_fit(json_t *picture, size_t max);

#endif
