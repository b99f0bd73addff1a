/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of gpushare.ko share.
 *
 * Locks, in this order:
 *   gs_hooks (mutex)	nodes, and what ftrace is told: it may wait for ftrace for minutes, so that
 *			nothing but HOOK_ADD, HOOK_DEL and their like waits for it.
 *   gs_config (mutex)	who is watched, hooked, lent: taken by netlink commands and by the module
 *			notifier. Never taken by a caller of a driver.
 *   gs_lock (spinlock)	states, links between watches and holdings, files of borrowers. Never taken
 *			in the ftrace callback, and never held across anybody else's code.
 * The callback (see.c) runs with preemption off and reads the hash tables of watches and nodes and
 * each watch's @redirect without a lock; what it may still look at is freed after
 * synchronize_rcu(), which waits for regions with preemption off on every supported kernel.
 */
#ifndef GS_KMOD_GS_H
#define GS_KMOD_GS_H

#include <linux/device.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/pid_namespace.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "state.h"

struct gs_fn;

#define GS_KIND_BIT(kind) (1u << (kind))
#define GS_ALL_CALLS                                                                   \
	(GS_KIND_BIT(GS_OPEN) | GS_KIND_BIT(GS_IOCTL) | GS_KIND_BIT(GS_COMPAT_IOCTL) | \
	 GS_KIND_BIT(GS_MMAP) | GS_KIND_BIT(GS_FAULT))

/* Bounds on what root may make us keep, and of times. */
#define GS_LEND_AFTER_MAX_MS (7 * 24 * 3600 * 1000u)
#define GS_HOLD_MAX_MAX_MS (10 * 60 * 1000u)
#define GS_SETTLE_MAX_MS (60 * 1000u)
#define GS_HOLDINGS_MAX 4096
#define GS_WATCHES_MAX 8192
#define GS_MAP_FNS 8 /* functions of one node's mappings */

/**
 * struct gs_counts - what one processor saw of one watch; written by that processor alone
 * @last: jiffies of the last touch, 0 for none yet
 * @touches: by gs_node.index
 */
struct gs_counts {
	unsigned long last;
	u64 touches[GS_NODES_MAX];
};

/**
 * struct gs_node - a device node whose functions are hooked
 * @index: its place in gs_counts.touches; the same device number gets the same again
 * @passive_bits: 1 << (number & 63) of each passive ioctl: what has no bit here is not one
 * @modular: one of its functions is a module's
 * @revocable: members' mappings are taken away by LEND
 * @fns: by enum gs_kind; NULL where the driver has none, or a generic one that needs no hook
 * @map_fns: of its mappings, as they were met; under gs_hooks
 */
struct gs_node {
	struct hlist_node hash;
	struct list_head link;
	u32 id;
	dev_t dev;
	unsigned int index;
	unsigned int n_passive;
	u64 passive_bits;
	u32 passive[GS_PASSIVE_MAX];
	bool modular;
	bool revocable;
	struct gs_fn *fns[__GS_KIND_MAX];
	struct gs_fn *map_fns[GS_MAP_FNS];
	char driver[GS_NAME_MAX + 1];
	char module[MODULE_NAME_LEN];
};

/**
 * struct gs_holding - the containers that use one reserved allocation, as one
 *
 * @link, @id, @name, @devs, @n_devs and the times change under gs_config, the rest under gs_lock.
 *
 * @checking: ACTIVE and silent; calls are redirected while the idle check waits for the callbacks
 * @dead: deleted; waiters may still have references
 * @seq: number of the event that told of IDLE, and then of the one that told of RETURNING
 * @return_seq: number of the last return
 * @round: counts returns, so that a waiter never mistakes a later one for its own
 * @gone: touches of members that have left
 * @base: touches at the time of IDLE
 * @active_since: jiffies
 * @return_until: jiffies: return + hold_max
 * @drained_at: jiffies: since when the borrowers have no open file
 * @files: open files of its borrowers
 * @held: callers that wait now
 * @held_round: callers that waited in this round, held_since its first (jiffies)
 * @mappings: of its members, that the last LEND took away
 * @faults: touches of those since then
 * @waker: lets those go on who are too many to be woken under gs_lock
 */
struct gs_holding {
	struct list_head link;
	struct kref ref;
	u32 id;
	char name[GS_NAME_MAX + 1];
	unsigned int n_devs;
	dev_t devs[GS_NODES_MAX];
	u32 lend_after_ms;
	u32 hold_max_ms;
	u32 settle_ms;

