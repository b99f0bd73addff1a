// SPDX-License-Identifier: Apache-2.0
/*
 * The one way from what is to what should be: read the registry and the kernel module, plan, tell
 * the module, end whoever may not run. After a start, a change of the registry, a reload of the
 * module or lost events the very same is done.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/allocations.h"
#include "agent/apply.h"
#include "agent/ends.h"
#include "agent/orphans.h"
#include "agent/unseen.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/kname.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/sections.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "gpushare/registry.h"

/* Nothing happened: look all the same, for not every kernel tells of an end (ends.c). */
#define IDLE_MS 10000
/* The same where nobody tells of the registry's changes. */
#define BLIND_MS 1000
/* Where that look finds nothing new either, all is looked at anew so often. */
#define FULL_MS 300000
/* A container was made whose process was not to be seen yet. */
#define INCOMPLETE_MS 100
/* One is on its way out: what it held is to come back soon after. */
#define LEAVING_MS 300
/* Something was refused, and may go better next time. */
#define RETRY_MS 3000
/* Changes of the registry come in bunches. */
#define SETTLE_MS 5

/* ---- What the dump says of holdings. */

static void take_holding(struct agent *agent, const struct gs_kholding *k)
{
	struct hold *hold = agent_hold(agent, k->name);
	bool is_new = !hold, was_lent = hold && hold->state == GS_LENT;

	if (is_new) {
		agent->holds = gs_grow(agent->holds, agent->n_holds, sizeof(*agent->holds));
		hold = &agent->holds[agent->n_holds++];
		*hold = (struct hold){ 0 };
		memcpy(hold->name, k->name, sizeof(hold->name));
	}
	if (is_new || hold->state != k->state || hold->seq != k->seq) {
		hold->state = k->state;
		agent_hold_anew(hold, k->seq);
		hold->since_ms = k->since_ns / 1000000;
		if (k->state == GS_RETURNING)
			hold->returning_ms = hold->since_ms;
		hold->drained = false; /* that was the last return's */
		if (k->state == GS_RETURNING || k->state == GS_QUARANTINE)
			back_begin(agent, hold);
		else if (k->state != GS_LENT && k->state != GS_LENDING)
			back_end(agent, hold);
		if (was_lent &&
		    (k->state == GS_ACTIVE || k->state == GS_IDLE || k->state == GS_UNKNOWN))
			back_unseen(agent, k);
	}
	if (k->state == GS_RETURNING && k->files == 0 && !hold->drained) {
		hold->drained = true;
		hold->drained_ms = gs_boottime_ms();
	}
}

static void forget_gone(struct agent *agent)
{
	size_t kept = 0;

	for (size_t i = 0; i < agent->n_holds; i++) {
		struct hold *hold = &agent->holds[i];

		if (gs_kstate_holding(&agent->state, hold->name))
			agent->holds[kept++] = *hold;
		else
			back_end(agent, hold);
	}
	agent->n_holds = kept;
}

static int dump(struct agent *agent, struct gs_err *err)
{
	struct gs_klink *link = kernel_link(agent->kernel);
	struct gs_kstate fresh = { 0 };
	int r = 0;

	/* without the module nothing is watched, and nothing lent */
	if (link)
		r = gs_klink_dump(link, &fresh, err);
	if (r < 0)
		return r;
	gs_kstate_free(&agent->state);
	agent->state = fresh;
	forget_gone(agent);
	for (size_t i = 0; i < agent->state.n_holdings; i++)
		take_holding(agent, &agent->state.holdings[i]);
	return 0;
}

/* ---- Planning and telling. */

static void on_broken(const char *id, const char *why)
{
	static struct told told;

	told_log(&told, GS_LOG_WARN, "a record is passed over", "container", id, why);
}

static void on_refused(const char *what, const struct gs_err *err, void *arg)
{
	struct agent *agent = arg;

	/* each round meets it again */
	told_log(&agent->told, GS_LOG_WARN, "refused", "what", what, err->msg);
	reconcile_soon(agent, RETRY_MS);
}

static void on_hook(const struct card *card, const struct card_node *node, bool revocable,
		    void *arg)
{
	hooks_want(arg, card, node, revocable);
}

