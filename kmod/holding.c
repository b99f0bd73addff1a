// SPDX-License-Identifier: GPL-2.0-only
/* Holdings: what happens to them, and the clock of each. */
#include <linux/slab.h>

#include "agent.h"
#include "event.h"
#include "hook.h"
#include "holding.h"
#include "kill.h"
#include "node.h"
#include "watch.h"

/* How long the last closes of those who have died may take: they are work of other tasks. */
#define HASTEN_MS 2000u

LIST_HEAD(gs_holdings);

static unsigned int n_holdings;
static u32 last_id;

struct gs_holding *gs_holding_find(const char *name)
{
	struct gs_holding *holding;

	list_for_each_entry(holding, &gs_holdings, link)
		if (strcmp(holding->name, name) == 0)
			return holding;
	return NULL;
}

static void holding_free(struct kref *ref)
{
	kfree(container_of(ref, struct gs_holding, ref));
}

void gs_holding_put(struct gs_holding *holding)
{
	kref_put(&holding->ref, holding_free);
}

bool gs_holding_last(const struct gs_holding *holding, unsigned long *last)
{
	struct gs_link *link;
	bool any = false;
	unsigned long t;

	list_for_each_entry(link, &holding->links, of_holding) {
		if (link->watch->role != GS_MEMBER || !gs_watch_last(link->watch, &t))
			continue;
		if (!any || time_after(t, *last))
			*last = t;
		any = true;
	}
	return any;
}

/* Touches of all members, those that left included. */
static u64 sum_touches(const struct gs_holding *holding)
{
	u64 sum = holding->gone;
	struct gs_link *link;

	list_for_each_entry(link, &holding->links, of_holding)
		if (link->watch->role == GS_MEMBER)
			sum += gs_watch_sum(link->watch);
	return sum;
}

static bool all_hooked(const struct gs_holding *holding)
{
	unsigned int i;

	for (i = 0; i < holding->n_devs; i++)
		if (!gs_node_lookup(holding->devs[i]))
			return false;
	return true;
}

static unsigned int facts_of(const struct gs_holding *holding)
{
	unsigned int facts = holding->files ? GS_FACT_FILES : 0;
	struct gs_link *link;

	list_for_each_entry(link, &holding->links, of_holding)
		if (link->watch->role == GS_BORROWER)
			facts |= GS_FACT_BORROWERS;
	if (!all_hooked(holding))
		facts |= GS_FACT_UNHOOKED;
	return facts;
}

static void schedule_tick(struct gs_holding *holding, unsigned long delay)
{
	/* The queued work holds a reference; a pending one that is moved has it already. */
	if (gs_going || holding->dead)
		return;
	kref_get(&holding->ref);
	if (mod_delayed_work(gs_clock_wq, &holding->tick, delay))
		kref_put(&holding->ref, holding_free);
}

static void refresh_members(struct gs_holding *holding)
{
	struct gs_link *link;

	list_for_each_entry(link, &holding->links, of_holding)
		if (link->watch->role == GS_MEMBER)
			gs_watch_refresh(link->watch);
}

/*
 * Nobody who borrows from the holding may touch anything any more; and who is to be killed, or has
 * no agent to see to it, is killed, also if it was revoked before.
 */
static void revoke_borrowers(struct gs_holding *holding, bool kill)
{
	struct gs_notice *notice;
	struct gs_watch *watch;
	struct gs_link *link;

	list_for_each_entry(link, &holding->links, of_holding) {
		watch = link->watch;
		if (watch->role != GS_BORROWER)
			continue;
		if ((kill || watch->kill_on_return || !gs_agent_alive()) && !watch->killed)
			watch->kill = true;
		if (watch->revoked)
			continue;
		watch->revoked = true;
		watch->look = true;
		WRITE_ONCE(gs_special, gs_special + watch->files * GS_SPECIAL);
		gs_watch_refresh(watch);
		notice = gs_event_new(GS_EV_REVOKED);
		strscpy(notice->watch, watch->name, sizeof(notice->watch));
		strscpy(notice->name, holding->name, sizeof(notice->name));
		notice->killed = watch->kill;
	}
	gs_act();
}

