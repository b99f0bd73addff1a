/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel module in the agent's loop: its events, and the agent's heartbeat. */
#ifndef GPUSHARE_AGENT_KERNEL_H
#define GPUSHARE_AGENT_KERNEL_H

#include <stdbool.h>
#include <uv.h>

#include "common/err.h"
#include "common/klink.h"

struct kernel;

struct kernel_ops {
	void (*event)(const struct gs_kevent *event, void *arg);
	/* It was loaded, or events were lost: whatever was known of it has to be asked again. */
	void (*resync)(void *arg);
	/* It is unloaded. */
	void (*gone)(void *arg);
	/* Something went wrong that a person should know of; as often as it is met. */
	void (*trouble)(const char *what, void *arg);
	void *arg;
};

/*
 * Starts to listen, and to send heartbeats as soon as the module is there; whether it is loaded
 * does not matter. -EPERM and what gs_kevents_open() says.
 */
int kernel_new(uv_loop_t *loop, const struct kernel_ops *ops, struct kernel **ret,
	       struct gs_err *err);

/* Stops; memory is freed when the loop has closed its handles. NULL is none. */
void kernel_free(struct kernel *kernel);

/*
 * Handles no event for a moment (two milliseconds at most): whoever was let go a moment ago has the
 * processor, before what there is to do and to tell of it.
 */
void kernel_rest(struct kernel *kernel);

/* The link to tell it things by; NULL while it is not loaded. */
struct gs_klink *kernel_link(struct kernel *kernel);

#endif
