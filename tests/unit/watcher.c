// SPDX-License-Identifier: Apache-2.0
/* Somebody who has an inventory and counts what it tells. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/watcher.h"

#define PATIENCE_MS 10000

struct watcher *watcher_begin(void)
{
	struct watcher *w = gs_calloc(1, sizeof(*w));
	struct gs_err err = { 0 };

	w->root = fakecards_begin();
	w->probe = fakecards_program("gpushare-probe");
	gs_config_init(&w->config);
	assert_int_equal(uv_loop_init(&w->loop), 0);
	if (spawner_start(&w->spawner, &err) < 0 || spawner_attach(w->spawner, &w->loop, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(watcher_children_of(getpid(), &w->spawner_pid), 1);
	assert_int_equal(uv_timer_init(&w->loop, &w->timer), 0);
	return w;
}

void watcher_end(struct watcher *w)
{
	inventory_free(w->inventory);
	/* The probes are killed, also those that had not started yet, and told to be gone. */
	for (int i = 0; i < PATIENCE_MS / 20 && spawner_children(w->spawner); i++)
		watcher_idle(w, 20);
	assert_int_equal(spawner_children(w->spawner), 0);
	assert_int_equal(watcher_probes(w, NULL), 0);
	spawner_free(w->spawner);
	uv_close((uv_handle_t *)&w->timer, NULL);
	assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
	/* Nothing is left open, and no child. */
	assert_int_equal(uv_loop_close(&w->loop), 0);
	assert_int_equal(watcher_children_of(getpid(), NULL), 0);
	gs_config_free(&w->config);
	fakecards_end(w->root);
	free(w->probe);
	free(w->why);
	free(w->vendor);
	free(w);
	inventory_deadline_ms = 5000;
}

/*
 * Whoever waits looks again. A timer's callback comes before the loop waits for everything else, so
 * without this it would wait although what it waits for is there.
 */
static void look_again(struct watcher *w)
{
	uv_stop(&w->loop);
}

static void changed(void *arg)
{
	struct watcher *w = arg;

	w->changed++;
	look_again(w);
}

static void loaded(const struct card *card, const struct load *load, void *arg)
{
	struct watcher *w = arg;

	assert_ptr_equal(inventory_load(w->inventory, card->name), load);
	w->loaded++;
	w->unknown += !load->known;
	look_again(w);
}

static void failed(const char *vendor, const char *why, void *arg)
{
	struct watcher *w = arg;

	w->failed++;
	free(w->why);
	free(w->vendor);
	w->why = gs_strdup(why);
	w->vendor = gs_strdup(vendor);
	look_again(w);
}

void watcher_start(struct watcher *w, unsigned int period_ms)
{
	const struct inventory_ops ops = {
		.changed = changed,
		.loaded = loaded,
		.failed = failed,
		.arg = w,
		.spawner = w->spawner,
	};
	struct gs_err err = { 0 };

	gs_config_free(&w->config);
	fakecards_config(&w->config, w->root);
	if (inventory_new(&w->loop, &w->config, w->probe, period_ms, &ops, &w->inventory, &err) < 0)
		fail_msg("%s", err.msg);
}

static void timed_out(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
	uv_stop(timer->loop);
}

void watcher_run(struct watcher *w, const unsigned int *count, unsigned int n)
{
	bool out = false;

	w->timer.data = &out;
	uv_update_time(&w->loop);
	(void)uv_timer_start(&w->timer, timed_out, PATIENCE_MS, 0);
	while (*count < n && !out)
		(void)uv_run(&w->loop, UV_RUN_ONCE);
	(void)uv_timer_stop(&w->timer);
	if (*count < n)
		fail_msg("%u instead of %u; last failure: %s", *count, n, w->why ? w->why : "none");
}

void watcher_idle(struct watcher *w, unsigned int ms)
{
	bool out = false;

	w->timer.data = &out;
	uv_update_time(&w->loop);
	(void)uv_timer_start(&w->timer, timed_out, ms, 0);
	while (!out)
		(void)uv_run(&w->loop, UV_RUN_ONCE);
}

/* Field 4 of /proc/PID/stat, and no zombie. */
static bool is_child(const char *pid, pid_t parent)
{
	cleanup_free char *path = gs_asprintf("/proc/%s/stat", pid);
	FILE *f = fopen(path, "re");
	char text[512] = "", state = 0;
	int ppid = 0;
	const char *end;

	if (!f)
		return false;
	(void)!fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %c %d", &state, &ppid) == 2 && state != 'Z' &&
	       ppid == parent;
}

unsigned int watcher_children_of(pid_t parent, pid_t *ret_pid)
{
	cleanup_dir DIR *d = opendir("/proc");
	unsigned int n = 0;
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || !is_child(e->d_name, parent))
			continue;
		n++;
		if (ret_pid)
			*ret_pid = atoi(e->d_name);
	}
	return n;
}

unsigned int watcher_probes(struct watcher *w, pid_t *ret_pid)
{
	return watcher_children_of(w->spawner_pid, ret_pid);
}

void watcher_settle(struct watcher *w, unsigned int probes)
{
	/* They have to start first. */
	watcher_idle(w, 200);
	for (int i = 0; i < PATIENCE_MS / 50 && watcher_probes(w, NULL) != probes; i++)
		watcher_idle(w, 50);
	assert_int_equal(watcher_probes(w, NULL), probes);
}
