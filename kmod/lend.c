// SPDX-License-Identifier: GPL-2.0-only
/* Lending and the way back, on the agent's word and by a holding's own clock. */
#include "agent.h"
#include "event.h"
#include "hook.h"
#include "holding.h"
#include "node.h"
#include "revoke.h"
#include "watch.h"

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
			gs_holding_tick_in(holding, after);
			break;
		}
		since = holding->active_since;
		if (gs_holding_last(holding, &last) && time_after(last, since))
			since = last;
		/* A touch late in one tick and a look early in the next are no tick apart. */
		if (time_before_eq(jiffies, since + after)) {
			holding->checking = false;
			gs_holding_refresh(holding);
			gs_holding_tick_in(holding, since + after + 1 - jiffies);
			break;
		}
		if (again) {
			holding->base = sum_touches(holding);
			gs_holding_on(holding, GS_ON_SILENCE, NULL, NULL);
			break;
		}
		holding->checking = true;
		gs_holding_refresh(holding);
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
	gs_holding_tick_in(holding, next - jiffies);
}

void gs_holding_tick(struct work_struct *work)
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

/* Is it what the agent saw? gs_lock held. */
static int check_idle_still(const struct gs_holding *holding, u64 seq,
			    struct netlink_ext_ack *extack)
{
	if (holding->state != GS_IDLE || holding->seq != seq) {
		gs_refuse(extack,
			  "the holding is not idle any more, or was touched since that event");
		return -EAGAIN;
	}
	if (holding->files) {
		gs_refuse(extack, "earlier borrowers have open files");
		return -EBUSY;
	}
	return 0;
}

int gs_holding_lend(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack)
{
	u32 mappings = 0;
	bool revoke;
	int ret;

	ret = check_lendable(holding, extack);
	if (ret)
		return ret;

	spin_lock(&gs_lock);
	ret = check_idle_still(holding, seq, extack);
	spin_unlock(&gs_lock);
	revoke = !ret && gs_revoke_wanted(holding);
	if (revoke)
		ret = gs_revoke_prepare(holding, extack);
	if (ret)
		return ret;

	spin_lock(&gs_lock);
	ret = check_idle_still(holding, seq, extack);
	if (!ret) {
		holding->mappings = 0;
		holding->faults = 0;
		gs_holding_on(holding, GS_ON_LEND, NULL, NULL);
	}
	spin_unlock(&gs_lock);
	if (ret)
		return ret;

	/* Callbacks that did not see the redirection are over after this, and have counted. */
	synchronize_rcu();
	if (revoke)
		ret = gs_revoke(holding, &mappings, extack);

	spin_lock(&gs_lock);
	holding->mappings = mappings;
	gs_totals.mappings += mappings;
	/* What was taken away comes back by itself; nobody has touched it, so nobody is told so. */
	if (holding->state == GS_LENDING && ret) {
		gs_holding_on(holding, GS_ON_WITHDRAW, NULL, NULL);
		spin_unlock(&gs_lock);
		return ret;
	}
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

/*
 * No grace period: a call that began before was counted before the holding became idle, or is a
 * touch now; and a fault that began before has the memory's lock, which the walk waits for.
 */
int gs_holding_sample(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack)
{
	u32 mappings = 0;
	int ret;

	if (!gs_revoke_wanted(holding)) {
		gs_refuse(extack, "no node of the holding is revocable");
		return -EOPNOTSUPP;
	}
	if (!gs_nodes_check()) {
		gs_refuse(extack, "ftrace has stopped calling us: nothing would be seen");
		return -EIO;
	}
	spin_lock(&gs_lock);
	ret = check_idle_still(holding, seq, extack);
	spin_unlock(&gs_lock);
	ret = ret ?: gs_revoke_prepare(holding, extack);
	ret = ret ?: gs_revoke(holding, &mappings, extack);
	if (ret)
		return ret;

	spin_lock(&gs_lock);
	holding->mappings = mappings;
	gs_totals.mappings += mappings;
	ret = check_idle_still(holding, seq, extack);
	spin_unlock(&gs_lock);
	return ret;
}

int gs_holding_release(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack)
{
	int ret = 0;

	spin_lock(&gs_lock);
	if (gs_going) {
		gs_refuse(extack, "the module is being unloaded");
		ret = -ESHUTDOWN;
	} else if (!seq || holding->return_seq != seq) {
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
