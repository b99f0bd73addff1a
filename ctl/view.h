/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: the pictures of one node, from its agent, or of all, from the cluster's view. */
#ifndef GPUSHARE_CTL_VIEW_H
#define GPUSHARE_CTL_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/config.h"
#include "common/err.h"
#include "common/js.h"
#include "ctl/picture.h"

struct view_node {
	char *name; /* NULL: the one that we are on */
	struct picture pic; /* ages in it are those of now */
	int64_t age_ms; /* of the picture; -1: it does not say */
	bool stale; /* nobody has renewed it as long as its agent should have */
	uint64_t left_out; /* containers and cards that had no room in it */
};

struct view {
	struct view_node *v;
	size_t n;
	bool cluster;
	struct gs_strv wrong; /* nodes whose picture can't be read, a sentence each */
};

/* Frees what it holds; it is {0} then. */
void view_free(struct view *view);
#define cleanup_view __attribute__((cleanup(view_free)))

/* This node's, of its agent, who has @timeout_ms; errors as ctl_ask(). */
int view_of_agent(const struct gs_config *config, uint64_t timeout_ms, struct view *ret,
		  struct gs_err *err);

/* How kubectl is to be called; NULL is its own default. */
struct view_kubectl {
	const char *kubeconfig, *context;
	const char *namespace; /* NULL: GS_VIEW_NAMESPACE */
	const char *node; /* that one's alone; NULL: all */
	bool quiet; /* what it says on stderr goes into the error, and it can ask for nothing */
};

/*
 * The cluster's, by kubectl with the rights of whoever calls it. -ENOENT: there is no kubectl;
 * -EIO: it failed; -EFBIG, -EINVAL: its answer is too long, or none.
 */
int view_of_cluster(const struct view_kubectl *kubectl, struct view *ret, struct gs_err *err);

/*
 * Takes what kubectl printed: a ConfigMap, or a list of them, as JSON. Whoever may write ConfigMaps
 * there has made it, so whose node it is tells the object's name alone, and what is wrong with one
 * spoils no other. @now_ms: milliseconds since 1970.
 */
int view_read(const char *text, size_t len, int64_t now_ms, struct view *ret, struct gs_err *err);

/* How many cards there are, and in which state each is, sorted; the caller frees the list. */
size_t view_states(const struct view *view, struct gs_strv *ret);

/* "cards: 4 (1 active, 3 free)", with "nodes: 2 (1 stale), " before it for a cluster; to be freed.
 */
char *view_summary(const struct view *view);

#endif
