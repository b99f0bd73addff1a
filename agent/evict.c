// SPDX-License-Identifier: Apache-2.0
/*
 * Ending borrowers. The kernel module may have killed them already; here the whole cgroup goes,
 * then the pod. An eviction that has begun goes on until nothing is left, whatever becomes of the
 * return that it began for.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/observe.h"
#include "agent/pods.h"
#include "common/cgroup_kill.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* The first tries come quickly: a user waits. What is left after that is stuck in a driver. */
#define TRY_MS 5
#define QUICK_TRIES 200
#define SLOW_TRY_MS 200
/* Then it is told that somebody is stuck. */
#define STUCK_MS 5000

struct eviction {
	char *id, *label, *cgroup, *why;
	/* The container's first process: one that is made anew under that id has another one. */
	pid_t pid;
	uint64_t start_ticks;
	char *grant; /* NULL: none, or revoked already */
	struct gs_record pod; /* whose pod has to go; only its names */
	bool begun; /* what can wait until a user's call goes on was done */
	uint64_t begun_ms;
	uint64_t own_us; /* from the kernel's event to the write of our kill; 0: it was no event */
	unsigned int tries;
	bool empty; /* no process is left; */
	bool gone; /* and that was told */
	bool stuck; /* that was told */
};

struct evictions {
	struct agent *agent;
	uv_timer_t timer;
	struct eviction *v;
	size_t n;
};

static void eviction_free(struct eviction *e)
{
	free(e->id);
	free(e->label);
	free(e->cgroup);
	free(e->why);
	free(e->grant);
	gs_record_free(&e->pod);
}

static bool is_of(const struct eviction *e, const struct container *c)
{
	return strcmp(e->id, c->rec.id) == 0 && e->start_ticks == c->hook.start_ticks;
}

bool evicting(const struct agent *agent, const struct container *borrower)
{
	for (size_t i = 0; i < agent->evictions->n; i++)
		if (is_of(&agent->evictions->v[i], borrower))
			return true;
	return false;
}

static const char *ms_since(uint64_t begun_ms, char buf[24])
{
	(void)snprintf(buf, 24, "%llu", (unsigned long long)(gs_boottime_ms() - begun_ms));
	return buf;
}

/* Where its cgroup was not seen, its first process takes with it what is in its namespace. */
static int kill_first_process(const struct eviction *e, struct gs_err *err)
{
	uint64_t start = 0;
	int r = e->pid <= 1 ? -ESRCH : gs_proc_start(e->pid, &start, err);

	/* where that can't be told (too many open files, say), it has not ended: see container.c */
	if (r < 0 && r != -ESRCH)
		return r;
	if (r < 0 || start != e->start_ticks)
		return 0;
	(void)kill(e->pid, SIGKILL);
	return gs_err_set(err, ETIMEDOUT, "process %d outlives SIGKILL", (int)e->pid);
}

/* Kills once more; true: nobody is left. */
static bool kill_once(struct agent *agent, struct eviction *e)
{
	struct gs_err err = { 0 };
	char ms[24];
	int r;

	r = e->cgroup ? gs_cgroup_kill(e->cgroup, 0, &err) : kill_first_process(e, &err);
	e->tries++;
	if (r == 0)
		return true;
	if (!e->stuck && (r != -ETIMEDOUT || gs_boottime_ms() - e->begun_ms >= STUCK_MS)) {
		e->stuck = true;
		observe_eviction(agent, "stuck", 0);
		gs_log_fields(GS_LOG_ERROR, "a borrower does not end", "container", e->label,
			      "after_ms", ms_since(e->begun_ms, ms), "why", err.msg, NULL);
	}
	return false;
}

/*
 * The first time, before everything else, for a user waits: one write does it where the kernel can,
 * and what that leaves is seen to when the timer comes. True: nobody is left.
 */
static bool kill_first(struct agent *agent, struct eviction *e)
{
	uint64_t ns = 0;
	bool begun = e->cgroup && gs_cgroup_kill_begin(e->cgroup, &ns, NULL) == 0;

	/* up to the kill: how long the kernel takes for it is no doing of ours */
	if (!begun)
		ns = uv_hrtime();
	if (agent->event_ns)
		e->own_us = (ns - agent->event_ns) / 1000;
	return begun ? false : kill_once(agent, e);
}