	enum gs_state state;
	bool checking;
	bool dead;
	u64 since;
	u64 seq;
	u64 return_seq;
	unsigned int round;
	u64 gone;
	u64 base;
	unsigned long active_since;
	unsigned long return_until;
	unsigned long drained_at;
	unsigned int files;
	unsigned int held;
	unsigned int held_round;
	unsigned long held_since;
	u32 mappings;
	u64 faults;
	struct list_head links; /* gs_link.of_holding */
	wait_queue_head_t wait;
	struct work_struct waker;
	struct delayed_work tick;
};

/**
 * struct gs_watch - one container
 * @key: its PID namespace, or the id of its cgroup
 * @redirect: bits by enum gs_kind: calls that the callback must not let pass by itself
 * @init: the namespace's first process
 * @nested: it lies in another watch, or another in it
 * @kill: to be killed by the actor; @killed: SIGKILL was sent
 */
struct gs_watch {
	struct hlist_node hash;
	unsigned long key;
	unsigned int redirect;
	u8 role;
	u8 by; /* enum gs_key */
	bool revoked;
	bool kill_on_return;
	bool kill;
	bool killed;
	bool stolen; /* a use of its files by somebody else was reported */
	bool nested;
	bool gone; /* revoked, and nobody is left of it */
	bool look; /* the actor shall see whether it is gone, while somebody else kills it */
	bool looked; /* the actor has seen it */
	bool again; /* somebody was there: kill or look once more */
	struct gs_counts __percpu *counts;

	struct list_head link;
	struct kref ref;
	u32 id;
	char name[GS_NAME_MAX + 1];
	struct pid_namespace *ns;
	struct pid *init;
	u32 pid;
	unsigned int n_links;
	unsigned int files;
	struct list_head links; /* gs_link.of_watch */
};

enum gs_key {
	GS_KEY_PIDNS,
	GS_KEY_CGROUP,
	GS_KEY_CGROUP_V1,
	__GS_KEY_COUNT,
};

/* A member of a holding, or a borrower from it. */
struct gs_link {
	struct gs_watch *watch;
	struct gs_holding *holding;
	struct list_head of_watch;
	struct list_head of_holding;
};

/**
 * struct gs_call - a redirected call of a driver's function
 * @task: whose call it is, if not the current one's: a fault or an access from outside
 * @quiet: it is nobody's touch
 * @borrower: set by gs_gate_enter() for a borrower, which owns the reference until gs_gate_leave()
 */
struct gs_call {
	enum gs_kind kind;
	struct inode *inode;
	struct file *file;
	struct task_struct *task;
	bool quiet;
	struct gs_watch *borrower;
};

extern struct mutex gs_hooks;
extern struct mutex gs_config;

/*
 * gs_hooks_lock() - takes gs_hooks, for those who can't be told to try again: workers, and rmmod
 *
 * Asleep meanwhile, and idle in the kernel's eyes: whoever has the lock may wait for ftrace for
 * minutes, and the checker of hung tasks, which may panic, has nothing to say of those behind him.
 *
 * Context: process, none of our locks held.
 */
void gs_hooks_lock(void);

extern unsigned int gs_config_generation; /* counts objects that come or go; under gs_config */
extern spinlock_t gs_lock;
extern bool gs_going;

/*
 * What see() in see.c can't do in its short way: GS_SPECIAL for each exempt watch, each inside
 * another, each open file of a revoked borrower. Besides, 1 for each watch by cgroup: with nothing
 * but those it looks at the caller's cgroups too. Changed under gs_lock.
 */
extern unsigned long gs_special;
#define GS_SPECIAL (1ul << 16) /* more than GS_WATCHES_MAX */
/* Kills must not wait: neither for grace periods, nor for memory that they would free. */
extern struct workqueue_struct *gs_wq; /* kills, and the agent's clock */
extern struct workqueue_struct *gs_clock_wq; /* clocks of holdings */
extern struct workqueue_struct *gs_tell_wq; /* events */

/** gs_features() - GS_F_* bits of this kernel (main.c). Context: any. */
u32 gs_features(void);

/*
 * The times of a holding that has none of its own: the module's parameters, within the bounds
 * (main.c). In milliseconds. Context: any.
 */
u32 gs_default_lend_after(void);
u32 gs_default_hold_max(void);
u32 gs_default_settle(void);

/** gs_kernel_hold_max() - for how long a fault of the kernel's own is held, in milliseconds. */
u32 gs_kernel_hold_max(void);

#endif