/* Is there a borrower with files that may still close them? */
static bool may_drain(const struct gs_holding *holding)
{
	struct gs_link *link;

	list_for_each_entry(link, &holding->links, of_holding)
		if (link->watch->role == GS_BORROWER && link->watch->files && !link->watch->gone)
			return true;
	return false;
}

void gs_holding_hasten(struct gs_holding *holding)
{
	unsigned long until;

	if (holding->state != GS_RETURNING || !holding->files || may_drain(holding))
		return;
	until = jiffies + msecs_to_jiffies(max(holding->settle_ms, HASTEN_MS));
	if (time_before(until, holding->return_until))
		holding->return_until = until;
	schedule_tick(holding, 0);
}

static void let_go(struct gs_holding *holding)
{
	struct gs_notice *notice;

	if (holding->held_round) {
		notice = gs_event_new(GS_EV_RELEASED);
		strscpy(notice->name, holding->name, sizeof(notice->name));
		notice->held = holding->held;
		notice->held_ms = jiffies_to_msecs(jiffies - holding->held_since);
	}
	wake_up_all(&holding->wait);
}

/* A state is left, another entered. gs_lock held. */
static void change_state(struct gs_holding *holding, enum gs_state next, enum gs_on on,
			 const struct gs_watch *watch, const struct gs_call *call)
{
	enum gs_state from = holding->state;
	struct gs_notice *notice;

	WRITE_ONCE(holding->state, next);
	holding->since = gs_clock();
	holding->checking = false;

	notice = gs_event_new(GS_EV_STATE);
	strscpy(notice->name, holding->name, sizeof(notice->name));
	notice->from = from;
	notice->state = next;
	notice->cause = gs_state_cause(on);
	if (watch)
		gs_notice_caller(notice, watch, call);

	switch (next) {
	case GS_IDLE:
		holding->seq = notice->seq;
		break;
	case GS_ACTIVE:
		holding->active_since = jiffies;
		schedule_tick(holding, msecs_to_jiffies(holding->lend_after_ms) + 1);
		break;
	case GS_RETURNING:
		holding->seq = notice->seq;
		holding->return_seq = notice->seq;
		holding->round++;
		holding->held_round = 0;
		holding->return_until = jiffies + msecs_to_jiffies(holding->hold_max_ms);
		holding->drained_at = jiffies;
		gs_totals.returns++;
		revoke_borrowers(holding, on == GS_ON_LOST);
		schedule_tick(holding, 0);
		/* Another lender's return may have ended them before. */
		gs_holding_hasten(holding);
		break;
	case GS_QUARANTINE:
		gs_totals.quarantine++;
		break;
	case GS_UNKNOWN:
		revoke_borrowers(holding, true);
		break;
	default:
		break;
	}
	if (from == GS_RETURNING) {
		if (on == GS_ON_SETTLED)
			gs_totals.settled++;
		else if (on == GS_ON_HOLD_MAX)
			gs_totals.hold_max++;
		let_go(holding);
	}
	refresh_members(holding);
	if (next == GS_RETURNING && !holding->files)
		gs_holding_drained(holding);
	gs_act();
}

void gs_holding_drained(struct gs_holding *holding)
{
	struct gs_notice *notice;

	holding->drained_at = jiffies;
	/* A borrower may open and close as often as it likes: nobody waits for that yet. */
	if (holding->state != GS_RETURNING && holding->state != GS_QUARANTINE)
		return;
	notice = gs_event_new(GS_EV_DRAINED);
	strscpy(notice->name, holding->name, sizeof(notice->name));
	gs_holding_on(holding, GS_ON_DRAINED, NULL, NULL);
	if (holding->state == GS_RETURNING)
		schedule_tick(holding, 0);
	gs_act();
}

