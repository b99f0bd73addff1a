/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of the agent's loop: waits until gRPC's thread has something to say. */
#ifndef GPUSHARE_TESTS_UNIT_RPCLOOP_H
#define GPUSHARE_TESTS_UNIT_RPCLOOP_H

#include <stdbool.h>

#include "agent/plugin.h"
#include "agent/rpc.h"

#define RPCLOOP_MS 20000

struct rpcloop {
	struct rpc *rpc;
	int fd; /* an eventfd */
};

/* Starts gRPC; ends it, which must not take long. */
void rpcloop_begin(struct rpcloop *loop);
void rpcloop_end(struct rpcloop *loop);

/* Dispatches until *@done; fails the test after RPCLOOP_MS. */
void rpcloop_until(struct rpcloop *loop, const bool *done);

/* Dispatches what there is within @ms, or until @fd can be read. True: it can. */
bool rpcloop_step(struct rpcloop *loop, int fd, int ms);

/*
 * A snapshot for plugins whose devices are "<name>" or "<name>!" (not healthy), "<name>@1" (of
 * NUMA node 1), with spaces between. Counted until it is freed.
 */
struct plugin_snapshot *rpcloop_snapshot(const char *devices);

/* How many of those there are. */
int rpcloop_snapshots(void);

#endif
