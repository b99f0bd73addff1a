// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooking a driver's functions by ftrace, and counting who calls them.
 *
 * ftrace calls us at the entry of a hooked function. There we look up whose call it is and count it,
 * and mostly that is all: the function goes on by itself. Only a call that is to be held or refused,
 * and a borrower's open and release, are redirected to a wrapper, which may sleep, and which calls
 * the function itself. That second entry is known by its caller's address.
 */
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/rcupdate.h>

#include "file.h"
#include "gate.h"
#include "hook.h"
#include "node.h"
#include "watch.h"

#define SLOTS 64

static struct gs_fn slots[SLOTS];
static unsigned long own_start, own_size;
static bool stuck; /* a hook could not be taken away */

static const unsigned long ops_flags =
	FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT | GS_OPS_REGS | GS_OPS_RECURSION;

/* ---- The wrappers. */

/*
 * The original must not be a tail call: its caller would then be the kernel, and we would redirect
 * it for ever. What follows it sees to that.
 */
static noinline long redirected_ioctl(struct gs_fn *fn, struct file *file, unsigned int cmd,
				unsigned long arg)
{
	long (*original)(struct file *, unsigned int, unsigned long) = (void *)fn->addr;
	struct gs_call call = { .kind = fn->kind, .inode = file_inode(file), .file = file };
	long ret;

	atomic_inc(&fn->inside);
	ret = gs_gate_enter(&call);
	if (!ret)
		ret = original(file, cmd, arg);
	atomic_dec(&fn->inside);
	return ret;
}

static noinline int redirected_mmap(struct gs_fn *fn, struct file *file, struct vm_area_struct *vma)
{
	int (*original)(struct file *, struct vm_area_struct *) = (void *)fn->addr;
	struct gs_call call = { .kind = fn->kind, .inode = file_inode(file), .file = file };
	int ret;

	atomic_inc(&fn->inside);
	ret = gs_gate_enter(&call);
	if (!ret)
		ret = original(file, vma);
	atomic_dec(&fn->inside);
	return ret;
}

static noinline int redirected_open(struct gs_fn *fn, struct inode *inode, struct file *file)
{
	int (*original)(struct inode *, struct file *) = (void *)fn->addr;
	struct gs_call call = { .kind = fn->kind, .inode = inode, .file = file };
	int ret;

	atomic_inc(&fn->inside);
	if (fn->kind == GS_RELEASE) {
		/* It runs in exiting tasks and in kernel threads: never held nor refused. */
		ret = original(inode, file);
		gs_file_closed(file);
	} else {
		ret = gs_gate_enter(&call);
		if (!ret) {
			ret = original(inode, file);
			gs_gate_leave(&call, ret != 0);
		}
	}
	atomic_dec(&fn->inside);
	return ret;
}

/*
 * A redirected call brings no more than its arguments, so each slot has wrappers of its own that
 * know which function it was. Slots are numbered in octal, for the preprocessor can't count.
 */
#define WRAPPERS(n)                                                                                \
	static long ioctl_##n(struct file *file, unsigned int cmd, unsigned long arg)              \
	{                                                                                          \
		return redirected_ioctl(&slots[n], file, cmd, arg);                                        \
	}                                                                                          \
	static int mmap_##n(struct file *file, struct vm_area_struct *vma)                         \
	{                                                                                          \
		return redirected_mmap(&slots[n], file, vma);                                              \
	}                                                                                          \
	static int open_##n(struct inode *inode, struct file *file)                                \
	{                                                                                          \
		return redirected_open(&slots[n], inode, file);                                            \
	}