static void on_unlawful(const struct container *borrower, const char *why, void *arg)
{
	evict(arg, borrower, why);
}

static bool on_revocable(const struct card *card, void *arg)
{
	return unseen_revocable(arg, card);
}

static void on_later(void *arg)
{
	struct agent *agent = arg;

	agent->rehook = true;
}

static int read_registry(struct agent *agent, struct gs_err *err)
{
	struct containers fresh;
	int r = containers_read(agent->config.run_dir, inventory_cards(agent->inventory),
				inventory_catalogue(agent->inventory), &agent->settings,
				agent->cards_changed ? NULL : &agent->containers, &fresh, on_broken,
				err);

	if (r < 0)
		return r;
	agent->cards_changed = false;
	/* the plan points into the old ones */
	plan_free(&agent->plan);
	containers_free(&agent->containers);
	agent->containers = fresh;
	agent->registry_read_ms = gs_boottime_ms();
	return 0;
}

static int look_and_tell(struct agent *agent, struct gs_err *err)
{
	const struct apply_ops ops = {
		.hook = on_hook,
		.refused = on_refused,
		.unlawful = on_unlawful,
		.revocable = on_revocable,
		.later = on_later,
		.arg = agent,
	};
	struct gs_klink *link = kernel_link(agent->kernel);
	cleanup_strv struct gs_strv free = { 0 };
	int r = read_registry(agent, err);

	agent->rehook = false;
	if (r == 0)
		r = dump(agent, err);
	if (r < 0)
		return r;
	allocations_confirm(agent);
	allocations_free_cards(agent, &free);
	plan_make(&agent->containers, inventory_cards(agent->inventory), &agent->settings,
		  &agent->state, agent->host_pid_ns, &free, &agent->plan);
	/* a card that was not told yet is not gone: the module keeps what it was told before */
	if (link && inventory_complete(agent->inventory) &&
	    apply_plan(link, agent->inventory, &agent->settings, &agent->containers, &agent->plan,
		       &agent->state, &ops))
		r = dump(agent, err);
	return r;
}

/*
 * A borrower whose cards nobody lends: its lender's holding is gone, or there is no module to
 * guard it. Its own first moments are not its fault: the hook asks before it runs.
 */
static void end_unguarded(struct agent *agent)
{
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (c->rec.role != GS_ROLE_BORROWER || !c->alive)
			continue;
		if (!kernel_link(agent->kernel))
			evict(agent, c, "the kernel module is not loaded");
		else if (inventory_complete(agent->inventory) &&
			 !plan_watch(&agent->plan, c->rec.id))
			evict(agent, c, "nobody lends its cards any more");
	}
}

/*
 * A holding that is lent, and would not be lent as it is now: a member joined that nobody watches,
 * or one that is of another pod and says that the card is its own.
 */
static const char *wrong_with(struct agent *agent, struct hold *hold,
			      const struct plan_holding *plan)
{
	if (!plan->claimed_twice)
		hold->alerted = false;
	else if (!hold->alerted) {
		hold->alerted = true;
		gs_log_fields(GS_LOG_ERROR, "two pods say that they hold a card", "holding",
			      hold->name, NULL);
	}
	if (plan->claimed_twice)
		return plan->why_not;
	return lend_unwatched(agent, plan) ? "a container that holds it is not watched" : NULL;
}

/*
 * Files in lent/ whose holding went without a word: the module was unloaded, say, or the card came
 * back while there was no agent. Grants on it have ended, too.
 */
static void clean_lent(struct agent *agent)
{
	cleanup_strv struct gs_strv back = { 0 };

	for (size_t i = 0; i < agent->n_cards; i++) {
		struct seen_card *seen = &agent->cards[i];

		/* a card that the inventory has not told yet is none that is back */
		if (!seen->lent || !cards_find(inventory_cards(agent->inventory), seen->name) ||
		    agent_away(agent, seen->name) || lent_borrowed(agent, seen->name))
			continue;
		lent_remove(agent, seen->name);
		seen->lent = false;
		gs_strv_add(&back, seen->name);
	}
	lease_revoke(agent, &back);
}

static void forget_card(struct seen_card *seen)
{
	free(seen->name);
	free(seen->unrevocable);
}