void gs_holding_on(struct gs_holding *holding, enum gs_on on, const struct gs_watch *watch,
		   const struct gs_call *call)
{
	enum gs_state next = gs_state_next(holding->state, on, facts_of(holding));

	if (next != holding->state) {
		change_state(holding, next, on, watch, call);
	} else if (on == GS_ON_TOUCH && holding->checking) {
		holding->checking = false;
		refresh_members(holding);
	}
	/* Closes may not be seen any more: nobody waits for borrowers to end by themselves. */
	if (on == GS_ON_LOST && holding->state == GS_RETURNING)
		revoke_borrowers(holding, true);
}

/*
 * Silent for lend_after? (A card that nobody holds is a holding without members, and is.) The
 * answer must not miss a touch that is just being counted: calls are redirected first, callbacks
 * that did not see that are waited for, and then it is asked again.
 */
static void check_idle(struct gs_holding *holding)
{
	unsigned long after = msecs_to_jiffies(holding->lend_after_ms);
	unsigned long since, last;
	bool again;

	spin_lock(&gs_lock);
	for (again = false;; again = true) {
		if (holding->state != GS_ACTIVE)
			break;
		if (again && !holding->checking) {
			/* Touched meanwhile: look again later. */
			schedule_tick(holding, after);
			break;
		}
		since = holding->active_since;
		if (gs_holding_last(holding, &last) && time_after(last, since))
			since = last;
		/* A touch late in one tick and a look early in the next are no tick apart. */
		if (time_before_eq(jiffies, since + after)) {
			holding->checking = false;
			refresh_members(holding);
			schedule_tick(holding, since + after + 1 - jiffies);
			break;
		}
		if (again) {
			holding->base = sum_touches(holding);
			gs_holding_on(holding, GS_ON_SILENCE, NULL, NULL);
			break;
		}
		holding->checking = true;
		refresh_members(holding);
		spin_unlock(&gs_lock);
		synchronize_rcu();
		spin_lock(&gs_lock);
	}
	spin_unlock(&gs_lock);
}

/* How a return ends when nobody ends it. */
static void check_return(struct gs_holding *holding)
{
	unsigned long settle = holding->drained_at + msecs_to_jiffies(holding->settle_ms);
	unsigned long next = holding->return_until;

	if (time_after_eq(jiffies, holding->return_until)) {
		gs_holding_on(holding, GS_ON_HOLD_MAX, NULL, NULL);
		return;
	}
	if (!holding->files && !gs_agent_alive()) {
		if (time_after_eq(jiffies, settle)) {
			gs_holding_on(holding, GS_ON_SETTLED, NULL, NULL);
			return;
		}
		if (time_before(settle, next))
			next = settle;
	}
	schedule_tick(holding, next - jiffies);
}

static void holding_tick(struct work_struct *work)
{
	struct gs_holding *holding = container_of(to_delayed_work(work), struct gs_holding, tick);
	enum gs_state state;

	spin_lock(&gs_lock);
	state = holding->state;
	if (state == GS_RETURNING)
		check_return(holding);
	spin_unlock(&gs_lock);
	if (state == GS_ACTIVE)
		check_idle(holding);
	gs_holding_put(holding);
}

void gs_holding_agent_lost(void)
{
	struct gs_holding *holding;

	list_for_each_entry(holding, &gs_holdings, link) {
		if (holding->state != GS_RETURNING && holding->state != GS_QUARANTINE)
			continue;
		revoke_borrowers(holding, true);
		if (holding->state == GS_RETURNING)
			schedule_tick(holding, 0);
	}
}

void gs_holding_hooks_changed(void)
{
	struct gs_holding *holding;

	spin_lock(&gs_lock);
	list_for_each_entry(holding, &gs_holdings, link)
		gs_holding_on(holding, all_hooked(holding) ? GS_ON_HOOKED : GS_ON_LOST, NULL, NULL);
	spin_unlock(&gs_lock);
}

