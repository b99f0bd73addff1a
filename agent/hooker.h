/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has the kernel module hook drivers by their nodes. To open a node is to run a vendor's code: it
 * can take seconds (a card without persistence is powered up for it) or hang for ever, where not
 * even SIGKILL helps. So a child does it (gpushare-probe hook ...), one for each node, with a
 * deadline, and what was refused is tried again after longer and longer pauses.
 */
#ifndef GPUSHARE_AGENT_HOOKER_H
#define GPUSHARE_AGENT_HOOKER_H

#include <uv.h>

#include "agent/spawner.h"
#include "common/err.h"
#include "common/klink.h"

struct hooker;

struct hooker_ops {
	/* The node is hooked. */
	void (*added)(void *arg);
	/*
	 * It is not: @err says why, -ETIMEDOUT where the driver hangs. The same again is not told.
	 */
	void (*refused)(const char *path, const struct gs_err *err, void *arg);
	/* The pause after a refusal is over (1 s, 2 s, .. 60 s): who still wants it may say so. */
	void (*again)(void *arg);
	void *arg;
};

/* What is to be hooked. */
struct hook_wish {
	const char *path; /* of the node */
	uint32_t dev; /* that it must have: gs_kdev() */
	const char *vendor;
	uint32_t passive[GS_PASSIVE_MAX]; /* nobody's touches, as the module has them */
	size_t n_passive;
	bool revocable; /* users' mappings of it are to be taken away while it is lent */
};

/*
 * Makes one. @probe is the path of gpushare-probe, copied; a child has @deadline_ms. The loop and
 * the spawner outlive it.
 */
struct hooker *hooker_new(uv_loop_t *loop, struct spawner *spawner, const char *probe,
			  unsigned int deadline_ms, const struct hooker_ops *ops);

/* Begins, unless that node is being tried, or was refused a moment ago. Tells later. */
void hooker_want(struct hooker *hooker, const struct hook_wish *wish);

/* Something has changed (a driver was loaded): nothing that was refused has to wait any more. */
void hooker_forgive(struct hooker *hooker);

/* Frees it once the loop has closed its timer; nothing is told any more. NULL is none. */
void hooker_free(struct hooker *hooker);

#endif