#define ROW(n)                                                                                     \
	{ (unsigned long)ioctl_##n, (unsigned long)mmap_##n, (unsigned long)open_##n },
#define EIGHT(do, n) do(0##n##0) do(0##n##1) do(0##n##2) do(0##n##3) \
	do(0##n##4) do(0##n##5) do(0##n##6) do(0##n##7)
#define ALL(do) EIGHT(do, 0) EIGHT(do, 1) EIGHT(do, 2) EIGHT(do, 3) \
	EIGHT(do, 4) EIGHT(do, 5) EIGHT(do, 6) EIGHT(do, 7)

ALL(WRAPPERS)

static const struct {
	unsigned long ioctl, mmap, open;
} wrappers[SLOTS] = { ALL(ROW) };

/* ---- The callbacks. Everything that they call is inline, so nothing of it can be traced. */

struct seen {
	struct gs_watch *first;
	unsigned int n;
	unsigned int roles;
	unsigned int redirect; /* of members */
	unsigned int refuse; /* of borrowers */
	unsigned int index;
};

static __always_inline void count(struct gs_watch *watch, unsigned int index)
{
	struct gs_counts *counts = this_cpu_ptr(watch->counts);

	/* Written by this processor alone: no lock prefix, no line that another one writes. */
	WRITE_ONCE(counts->touches[index], counts->touches[index] + 1);
	WRITE_ONCE(counts->last, jiffies | 1);
}

static __always_inline void visit_seen(struct gs_watch *watch, void *arg)
{
	struct seen *seen = arg;

	if (!seen->n++)
		seen->first = watch;
	seen->roles |= 1u << watch->role;
}

static __always_inline void visit_count(struct gs_watch *watch, void *arg)
{
	struct seen *seen = arg;

	if (watch->role == GS_EXEMPT)
		return;
	count(watch, seen->index);
	/* After the count: see gs_holding_lend(). */
	barrier();
	if (watch->role == GS_BORROWER)
		seen->refuse |= READ_ONCE(watch->redirect);
	else
		seen->redirect |= READ_ONCE(watch->redirect);
}

static __always_inline bool is_passive(const struct gs_node *node, unsigned int cmd)
{
	unsigned int i;

	for (i = 0; i < node->n_passive; i++)
		if (node->passive[i] == cmd)
			return true;
	return false;
}

/* Counts a call of the current task. Returns whether it is to be redirected. Preemption is off. */
static __always_inline bool see(const struct gs_fn *fn, const struct inode *inode,
				const struct file *file, gs_regs *regs)
{
	struct seen seen = {};
	struct gs_node *node;
	struct gs_file *entry;
	bool passive;

	gs_walk_current(visit_seen, &seen);
	if (likely(!seen.n) && likely(!READ_ONCE(gs_n_files)))
		return false;

	/* A function may serve devices that nobody asked us to watch. */
	node = gs_node_lookup(inode->i_rdev);
	if (!node)
		return false;
	if (READ_ONCE(gs_n_files) && fn->kind != GS_OPEN) {
		entry = gs_file_lookup(file);
		if (entry && READ_ONCE(entry->watch->revoked))
			return true;
	}
	if (!seen.n)
		return false;

	passive = node->n_passive && (fn->kind == GS_IOCTL || fn->kind == GS_COMPAT_IOCTL) &&
		  is_passive(node, (unsigned int)gs_regs_arg(regs, 1));
	if (seen.roles & (1u << GS_BORROWER)) {
		/* What is passive or exempt elsewhere is refused here. */
		if (passive)
			return seen.first->redirect & GS_KIND_BIT(fn->kind);
	} else if (passive || (seen.roles & (1u << GS_EXEMPT))) {
		return false;
	}
	seen.index = node->index;
	if (likely(seen.n == 1))
		visit_count(seen.first, &seen);
	else
		gs_walk_current(visit_count, &seen);
	if (seen.roles & (1u << GS_BORROWER))
		return seen.refuse & GS_KIND_BIT(fn->kind);
	return seen.redirect & GS_KIND_BIT(fn->kind);
}

/* Called by a wrapper of ours? */
static __always_inline bool is_ours(unsigned long parent_ip)
{
	return parent_ip - own_start < own_size;
}

static void notrace on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			    gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);
	const struct file *file;

	if (is_ours(parent_ip))
		return;
	file = (const struct file *)gs_regs_arg(regs, 0);
	preempt_disable_notrace();
	if (see(fn, file_inode(file), file, regs))
		gs_regs_redirect(regs, fn->wrapper);
	preempt_enable_notrace();
}

