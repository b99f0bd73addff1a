/* SPDX-License-Identifier: GPL-2.0-only */
/* Containers that are watched, and finding those that a caller belongs to. */
#ifndef GS_KMOD_WATCH_H
#define GS_KMOD_WATCH_H

#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>

#include "gs.h"

#define GS_WATCH_BITS 8

extern struct hlist_head gs_watch_hash[__GS_KEY_COUNT][1 << GS_WATCH_BITS];
extern unsigned int gs_watch_count[__GS_KEY_COUNT]; /* of each kind; WRITE_ONCE under gs_lock */
extern struct list_head gs_watches; /* by id; under gs_config */
extern unsigned int gs_n_watches;

/**
 * struct gs_watch_spec - what GS_CMD_WATCH_SET asks for; all borrowed
 * @key: cgroup id for the cgroup kinds; the PID namespace is found from @pid and @start_time
 * @start_time: clock ticks, field 22 of /proc/PID/stat
 */
struct gs_watch_spec {
	const char *name;
	enum gs_role role;
	enum gs_key by;
	u64 key;
	u32 pid;
	u64 start_time;
	bool kill_on_return;
	unsigned int n_holdings;
	struct gs_holding *holdings[GS_LINKS_MAX];
};

struct netlink_ext_ack;

/**
 * gs_watch_set() - watch a container, or let a watched member join more holdings
 * @spec: what is asked for
 * @extack: gets the reason of a refusal
 *
 * Context: process, gs_config held.
 * Return: 0; -ESRCH no such process; -EINVAL, -EEXIST another watch covers that container;
 * -EBUSY a lender is not LENT; -E2BIG; -ENOMEM.
 */
int gs_watch_set(const struct gs_watch_spec *spec, struct netlink_ext_ack *extack);

/**
 * gs_watch_del() - forget a container
 * @watch: not to be used afterwards
 *
 * Context: process, gs_config held; waits for a grace period.
 * Return: 0, or -EBUSY for a borrower with open files.
 */
int gs_watch_del(struct gs_watch *watch, struct netlink_ext_ack *extack);

/** gs_watch_find() - by name. Context: gs_config held. Return: borrowed, or NULL. */
struct gs_watch *gs_watch_find(const char *name);

/** gs_watch_put() - drops a reference. Context: process. */
void gs_watch_put(struct gs_watch *watch);

/**
 * gs_watch_refresh() - recomputes which calls of a watch are redirected
 *
 * Context: gs_lock held.
 */
void gs_watch_refresh(struct gs_watch *watch);

/**
 * gs_watch_sum() - touches of a watch on all devices
 *
 * Context: any. The sum holds every touch whose callback is over (see gs_holding_lend()).
 */
u64 gs_watch_sum(const struct gs_watch *watch);

/** gs_watch_node_sum() - touches on the node with that index. Context: any. */
u64 gs_watch_node_sum(const struct gs_watch *watch, unsigned int index);

/** gs_watch_last() - jiffies of the last touch; false if there was none. Context: any. */
bool gs_watch_last(const struct gs_watch *watch, unsigned long *last);

/** gs_watch_has() - is the task one of the watched container's? Context: RCU. */
bool gs_watch_has(const struct gs_watch *watch, struct task_struct *task);

/** gs_watch_exit() - forgets all. Context: process; hooks are gone, nobody calls any more. */
void gs_watch_exit(void);

/*
 * Namespaces are objects of a slab, a few hundred bytes apart; numbers of cgroups only grow. The
 * low bits of both are as good as any hash of them, which each call would pay for.
 */
static __always_inline struct hlist_head *gs_watch_bucket(enum gs_key by, unsigned long key)
{
	if (by == GS_KEY_PIDNS)
		key >>= 6;
	return &gs_watch_hash[by][key % (1 << GS_WATCH_BITS)];
}

static __always_inline struct gs_watch *gs_watch_lookup(enum gs_key by, unsigned long key)
{
	struct gs_watch *watch;

	hlist_for_each_entry_rcu_notrace(watch, gs_watch_bucket(by, key), hash)
		if (watch->key == key)
			return watch;
	return NULL;
}

typedef void (*gs_visit)(struct gs_watch *watch, void *arg);

static __always_inline void gs_walk_cgroups(enum gs_key by, struct cgroup *cgrp, gs_visit visit,
					    void *arg)
{
	struct gs_watch *watch;

	for (; cgrp; cgrp = cgroup_parent(cgrp)) {
		watch = gs_watch_lookup(by, cgroup_id(cgrp));
		if (watch)
			visit(watch, arg);
	}
}

/**
 * gs_walk_task() - visits every watch that covers a task, innermost first
 * @visit: called for each
 *
 * By the task's PID namespace and the ancestors of that: what runs in a container inside a
 * container belongs to both. The initial namespace (level 0) is never watched. Then by its cgroup
 * and the ancestors of that.
 *
 * Context: preemption off, RCU, or the task's own with gs_lock held. (css_set is read without
 * rcu_read_lock(): a region with preemption off is a reader too, but lockdep does not know that the
 * cgroup code's check would accept it, hence rcu_dereference_raw.)
 */
static __always_inline void gs_walk_task(struct task_struct *task, gs_visit visit, void *arg)
{
	const struct pid *pid = task_pid(task);
	struct gs_watch *watch;
	struct css_set *css;
	unsigned int level;

	/* An exiting task has none left; it makes no calls either. */
	if (unlikely(!pid))
		return;
	if (gs_watch_count[GS_KEY_PIDNS]) {
		for (level = pid->level; level > 0; level--) {
			watch = gs_watch_lookup(GS_KEY_PIDNS,
						(unsigned long)pid->numbers[level].ns);
			if (watch)
				visit(watch, arg);
		}
	}
	if (likely(!gs_watch_count[GS_KEY_CGROUP] && !gs_watch_count[GS_KEY_CGROUP_V1]))
		return;
	css = rcu_dereference_raw(task->cgroups);
	if (gs_watch_count[GS_KEY_CGROUP])
		gs_walk_cgroups(GS_KEY_CGROUP, css->dfl_cgrp, visit, arg);
#if GS_CGROUP_V1
	if (gs_watch_count[GS_KEY_CGROUP_V1])
		gs_walk_cgroups(GS_KEY_CGROUP_V1,
				rcu_dereference_raw(css->subsys[devices_cgrp_id])->cgroup, visit,
				arg);
#endif
}

/** gs_walk_current() - that, for the caller. Context: its own, preemption off or gs_lock held. */
static __always_inline void gs_walk_current(gs_visit visit, void *arg)
{
	gs_walk_task(current, visit, arg);
}

#endif