struct gs_holding *gs_holding_needs(dev_t dev)
{
	struct gs_holding *holding;
	unsigned int i;

	list_for_each_entry(holding, &gs_holdings, link) {
		enum gs_state state = READ_ONCE(holding->state);

		if (state != GS_LENT && state != GS_RETURNING && state != GS_QUARANTINE)
			continue;
		for (i = 0; i < holding->n_devs; i++)
			if (holding->devs[i] == dev)
				return holding;
	}
	return NULL;
}

/* Can the open files of a borrower be counted on every node, and do our hooks still work? */
static int check_lendable(struct gs_holding *holding, struct netlink_ext_ack *extack)
{
	struct gs_node *node;
	unsigned int i;

	if (!gs_agent_alive()) {
		gs_refuse(extack, "no agent: nobody to evict the borrowers");
		return -ENOTCONN;
	}
	if (!gs_nodes_check()) {
		gs_refuse(extack, "ftrace has stopped calling us: nothing is lent");
		return -EIO;
	}
	for (i = 0; i < holding->n_devs; i++) {
		node = gs_node_find(holding->devs[i]);
		if (node && (!node->fns[GS_OPEN] || !node->fns[GS_RELEASE])) {
			gs_refuse(extack,
				  "a node has no open or release function to count files by");
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

int gs_holding_lend(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack)
{
	int ret;

	ret = check_lendable(holding, extack);
	if (ret)
		return ret;

	spin_lock(&gs_lock);
	if (holding->state != GS_IDLE || holding->seq != seq) {
		gs_refuse(extack,
			  "the holding is not idle any more, or was touched since that event");
		ret = -EAGAIN;
	} else if (holding->files) {
		gs_refuse(extack, "earlier borrowers have open files");
		ret = -EBUSY;
	} else {
		gs_holding_on(holding, GS_ON_LEND, NULL, NULL);
	}
	spin_unlock(&gs_lock);
	if (ret)
		return ret;

	/* Callbacks that did not see the redirection are over after this, and have counted. */
	synchronize_rcu();

	spin_lock(&gs_lock);
	if (holding->state == GS_LENDING)
		gs_holding_on(holding,
			      sum_touches(holding) == holding->base ? GS_ON_QUIET : GS_ON_LOUD,
			      NULL, NULL);
	if (holding->state != GS_LENT) {
		gs_refuse(extack, "a touch came between");
		ret = -EAGAIN;
	}
	spin_unlock(&gs_lock);
	return ret;
}

int gs_holding_release(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack)
{
	int ret = 0;

	spin_lock(&gs_lock);
	if (!seq || holding->return_seq != seq) {
		gs_refuse(extack, "that is not the number of the last return");
		ret = -ESTALE;
	} else if (holding->state == GS_RETURNING && holding->files) {
		gs_refuse(extack, "borrowers have open files: wait for DRAINED");
		ret = -EBUSY;
	} else {
		gs_holding_on(holding, GS_ON_RELEASE, NULL, NULL);
	}
	spin_unlock(&gs_lock);
	return ret;
}

static u32 given(u32 asked, u32 otherwise)
{
	return asked == U32_MAX ? otherwise : asked;
}

static int holding_update(struct gs_holding *holding, const struct gs_holding_spec *spec,
			  struct netlink_ext_ack *extack)
{
	unsigned int i;

	for (i = 0; i < spec->n_devs; i++)
		if (spec->n_devs != holding->n_devs ||
		    new_decode_dev(spec->devs[i]) != holding->devs[i])
			break;
	if (i != spec->n_devs) {
		gs_refuse(extack, "a holding of that name has other nodes: delete it first");
		return -EEXIST;
	}
	spin_lock(&gs_lock);
	holding->lend_after_ms = given(spec->lend_after_ms, holding->lend_after_ms);
	holding->hold_max_ms = given(spec->hold_max_ms, holding->hold_max_ms);
	holding->settle_ms = given(spec->settle_ms, holding->settle_ms);
	schedule_tick(holding, 0);
	spin_unlock(&gs_lock);
	return 0;
}

int gs_holding_set(const struct gs_holding_spec *spec, struct netlink_ext_ack *extack)
{
	struct gs_holding *holding = gs_holding_find(spec->name);
	unsigned int i;

	if (holding)
		return holding_update(holding, spec, extack);
	if (!spec->n_devs) {
		gs_refuse(extack, "a new holding needs its device nodes");
		return -EINVAL;
	}
	if (n_holdings >= GS_HOLDINGS_MAX) {
		gs_refuse(extack, "too many holdings");
		return -E2BIG;
	}
	holding = kzalloc(sizeof(*holding), GFP_KERNEL);
	if (!holding)
		return -ENOMEM;
	kref_init(&holding->ref);
	holding->id = ++last_id;
	strscpy(holding->name, spec->name, sizeof(holding->name));
	holding->n_devs = spec->n_devs;
	for (i = 0; i < spec->n_devs; i++)
		holding->devs[i] = new_decode_dev(spec->devs[i]);
	holding->lend_after_ms = given(spec->lend_after_ms, gs_default_lend_after());
	holding->hold_max_ms = given(spec->hold_max_ms, gs_default_hold_max());
	holding->settle_ms = given(spec->settle_ms, gs_default_settle());
	holding->state = GS_UNKNOWN;
	holding->since = gs_clock();
	INIT_LIST_HEAD(&holding->links);
	init_waitqueue_head(&holding->wait);
	INIT_DELAYED_WORK(&holding->tick, holding_tick);

	spin_lock(&gs_lock);
	list_add_tail(&holding->link, &gs_holdings);
	gs_config_generation++;
	n_holdings++;
	gs_holding_on(holding, GS_ON_HOOKED, NULL, NULL);
	spin_unlock(&gs_lock);
	return 0;
}

/* Takes a holding out of everything; its waiters go on. gs_config held. */
static void drop_holding(struct gs_holding *holding)
{
	struct gs_link *link, *next;
	struct gs_watch *watch;
	LIST_HEAD(links);

	spin_lock(&gs_lock);
	list_for_each_entry_safe(link, next, &holding->links, of_holding) {
		watch = link->watch;
		list_move(&link->of_watch, &links);
		list_del(&link->of_holding);
		watch->n_links--;
		gs_watch_refresh(watch);
	}
	list_del(&holding->link);
	gs_config_generation++;
	n_holdings--;
	holding->dead = true;
	WRITE_ONCE(holding->state, GS_UNKNOWN);
	wake_up_all(&holding->wait);
	spin_unlock(&gs_lock);

	if (cancel_delayed_work_sync(&holding->tick))
		gs_holding_put(holding);
	list_for_each_entry_safe(link, next, &links, of_watch) {
		list_del(&link->of_watch);
		kfree(link);
		gs_holding_put(holding);
	}
	gs_holding_put(holding);
}

int gs_holding_del(struct gs_holding *holding, struct netlink_ext_ack *extack)
{
	enum gs_state state = READ_ONCE(holding->state);

	if (state == GS_LENT || state == GS_RETURNING || state == GS_QUARANTINE ||
	    READ_ONCE(holding->files)) {
		gs_refuse(extack, "the holding is lent or returning: withdraw it first");
		return -EBUSY;
	}
	drop_holding(holding);
	return 0;
}

void gs_holding_wake_all(void)
{
	struct gs_holding *holding;

	spin_lock(&gs_lock);
	list_for_each_entry(holding, &gs_holdings, link) {
		revoke_borrowers(holding, true);
		refresh_members(holding);
		wake_up_all(&holding->wait);
	}
	spin_unlock(&gs_lock);
	gs_act();
}

void gs_holding_exit(void)
{
	struct gs_holding *holding, *next;

	list_for_each_entry_safe(holding, next, &gs_holdings, link)
		drop_holding(holding);
}