/* Tools that give a card another name each time must not fill our memory. */
static void forget_cards(struct agent *agent)
{
	size_t kept = 0;

	if (!inventory_complete(agent->inventory))
		return;
	for (size_t i = 0; i < agent->n_cards; i++) {
		struct seen_card *seen = &agent->cards[i];

		if (seen->lent || cards_find(inventory_cards(agent->inventory), seen->name))
			agent->cards[kept++] = *seen;
		else
			forget_card(seen);
	}
	agent->n_cards = kept;
}

#define STR(n) #n
#define MS(n) STR(n) "ms"
#define TOO_SHORT \
	"its pod's " GS_KEY_LEND_AFTER " is shorter than " MS(GS_LEND_AFTER_MIN_MS) ", which counts"

static void take_back_wrong(struct agent *agent)
{
	for (size_t i = 0; i < agent->n_holds; i++) {
		struct hold *hold = &agent->holds[i];
		const struct plan_holding *plan = plan_holding(&agent->plan, hold->name);
		const char *why = plan ? wrong_with(agent, hold, plan) : NULL;
		struct gs_err err = { 0 };

		if (plan && plan->too_short)
			told_log(&agent->told, GS_LOG_WARN, TOO_SHORT, "holding", hold->name, NULL);
		if (hold->state != GS_LENT || !why)
			continue;
		if (back_withdraw(agent, hold, &err) < 0)
			told_log(&agent->told, GS_LOG_ERROR, "not taken back", "holding",
				 hold->name, err.msg);
		else
			gs_log_fields(GS_LOG_WARN, "taken back", "holding", hold->name, "why", why,
				      NULL);
	}
}

void reconcile(struct agent *agent)
{
	struct gs_err err = { 0 };

	agent->asked = false;
	agent->looked_ms = gs_boottime_ms();
	reconcile_soon(agent, IDLE_MS);
	if (look_and_tell(agent, &err) < 0) {
		told_log(&agent->told, GS_LOG_ERROR, "can't look", NULL, NULL, err.msg);
		reconcile_soon(agent, RETRY_MS);
		return;
	}
	if (told_over(&agent->told, "can't look"))
		gs_log_fields(GS_LOG_INFO, "looks again", NULL);
	ends_watch(agent);
	end_unguarded(agent);
	evictions_forget(agent);
	take_back_wrong(agent);
	clean_lent(agent);
	forget_cards(agent);
	orphans_mark(agent);
	if (agent->containers.incomplete)
		reconcile_soon(agent, INCOMPLETE_MS);
	else if (agent->containers.leaving)
		reconcile_soon(agent, LEAVING_MS);
	lend_consider(agent);
	back_step(agent);
	server_changed(agent);
	allocations_look(agent);
}

/* ---- When. */

void reconcile_counts(struct agent *agent)
{
	struct gs_err err = { 0 };

	if (dump(agent, &err) < 0)
		told_log(&agent->told, GS_LOG_ERROR, "can't look", NULL, NULL, err.msg);
}

/* Has the module told nothing but what we heard? */
static bool heard_all(const struct agent *agent)
{
	struct gs_klink *link = kernel_link(agent->kernel);
	const struct gs_kstatus *dumped = &agent->state.status;
	struct gs_kstatus status = { 0 };

	if (!link)
		return true;
	return gs_klink_status(link, &status, NULL) == 0 &&
	       (status.event_seq == dumped->event_seq || status.event_seq == agent->event_seq);
}

/* Nothing happened, and everybody is still there: then the rest is as it was. */
static bool nothing_new(const struct agent *agent)
{
	return !agent->asked && gs_boottime_ms() - agent->looked_ms < FULL_MS && heard_all(agent) &&
	       containers_same(agent->config.run_dir, &agent->containers);
}

static void watch_registry(struct agent *agent);

static void on_timer(uv_timer_t *timer)
{
	struct agent *agent = timer->data;

	if (agent->blind)
		watch_registry(agent);
	if (nothing_new(agent)) {
		agent->registry_read_ms = gs_boottime_ms();
		reconcile_soon(agent, IDLE_MS);
	} else {
		reconcile(agent);
	}
}

