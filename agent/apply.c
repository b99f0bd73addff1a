// SPDX-License-Identifier: Apache-2.0
/* The difference between a plan and the kernel module's state, told to the module. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/apply.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

struct job {
	struct gs_klink *link;
	const struct inventory *inventory;
	const struct settings *settings;
	const struct containers *containers;
	const struct plan *plan;
	const struct gs_kstate *state;
	const struct apply_ops *ops;
	struct gs_strv renewed; /* holdings that were made anew: nobody is linked to them yet */
	bool told;
};

static int report(struct job *job, int r, const struct gs_err *err, const char *what,
		  const char *name)
{
	cleanup_free char *text = NULL;

	job->told = true;
	if (r == 0)
		return 0;
	text = gs_asprintf("%s %s", what, name);
	job->ops->refused(text, err, job->ops->arg);
	return r;
}

/* ---- Hooks. */

/* What all cards share, a control node or a sliced card's, is never taken from one's users. */
static bool wants_revocable(const struct job *job, const struct card *card,
			    const struct card_node *node)
{
	return node->own && node->revocable && job->ops->revocable &&
	       job->ops->revocable(card, job->ops->arg);
}

/* Is a holding with that node lent, or on its way there or back? */
static bool is_away(const struct job *job, uint32_t dev)
{
	for (size_t i = 0; i < job->state->n_holdings; i++) {
		const struct gs_kholding *k = &job->state->holdings[i];

		for (size_t j = 0; j < k->devs.n; j++)
			if (k->devs.v[j] == dev && k->state != GS_UNKNOWN &&
			    k->state != GS_ACTIVE && k->state != GS_IDLE)
				return true;
	}
	return false;
}

static void add_hook(struct job *job, const struct card *card, const struct card_node *node)
{
	const struct gs_knode *k = gs_kstate_node(job->state, node->dev);
	bool revocable = wants_revocable(job, card, node);

	if (k && k->revocable == revocable)
		return;
	/* what LEND took away, or did not, is to come back as it was */
	if (k && is_away(job, node->dev))
		job->ops->later(job->ops->arg);
	else
		job->ops->hook(card, node, revocable, job->ops->arg);
}

static void add_hooks(struct job *job)
{
	const struct cards *cards = inventory_cards(job->inventory);

	for (size_t i = 0; i < cards->n; i++) {
		const struct card *card = &cards->v[i];

		for (size_t j = 0; j < card->n_nodes; j++)
			if (card->nodes[j].hook)
				add_hook(job, card, &card->nodes[j]);
	}
}

/* ---- Holdings. */

/* Takes a holding away, or starts its way back first. -EBUSY: that is not over. */
static int end_holding(struct job *job, const struct gs_kholding *k, struct gs_err *err)
{
	int r;

	switch (k->state) {
	case GS_LENDING:
	case GS_LENT:
		job->told = true;
		r = gs_klink_withdraw(job->link, k->name, err);
		return r < 0 ? r : -EBUSY;
	case GS_RETURNING:
	case GS_QUARANTINE:
		return -EBUSY;
	default:
		return gs_klink_holding_del(job->link, k->name, err);
	}
}

/*
 * The module changes a holding's times, not its nodes: one whose cards have become others (a
 * container that joins two pods' cards, a card that was plugged anew) is made anew, as soon as it
 * is not lent. True: it can be set now.
 */
static bool renew_holding(struct job *job, const struct gs_kholding *k)
{
	struct gs_err err = { 0 };
	int r = end_holding(job, k, &err);

	if (r == -EBUSY)
		return false;
	if (report(job, r, &err, "renew holding", k->name) == 0)
		gs_strv_add(&job->renewed, k->name);
	return r == 0;
}

static bool same_times(const struct job *job, const struct plan_holding *h,
		       const struct gs_kholding *k)
{
	return k->lend_after_ms == h->lend_after_ms &&
	       k->hold_max_ms == job->settings->hold_max_ms && k->settle_ms == h->settle_ms;
}