static void notrace on_open(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			    gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);

	if (is_ours(parent_ip))
		return;
	preempt_disable_notrace();
	if (see(fn, (const struct inode *)gs_regs_arg(regs, 0),
		(const struct file *)gs_regs_arg(regs, 1), regs))
		gs_regs_redirect(regs, fn->wrapper);
	preempt_enable_notrace();
}

static void notrace on_release(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			       gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);

	if (is_ours(parent_ip) || likely(!READ_ONCE(gs_n_files)))
		return;
	preempt_disable_notrace();
	if (gs_file_lookup((const struct file *)gs_regs_arg(regs, 1)))
		gs_regs_redirect(regs, fn->wrapper);
	preempt_enable_notrace();
}

/* ---- The canary: a function of our own, to see whether ftrace calls. */

static struct ftrace_ops canary_ops;
static bool canary_armed;
static bool canary_sang;

static noinline int canary(int x)
{
	barrier();
	return x + 1;
}

static void notrace on_canary(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			      gs_regs *regs)
{
	WRITE_ONCE(canary_sang, true);
}

/*
 * Two questions: does a registered hook fire, and does ftrace still accept orders? After ftrace_kill()
 * trampolines that stand may go on working, and can't be taken away any more.
 */
bool gs_hooks_work(void)
{
	static struct ftrace_ops question = { .func = on_canary };

	if (!canary_armed || ftrace_set_filter_ip(&question, (unsigned long)canary, 0, 1))
		return false;
	ftrace_set_filter(&question, NULL, 0, 1);
	WRITE_ONCE(canary_sang, false);
	(void)canary(0);
	return READ_ONCE(canary_sang);
}

/* ---- Hooking. */

/*
 * Registers @ops for one function. On failure nothing of it stays: the filter is emptied by a reset,
 * as ftrace_free_filter() is not exported everywhere.
 */
static int hook(struct ftrace_ops *ops, unsigned long addr)
{
	int ret;

	ret = ftrace_set_filter_ip(ops, addr, 0, 1);
	if (!ret)
		ret = register_ftrace_function(ops);
	if (ret)
		ftrace_set_filter(ops, NULL, 0, 1);
	return ret;
}

/*
 * Returns when no caller is on the way from ftrace to a wrapper any more: unregistering a module's
 * ops waits by synchronize_rcu_tasks(), and so do we, should that ever change.
 *
 * Where ftrace is dead nothing can be taken away: the driver's code goes on calling us, so this
 * module must stay. Callers pass, as no node is known any more.
 */
static void unhook(struct ftrace_ops *ops)
{
	int ret = unregister_ftrace_function(ops);

	if (ret && !stuck) {
		pr_err("ftrace does not give up a hook (%d): this module can't be unloaded\n", ret);
		stuck = true;
		if (!gs_going)
			__module_get(THIS_MODULE);
	}
	if (ret)
		return;
	ftrace_set_filter(ops, NULL, 0, 1);
	synchronize_rcu_tasks();
}

static bool any_hook(void)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (slots[i].users)
			return true;
	return false;
}

static int arm_canary(struct netlink_ext_ack *extack)
{
	int ret;

	if (canary_armed)
		return 0;
	canary_ops.func = on_canary;
	canary_ops.flags = ops_flags;
	ret = hook(&canary_ops, (unsigned long)canary);
	if (ret == -EBUSY || ret == -ENODEV) {
		NL_SET_ERR_MSG_MOD(extack, "ftrace is switched off (sysctl kernel.ftrace_enabled)");
		return -ENODEV;
	}
	if (ret) {
		NL_SET_ERR_MSG_MOD(extack, "this kernel's ftrace can't hook a function by its address");
		return -EOPNOTSUPP;
	}
	canary_armed = true;
	if (!gs_hooks_work()) {
		unhook(&canary_ops);
		canary_armed = false;
		NL_SET_ERR_MSG_MOD(extack, "ftrace does not call us");
		return -ENODEV;
	}
	return 0;
}

