/* SPDX-License-Identifier: GPL-2.0-only */
/* Holdings: making, changing, and what happens to them. */
#ifndef GS_KMOD_HOLDING_H
#define GS_KMOD_HOLDING_H

#include "gs.h"

extern struct list_head gs_holdings; /* by id; under gs_config, and gs_lock for changes */

struct netlink_ext_ack;

/**
 * struct gs_holding_spec - what GS_CMD_HOLDING_SET asks for; borrowed
 *
 * A time of U32_MAX is not given: the default for a new holding, no change for an old one.
 */
struct gs_holding_spec {
	const char *name;
	unsigned int n_devs;
	const u32 *devs; /* encoded */
	u32 lend_after_ms;
	u32 hold_max_ms;
	u32 settle_ms;
};

/**
 * gs_holding_set() - make a holding, or change the times of one
 *
 * Context: process, gs_config held.
 * Return: 0; -EEXIST it has other nodes; -EINVAL; -E2BIG; -ENOMEM.
 */
int gs_holding_set(const struct gs_holding_spec *spec, struct netlink_ext_ack *extack);

/**
 * gs_holding_del() - forget a holding; its members go on unwatched
 *
 * Context: process, gs_config held.
 * Return: 0, or -EBUSY while it is lent, returning or in quarantine.
 */
int gs_holding_del(struct gs_holding *holding, struct netlink_ext_ack *extack);

/** gs_holding_find() - by name. Context: gs_config held. Return: borrowed, or NULL. */
struct gs_holding *gs_holding_find(const char *name);

/** gs_holding_put() - drops a reference. Context: any that may free memory. */
void gs_holding_put(struct gs_holding *holding);

/**
 * gs_holding_on() - something happened to a holding
 * @holding: which
 * @on: what
 * @watch: of the caller whose touch it was, or NULL
 * @call: that call, or NULL
 *
 * Changes the state, revokes borrowers, wakes who waits, tells user space, as it has to.
 * Context: gs_lock held.
 */
void gs_holding_on(struct gs_holding *holding, enum gs_on on, const struct gs_watch *watch,
		   const struct gs_call *call);

/**
 * gs_holding_drained() - the last of its borrowers' files was closed
 *
 * Context: gs_lock held.
 */
void gs_holding_drained(struct gs_holding *holding);

/**
 * gs_holding_lend() - GS_CMD_LEND
 * @seq: of the IDLE event
 *
 * Context: process, gs_config held; waits for a grace period.
 * Return: 0; -EAGAIN a touch came between, or another number; -EBUSY files of earlier borrowers are
 * open; -ENOTCONN no agent; -EOPNOTSUPP borrowers' files can't be counted on a node; -EIO ftrace
 * does not call us any more.
 */
int gs_holding_lend(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack);

/**
 * gs_holding_sample() - GS_CMD_SAMPLE: lets a store of a member be seen, while the holding is idle
 * @seq: of the IDLE event
 *
 * Context: process, gs_hooks and gs_config held; the latter may be given up for a while.
 * Return: 0; -EAGAIN a touch came between, or another number; -EBUSY; -EOPNOTSUPP no mapping of its
 * nodes can be taken away; -EIO ftrace does not call us any more.
 */
int gs_holding_sample(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack);

/**
 * gs_holding_release() - GS_CMD_RELEASE
 * @seq: of the RETURN event
 *
 * Context: process, gs_config held.
 * Return: 0; -ESTALE; -EBUSY.
 */
int gs_holding_release(struct gs_holding *holding, u64 seq, struct netlink_ext_ack *extack);

/**
 * gs_holding_hooks_changed() - a node got or lost its hooks
 *
 * Context: process, gs_config held.
 */
void gs_holding_hooks_changed(void);

/**
 * gs_holding_needs() - is a lent, returning or quarantined holding in need of a node?
 *
 * Context: gs_config held. Return: the holding, borrowed, or NULL.
 */
struct gs_holding *gs_holding_needs(dev_t dev);

/** gs_holding_agent_lost() - lets returns end without the agent. Context: gs_lock held. */
void gs_holding_agent_lost(void);

/**
 * gs_holding_hasten() - ends a return early if nobody is left of the borrowers with open files
 *
 * Files that they have passed on to others do not close by their death: the user need not wait for
 * them until hold_max.
 * Context: gs_lock held.
 */
void gs_holding_hasten(struct gs_holding *holding);

/** gs_holding_tick() - the work of a holding's clock: is it silent now, is its return over? */
void gs_holding_tick(struct work_struct *work);

/** gs_holding_wake() - the work that wakes many. */
void gs_holding_wake(struct work_struct *work);

/** gs_holding_tick_in() - lets that run after @delay jiffies, not before. Context: gs_lock held. */
void gs_holding_tick_in(struct gs_holding *holding, unsigned long delay);

/** gs_holding_refresh() - tells the callback what its members' calls are now. gs_lock held. */
void gs_holding_refresh(struct gs_holding *holding);

/** gs_holding_last() - jiffies of its members' last touch; false: none. Context: gs_lock held. */
bool gs_holding_last(const struct gs_holding *holding, unsigned long *last);

/** gs_holding_wake_all() - lets every waiter go, for the module is going. Context: process. */
void gs_holding_wake_all(void);

/** gs_holding_exit() - forgets all. Context: process; hooks are gone. */
void gs_holding_exit(void);

#endif
