/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when a device node comes or goes: a driver was loaded or unloaded. */
#ifndef GPUSHARE_AGENT_NODE_WATCH_H
#define GPUSHARE_AGENT_NODE_WATCH_H

#include <uv.h>

#include "common/buf.h"
#include "common/err.h"

struct node_watch;

/*
 * Calls @seen a moment after a node whose path matches one of @globs (absolute, below /dev) came or
 * went, and once more some seconds later, since drivers go on starting behind their nodes. @closed
 * is called when it has been freed.
 */
int node_watch_new(uv_loop_t *loop, const struct gs_strv *globs, void (*seen)(void *arg),
		   void (*closed)(void *arg), void *arg, struct node_watch **ret,
		   struct gs_err *err);

/* Frees it once the loop has closed its handles. */
void node_watch_free(struct node_watch *watch);

#endif
