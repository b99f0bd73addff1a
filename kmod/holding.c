// SPDX-License-Identifier: GPL-2.0-only
/* What happens to a holding: its states, those who wait for it, and its borrowers' end. */
#include "agent.h"
#include "event.h"
#include "holding.h"
#include "kill.h"
#include "node.h"
#include "watch.h"

/* How long the last closes of those who have died may take: they are work of other tasks. */
#define HASTEN_MS 2000u

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

void gs_holding_tick_in(struct gs_holding *holding, unsigned long delay)
{
	/* The queued work holds a reference; a pending one that is moved has it already. */
	if (gs_going || holding->dead)
		return;
	kref_get(&holding->ref);
	if (mod_delayed_work(gs_clock_wq, &holding->tick, delay))
		gs_holding_put(holding);
}

void gs_holding_refresh(struct gs_holding *holding)
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
	gs_holding_tick_in(holding, 0);
}

/*
 * Waking takes a microsecond or two for each, and a member may have a hundred thousand threads.
 * They wait exclusively, so that they can be woken by the dozen.
 */
#define WAKE_NOW 64u

void gs_holding_wake(struct work_struct *work)
{
	struct gs_holding *holding = container_of(work, struct gs_holding, waker);
	unsigned int left;

	for (left = READ_ONCE(holding->held); left; left -= min(left, WAKE_NOW)) {
		wake_up_nr(&holding->wait, WAKE_NOW);
		cond_resched();
	}
	gs_holding_put(holding);
}

/* gs_lock held. */
static void wake_held(struct gs_holding *holding)
{
	if (holding->held <= WAKE_NOW) {
		wake_up_all(&holding->wait);
		return;
	}
	kref_get(&holding->ref);
	if (!queue_work(gs_wq, &holding->waker))
		gs_holding_put(holding);
}

static void let_go(struct gs_holding *holding)
{
	struct gs_notice *notice;

	if (holding->held_round) {
		notice = gs_event_new(GS_EV_RELEASED);
		strscpy(notice->name, holding->name, sizeof(notice->name));
		notice->held = holding->held;
		notice->held_ms = jiffies_to_msecs(jiffies - holding->held_since);
		notice->faults = holding->faults;
	}
	wake_held(holding);
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
	notice->mappings = holding->mappings;
	if (watch)
		gs_notice_caller(notice, watch, call);

	switch (next) {
	case GS_IDLE:
		holding->seq = notice->seq;
		break;
	case GS_ACTIVE:
		holding->active_since = jiffies;
		gs_holding_tick_in(holding, msecs_to_jiffies(holding->lend_after_ms) + 1);
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
		gs_holding_tick_in(holding, 0);
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
	gs_holding_refresh(holding);
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
		gs_holding_tick_in(holding, 0);
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
		gs_holding_refresh(holding);
	}
	/* Closes may not be seen any more: nobody waits for borrowers to end by themselves. */
	if (on == GS_ON_LOST && holding->state == GS_RETURNING)
		revoke_borrowers(holding, true);
}

void gs_holding_agent_lost(void)
{
	struct gs_holding *holding;

	list_for_each_entry(holding, &gs_holdings, link) {
		if (holding->state != GS_RETURNING && holding->state != GS_QUARANTINE)
			continue;
		revoke_borrowers(holding, true);
		if (holding->state == GS_RETURNING)
			gs_holding_tick_in(holding, 0);
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

void gs_holding_wake_all(void)
{
	struct gs_holding *holding;

	spin_lock(&gs_lock);
	list_for_each_entry(holding, &gs_holdings, link) {
		revoke_borrowers(holding, true);
		gs_holding_refresh(holding);
		wake_up_all(&holding->wait);
	}
	spin_unlock(&gs_lock);
	gs_act();
}