static void disarm_canary(void)
{
	if (!canary_armed || stuck || any_hook())
		return;
	unhook(&canary_ops);
	canary_armed = false;
}

static struct gs_fn *find_fn(unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (slots[i].users && slots[i].addr == addr)
			return &slots[i];
	return NULL;
}

static struct gs_fn *free_slot(void)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (!slots[i].users && !atomic_read(&slots[i].inside))
			return &slots[i];
	return NULL;
}

static void fill_slot(struct gs_fn *fn, unsigned long addr, enum gs_kind kind)
{
	unsigned int i = fn - slots;

	memset(&fn->ops, 0, sizeof(fn->ops));
	fn->addr = addr;
	fn->kind = kind;
	fn->ops.flags = ops_flags;
	switch (kind) {
	case GS_OPEN:
		fn->ops.func = on_open;
		fn->wrapper = wrappers[i].open;
		break;
	case GS_RELEASE:
		fn->ops.func = on_release;
		fn->wrapper = wrappers[i].open;
		break;
	case GS_MMAP:
		fn->ops.func = on_call;
		fn->wrapper = wrappers[i].mmap;
		break;
	default:
		fn->ops.func = on_call;
		fn->wrapper = wrappers[i].ioctl;
	}
}

int gs_hook_get(unsigned long addr, enum gs_kind kind, struct gs_fn **ret_fn,
		struct netlink_ext_ack *extack)
{
	struct gs_fn *fn = find_fn(addr);
	int ret;

	if (fn) {
		fn->users++;
		*ret_fn = fn;
		return 0;
	}
	ret = arm_canary(extack);
	if (ret)
		return ret;
	fn = free_slot();
	if (!fn) {
		NL_SET_ERR_MSG_MOD(extack, "too many functions are hooked");
		return -ENOSPC;
	}
	fill_slot(fn, addr, kind);
	ret = hook(&fn->ops, addr);
	if (ret) {
		if (ret == -EBUSY) {
			NL_SET_ERR_MSG_MOD(extack, "another tracer (a live patch, or BPF) redirects the driver's function");
		} else if (ret == -EINVAL) {
			NL_SET_ERR_MSG_MOD(extack, "ftrace knows no entry of the driver's function");
			ret = -EOPNOTSUPP;
		} else {
			NL_SET_ERR_MSG_MOD(extack, "ftrace refused the driver's function");
		}
		disarm_canary();
		return ret;
	}
	fn->users = 1;
	*ret_fn = fn;
	return 0;
}

void gs_hook_put(struct gs_fn *fn)
{
	if (--fn->users)
		return;
	unhook(&fn->ops);
	/* A slot whose hook stands stays taken. */
	if (stuck)
		fn->users = 1;
	disarm_canary();
}

bool gs_hook_alive(const struct gs_fn *fn)
{
	return fn->users && (fn->ops.flags & FTRACE_OPS_FL_ENABLED);
}

u32 gs_hook_features(void)
{
	u32 features = GS_F_HOOK_PERMANENT | GS_F_HOOK_BY_ADDRESS;

	if (GS_NO_REGS)
		features |= GS_F_HOOK_NO_REGS;
	return features;
}

int gs_hook_init(void)
{
	gs_own_text(&own_start, &own_size);
	return 0;
}

void gs_hook_exit(void)
{
	unsigned int i;

	/* Going on would free code that is called. */
	while (stuck)
		schedule_timeout_uninterruptible(HZ);
	for (i = 0; i < SLOTS; i++)
		while (atomic_read(&slots[i].inside))
			schedule_timeout_uninterruptible(1);
	/* Past the counter a caller has a few instructions of ours to go. */
	synchronize_rcu_tasks();
	synchronize_rcu();
}
