// SPDX-License-Identifier: GPL-2.0-only
/* The list of holdings: making them, changing their times, forgetting them. */
#include <linux/slab.h>

#include "event.h"
#include "holding.h"
#include "node.h"
#include "watch.h"

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
	gs_holding_tick_in(holding, 0);
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
	INIT_WORK(&holding->waker, gs_holding_wake);
	INIT_DELAYED_WORK(&holding->tick, gs_holding_tick);

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

void gs_holding_exit(void)
{
	struct gs_holding *holding, *next;

	list_for_each_entry_safe(holding, next, &gs_holdings, link)
		drop_holding(holding);
}
