/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the agent's children. The agent gives up most capabilities and filters its own system
 * calls (sandbox.h); both would be inherited, and neither vendors' libraries nor an operator's
 * commands can live with them. So a small process is forked before, and everything else is started
 * by that one: with whatever the agent itself was started with, and nothing more.
 */
#ifndef GPUSHARE_AGENT_SPAWNER_H
#define GPUSHARE_AGENT_SPAWNER_H

#include <uv.h>

#include "common/err.h"

struct spawner;
struct spawner_child;

/* How many children at a time. */
#define SPAWNER_MAX 64

/*
 * Forks the spawner. Call it first of all: while there is one thread, before the loop and before
 * the sandbox. It ends, and kills its children, when this process ends, however that happens.
 */
int spawner_start(struct spawner **ret, struct gs_err *err);

/* What is called from the loop, after the ends of all children, when the spawner dies; once. */
void spawner_on_death(struct spawner *spawner, void (*died)(void *arg), void *arg);

/* Lets the ends of children be told in this loop, which must outlive the spawner. */
int spawner_attach(struct spawner *spawner, uv_loop_t *loop, struct gs_err *err);

/*
 * Starts argv[0] (an absolute path) with descriptors @in and @out as its stdin and stdout; the
 * caller keeps its own. Its stderr is ours. It has no other descriptor, a session of its own,
 * default signals, our environment without what systemd told us alone, and LC_ALL=C. Does not wait:
 * @ended comes later, once, from the loop, with what waitpid() said: exit 127 where it could not be
 * executed, a SIGKILL where the spawner died. After it *ret is no more. What it leaves running in
 * its process group is killed. -E2BIG: arguments over 7 KiB; -EAGAIN: too many children; -EPIPE:
 * the spawner is dead, and this program had better start anew.
 */
int spawner_run(struct spawner *spawner, const char *const argv[], int in, int out,
		void (*ended)(int status, void *arg), void *arg, struct spawner_child **ret,
		struct gs_err *err);

/* SIGKILL to a child and to all of its process group. @ended comes when it is dead. */
void spawner_kill(struct spawner *spawner, struct spawner_child *child);

/* Children whose @ended has not come yet. */
size_t spawner_children(const struct spawner *spawner);

/*
 * Ends the spawner and all children; no @ended comes any more. Freed once the loop has closed its
 * handle. NULL is none.
 */
void spawner_free(struct spawner *spawner);

#endif