void reconcile_soon(struct agent *agent, unsigned int ms)
{
	uv_timer_t *timer = &agent->reconcile_timer;

	agent->asked |= ms != IDLE_MS;
	if (uv_is_active((uv_handle_t *)timer) && ms != IDLE_MS && uv_timer_get_due_in(timer) <= ms)
		return;
	(void)uv_timer_start(timer, on_timer, ms == IDLE_MS && agent->blind ? BLIND_MS : ms, 0);
}

enum { CONTAINERS, DELETED, RUN_DIR };

static void on_registry(uv_fs_event_t *handle, const char *name, int events, int status)
{
	(void)events;
	(void)status;
	/* our own completion of a record, and files that are being written, are no news */
	if (name && (strstr(name, ".hook.json") || strstr(name, ".gpushare-")))
		return;
	reconcile_soon(handle->data, SETTLE_MS);
}

static int watch_folder(uv_fs_event_t *handle, const char *path, uv_fs_event_cb cb,
			struct gs_err *err)
{
	int r = uv_fs_event_start(handle, cb, path, 0);

	return r < 0 ? gs_err_set(err, -r, "watch %s: %s", path, uv_strerror(r)) : 0;
}

/*
 * Whoever takes the last mark away, takes the folder away, and our watch with it. It is made anew
 * by the next `delete`: nobody else tells of that.
 */
static void on_run_dir(uv_fs_event_t *handle, const char *name, int events, int status)
{
	struct agent *agent = handle->data;
	cleanup_free char *path = NULL;

	(void)events;
	(void)status;
	if (name && strcmp(name, GS_REGISTRY_DELETED) != 0)
		return;
	path = gs_asprintf("%s/" GS_REGISTRY_DELETED, agent->config.run_dir);
	(void)uv_fs_event_stop(&agent->registry[DELETED]);
	if (watch_folder(&agent->registry[DELETED], path, on_registry, NULL) == 0)
		reconcile_soon(agent, SETTLE_MS); /* for what came before we looked */
}

/*
 * A user has few inotify instances, and containers that run as root are the same user as we are.
 * Without one the agent is still worth having, and looks for itself.
 */
static void watch_registry(struct agent *agent)
{
	static const char blind[] = "nobody tells of changes in the registry";
	cleanup_free char *path = gs_asprintf("%s/" GS_REGISTRY_CONTAINERS, agent->config.run_dir);
	struct gs_err err = { 0 };
	int r;

	for (size_t i = 0; i < GS_ARRAY_SIZE(agent->registry); i++)
		(void)uv_fs_event_stop(&agent->registry[i]);
	r = watch_folder(&agent->registry[CONTAINERS], path, on_registry, &err);
	if (r == 0)
		r = watch_folder(&agent->registry[RUN_DIR], agent->config.run_dir, on_run_dir,
				 &err);
	if (r == 0)
		on_run_dir(&agent->registry[RUN_DIR], NULL, 0, 0);
	agent->blind = r < 0;
	if (r < 0)
		told_log(&agent->told, GS_LOG_ERROR, blind, NULL, NULL, err.msg);
	else if (told_over(&agent->told, blind))
		gs_log_fields(GS_LOG_INFO, "changes in the registry are told again", NULL);
}

int reconcile_start(struct agent *agent, struct gs_err *err)
{
	int fd = gs_dir_make(agent->config.run_dir, GS_REGISTRY_CONTAINERS, err);

	if (fd < 0)
		return fd;
	(void)close(fd);
	(void)uv_timer_init(agent->loop, &agent->reconcile_timer);
	agent->reconcile_timer.data = agent;
	for (size_t i = 0; i < GS_ARRAY_SIZE(agent->registry); i++) {
		agent->registry[i].data = agent;
		(void)uv_fs_event_init(agent->loop, &agent->registry[i]);
	}
	watch_registry(agent);
	reconcile_soon(agent, 0);
	return 0;
}

void reconcile_free(struct agent *agent)
{
	plan_free(&agent->plan);
	containers_free(&agent->containers);
	gs_kstate_free(&agent->state);
	free(agent->holds);
	for (size_t i = 0; i < agent->n_cards; i++)
		forget_card(&agent->cards[i]);
	free(agent->cards);
	gs_strv_free(&agent->revoke);
}