static void gone(struct agent *agent, struct eviction *e)
{
	char ms[24];

	e->empty = e->gone = true;
	observe_eviction(agent, "gone", gs_boottime_ms() - e->begun_ms);
	gs_log_fields(GS_LOG_INFO, "a borrower is gone", "container", e->label, "after_ms",
		      ms_since(e->begun_ms, ms), NULL);
	/* its watch can go */
	reconcile_soon(agent, 0);
}

/* What nobody waits for: a user's call does. */
static void begin(struct agent *agent, struct eviction *e)
{
	char us[24];

	e->begun = true;
	(void)snprintf(us, sizeof(us), "%llu", (unsigned long long)e->own_us);
	gs_log_fields(GS_LOG_INFO, "a borrower is ended", "container", e->label, "why", e->why,
		      "own_us", e->own_us ? us : NULL, NULL);
	if (e->own_us)
		observe_reaction(agent, e->own_us);
	pods_delete(agent, &e->pod, e->why);
	if (e->empty)
		gone(agent, e);
}

/*
 * A write to the disk, which can take long: not while any user is held. Nobody borrows by the grant
 * meanwhile, for no card of it is lent.
 */
static void revoke_grant(struct eviction *e, struct agent *agent)
{
	struct gs_err err = { 0 };

	if (gs_grant_revoke(agent->config.lib_dir, e->grant, &err) < 0 && err.code != ENOENT)
		gs_log_fields(GS_LOG_ERROR, "a grant is not revoked", "container", e->label, "why",
			      err.msg, NULL);
	free(e->grant);
	e->grant = NULL;
}

static void on_timer(uv_timer_t *timer)
{
	struct evictions *all = timer->data;
	unsigned int next = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct eviction *e = &all->v[i];

		if (!e->begun)
			begin(all->agent, e);
		else if (!e->empty && kill_once(all->agent, e))
			gone(all->agent, e);
		if (e->grant && !back_waits(all->agent))
			revoke_grant(e, all->agent);
		if (e->tries < QUICK_TRIES && !e->empty)
			next = TRY_MS;
		else if (next != TRY_MS && (!e->empty || e->grant))
			next = SLOW_TRY_MS;
	}
	if (next)
		(void)uv_timer_start(timer, on_timer, next, 0);
}

void evictions_forget(struct agent *agent)
{
	struct evictions *all = agent->evictions;
	size_t kept = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct eviction *e = &all->v[i];
		const struct container *c = containers_find(&agent->containers, e->id);

		if (e->gone && !e->grant && !(c && is_of(e, c)))
			eviction_free(e);
		else
			all->v[kept++] = *e;
	}
	all->n = kept;
}

void evict(struct agent *agent, const struct container *borrower, const char *why)
{
	struct evictions *all = agent->evictions;
	const struct gs_record *rec = &borrower->rec;
	struct eviction e = { 0 };

	if (evicting(agent, borrower))
		return;
	e.id = gs_strdup(rec->id);
	e.pid = borrower->hook.pid;
	e.start_ticks = borrower->hook.start_ticks;
	e.label = container_label(rec);
	e.cgroup = borrower->cgroup ? gs_strdup(borrower->cgroup) : NULL;
	e.begun_ms = gs_boottime_ms();
	e.empty = kill_first(agent, &e);
	e.why = gs_strdup(why);
	e.grant = rec->grant ? gs_strdup(rec->grant) : NULL;
	e.pod.pod_uid = rec->pod_uid ? gs_strdup(rec->pod_uid) : NULL;
	e.pod.identity = gs_identity_copy(&rec->identity);
	all->v = gs_grow(all->v, all->n, sizeof(e));
	all->v[all->n++] = e;
	(void)uv_timer_start(&all->timer, on_timer, TRY_MS, 0);
}

void evictions_new(struct agent *agent)
{
	struct evictions *all = gs_calloc(1, sizeof(*all));

	all->agent = agent;
	(void)uv_timer_init(agent->loop, &all->timer);
	all->timer.data = all;
	agent->evictions = all;
}

static void on_close(uv_handle_t *handle)
{
	struct evictions *all = handle->data;

	for (size_t i = 0; i < all->n; i++)
		eviction_free(&all->v[i]);
	free(all->v);
	free(all);
}

void evictions_free(struct agent *agent)
{
	uv_close((uv_handle_t *)&agent->evictions->timer, on_close);
	agent->evictions = NULL;
}