static void set_holdings(struct job *job)
{
	for (size_t i = 0; i < job->plan->n_holdings; i++) {
		const struct plan_holding *h = &job->plan->holdings[i];
		const struct gs_kholding *k = gs_kstate_holding(job->state, h->name);
		struct gs_kholding_set set = {
			.name = h->name,
			.devs = h->devs,
			.n_devs = h->n_devs,
			.lend_after_ms = h->lend_after_ms,
			.hold_max_ms = job->settings->hold_max_ms,
			.settle_ms = h->settle_ms,
		};
		struct gs_err err = { 0 };

		if (!h->n_devs)
			continue;
		if (k && plan_same_devs(h, k)) {
			if (same_times(job, h, k))
				continue;
			set.devs = NULL;
			set.n_devs = 0;
		} else if (k && !renew_holding(job, k)) {
			continue;
		}
		(void)report(job, gs_klink_holding_set(job->link, &set, &err), &err, "holding",
			     h->name);
	}
}

/* ---- Watches. */

/* The holdings that the watch has to name as the module takes them; the caller frees. */
static const char **names_of(const struct plan_watch *w)
{
	const char **v = gs_calloc(w->holdings.n + 1, sizeof(*v));

	for (size_t i = 0; i < w->holdings.n; i++)
		v[i] = w->holdings.v[i];
	return v;
}

static int set_watch(struct job *job, const struct plan_watch *w, struct gs_err *err)
{
	cleanup_free const char **names = names_of(w);
	struct gs_kwatch_set set = {
		.name = w->name,
		.role = w->role,
		.holdings = names,
		.n_holdings = w->holdings.n,
		.kill_on_return = w->role == GS_BORROWER && job->settings->kernel_kill,
	};
	const struct gs_hook_record *hook = &w->container->hook;
	int r;

	if (!w->by_cgroup)
		set.who = (struct gs_kwho){ .pid = hook->pid, .start_time = hook->start_ticks };
	else if (!w->container->cgroup)
		return gs_err_set(err, ENOENT, "its cgroup is gone");
	else if ((r = gs_kwho_cgroup(w->container->cgroup, &set.who, err)) < 0)
		return r;
	return gs_klink_watch_set(job->link, &set, err);
}

/*
 * Is the module's watch about the very container that runs? One that was made anew under its old id
 * (docker restart, ctr task) has another PID namespace, or another cgroup of the same name.
 */
static bool same_who(const struct plan_watch *w, const struct gs_kwatch *k)
{
	struct gs_kwho who;

	if (!w->by_cgroup)
		return k->pidns == (uint32_t)w->container->hook.pid_ns;
	return k->pidns == 0 && w->container->cgroup &&
	       gs_kwho_cgroup(w->container->cgroup, &who, NULL) == 0 &&
	       who.cgroup_id == k->cgroup_id;
}

/*
 * Is the module's watch the plan's? A member may name fewer holdings, or one that was made anew,
 * and join.
 */
static bool fits(const struct job *job, const struct plan_watch *w, const struct gs_kwatch *k,
		 bool *ret_joins)
{
	*ret_joins = false;
	if (k->role != w->role || !same_who(w, k))
		return false;
	for (size_t i = 0; i < k->holdings.n; i++)
		if (!gs_strv_has(&w->holdings, k->holdings.v[i]))
			return false;
	*ret_joins = k->holdings.n < w->holdings.n ||
		     gs_strv_intersect(&w->holdings, &job->renewed);
	return true;
}

/*
 * A borrower's watch stays as it was made: it counts the files that are open. Only one that is
 * about a container before this one goes; where it can't (somebody has such a file still), the new
 * one may not run. True: there is none now.
 */
static bool renew_borrower(struct job *job, const struct plan_watch *w, const struct gs_kwatch *k)
{
	struct gs_err err = { 0 };

	if (same_who(w, k)) {
		if (k->revoked)
			job->ops->unlawful(w->container, "a lender is back", job->ops->arg);
		return false;
	}
	if (gs_klink_watch_del(job->link, w->name, &err) == 0)
		return true;
	job->ops->unlawful(w->container, err.msg, job->ops->arg);
	return false;
}

