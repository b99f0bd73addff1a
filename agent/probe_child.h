/* SPDX-License-Identifier: Apache-2.0 */
/* A running gpushare-probe: lines go in, lines come out, and it can be killed at any moment. */
#ifndef GPUSHARE_AGENT_PROBE_CHILD_H
#define GPUSHARE_AGENT_PROBE_CHILD_H

#include <stddef.h>
#include <uv.h>

#include "agent/spawner.h"
#include "common/err.h"

struct probe_child;

struct probe_child_ops {
	/* A whole line, without its newline. Not after probe_child_kill(). */
	void (*line)(const char *line, size_t len, void *arg);
	/* It breaks the rules: @why is a sentence. Its owner kills it. */
	void (*wrong)(const char *why, void *arg);
	/* It is gone, and the child with it; @how is a sentence. */
	void (*end)(const char *how, void *arg);
	void *arg;
};

/* Starts the program @path; @command_ms: how long it may let a vendor's command run. */
int probe_child_start(uv_loop_t *loop, struct spawner *spawner, const char *path,
		      unsigned int command_ms, const struct probe_child_ops *ops,
		      struct probe_child **ret, struct gs_err *err);

/* Sends a line (with its newline). A child that does not read it misses its deadline. */
void probe_child_send(struct probe_child *child, const char *line, size_t len);

/* Kills it. `end` comes when it is gone: one that sleeps in a driver may take for ever. */
void probe_child_kill(struct probe_child *child);

/* Kills it and forgets it: nothing is called any more. It is freed when it is gone. */
void probe_child_abandon(struct probe_child *child);

#endif
