/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody who has an inventory and counts what it tells. */
#ifndef GPUSHARE_TESTS_WATCHER_H
#define GPUSHARE_TESTS_WATCHER_H

#include <uv.h>

#include "agent/inventory.h"
#include "common/config.h"

struct watcher {
	char *root; /* tests/unit/fakecards.h */
	char *probe; /* the program */
	uv_loop_t loop;
	uv_timer_t timer;
	struct spawner *spawner;
	pid_t spawner_pid;
	struct gs_config config;
	struct inventory *inventory;
	unsigned int changed, loaded, unknown, failed; /* how often; unknown: of those loaded */
	char *why, *vendor; /* the last failure's */
};

/* A watcher of an empty root, with no inventory yet. Before anything else of libuv. */
struct watcher *watcher_begin(void);
/* Frees all, and checks that nothing is left: no handle, no child. */
void watcher_end(struct watcher *watcher);

/* Makes its inventory of the catalogue of its root. */
void watcher_start(struct watcher *watcher, unsigned int period_ms);

/* Runs the loop until *count is @n; fails the test after ten seconds. */
void watcher_run(struct watcher *watcher, const unsigned int *count, unsigned int n);

/* Runs the loop for some time. */
void watcher_idle(struct watcher *watcher, unsigned int ms);

/* How many children the process @parent has that are alive; *ret_pid (may be NULL): one of them. */
unsigned int watcher_children_of(pid_t parent, pid_t *ret_pid);

/* Runs the loop until so many probes run, and then for a moment; fails after ten seconds. */
void watcher_settle(struct watcher *watcher, unsigned int probes);

/* The probes that run. */
unsigned int watcher_probes(struct watcher *watcher, pid_t *ret_pid);

#endif