/*
 * What a container did before it was watched nobody saw, and its mappings were not taken away: a
 * lent holding that it joins comes back. (One that starts has asked for that; but there may have
 * been no agent.)
 */
static void take_back(struct job *job, const struct plan_watch *w, const struct gs_kwatch *k)
{
	for (size_t i = 0; w->role == GS_MEMBER && i < w->holdings.n; i++) {
		const char *name = w->holdings.v[i];
		const struct gs_kholding *h = gs_kstate_holding(job->state, name);
		struct gs_err err = { 0 };

		if (!h || h->state != GS_LENT || (k && gs_strv_has(&k->holdings, name)))
			continue;
		(void)report(job, gs_klink_withdraw(job->link, name, &err), &err,
			     "take back holding", name);
	}
}

static void set_watches(struct job *job, bool borrowers)
{
	for (size_t i = 0; i < job->plan->n_watches; i++) {
		const struct plan_watch *w = &job->plan->watches[i];
		const struct gs_kwatch *k = gs_kstate_watch(job->state, w->name);
		struct gs_err err = { 0 };
		bool joins = true;
		int r;

		if ((w->role == GS_BORROWER) != borrowers)
			continue;
		if (k && w->role == GS_BORROWER) {
			joins = renew_borrower(job, w, k);
		} else if (k && !fits(job, w, k, &joins)) {
			take_back(job, w, NULL);
			(void)gs_klink_watch_del(job->link, w->name, &err);
			joins = true;
		} else if (joins) {
			take_back(job, w, k);
		}
		if (!joins)
			continue;
		r = report(job, set_watch(job, w, &err), &err, "watch", w->name);
		if (r < 0 && w->role == GS_BORROWER)
			job->ops->unlawful(w->container, err.msg, job->ops->arg);
	}
}

/* ---- What nobody needs. */

static bool planned_watch(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n_watches; i++)
		if (strcmp(plan->watches[i].name, name) == 0)
			return true;
	return false;
}

/* Is it the watch of a container that runs? */
static bool is_of_living(const struct job *job, const char *name)
{
	const struct container *c = containers_find_watch(job->containers, name);

	return c && c->alive;
}

/*
 * A borrower that runs without a lender is to be ended, and guarded until then. Its files are still
 * counted for a moment when its container is gone: -EBUSY.
 */
static void remove_watches(struct job *job)
{
	for (size_t i = 0; i < job->state->n_watches; i++) {
		const struct gs_kwatch *k = &job->state->watches[i];
		struct gs_err err = { 0 };
		int r;

		if (planned_watch(job->plan, k->name) ||
		    (k->role == GS_BORROWER && is_of_living(job, k->name)))
			continue;
		r = gs_klink_watch_del(job->link, k->name, &err);
		if (r != -EBUSY)
			(void)report(job, r, &err, "remove watch", k->name);
	}
}

static void remove_holdings(struct job *job)
{
	for (size_t i = 0; i < job->state->n_holdings; i++) {
		const struct gs_kholding *k = &job->state->holdings[i];
		struct gs_err err = { 0 };
		int r;

		if (plan_holding(job->plan, k->name))
			continue;
		r = end_holding(job, k, &err);
		if (r != -EBUSY)
			(void)report(job, r, &err, "remove holding", k->name);
	}
}

bool apply_plan(struct gs_klink *link, const struct inventory *inventory,
		const struct settings *settings, const struct containers *containers,
		const struct plan *plan, const struct gs_kstate *state, const struct apply_ops *ops)
{
	struct job job = {
		.link = link,
		.inventory = inventory,
		.settings = settings,
		.containers = containers,
		.plan = plan,
		.state = state,
		.ops = ops,
	};

	add_hooks(&job);
	set_holdings(&job);
	set_watches(&job, false);
	set_watches(&job, true);
	remove_watches(&job);
	remove_holdings(&job);
	gs_strv_free(&job.renewed);
	return job.told;
}
