// SPDX-License-Identifier: GPL-2.0-only
/*
 * The callbacks: whose call is it? Count it, and say whether it may pass. They run at the entry of
 * every hooked function, for everybody on the host who uses that driver, so everything that they
 * call is inline (and so can't be traced either), nothing is written that another processor writes,
 * and no lock is taken.
 */
#include <linux/mm.h>

#include "file.h"
#include "hook.h"
#include "node.h"
#include "watch.h"

static __always_inline void count(struct gs_watch *watch, unsigned int index)
{
	struct gs_counts __percpu *counts = watch->counts;

	/* Written by this processor alone: no lock prefix, no line that another one writes. */
	raw_cpu_inc(counts->touches[index]);
	raw_cpu_write(counts->last, jiffies);
	/* What follows reads the state, after the count: see gs_holding_lend(). */
	barrier();
}

struct seen {
	unsigned int roles;
	unsigned int redirect; /* of members */
	unsigned int refuse; /* of borrowers */
	unsigned int index;
};

static __always_inline void visit_seen(struct gs_watch *watch, void *arg)
{
	struct seen *seen = arg;

	seen->roles |= 1u << watch->role;
	if (watch->role == GS_BORROWER)
		seen->refuse |= READ_ONCE(watch->redirect);
}

static __always_inline void visit_count(struct gs_watch *watch, void *arg)
{
	struct seen *seen = arg;

	/* As judge() in gate.c: in a borrower nobody is a member. */
	if (watch->role == GS_EXEMPT ||
	    (watch->role == GS_MEMBER && seen->roles & (1u << GS_BORROWER)))
		return;
	count(watch, seen->index);
	if (watch->role == GS_BORROWER)
		seen->refuse |= READ_ONCE(watch->redirect);
	else
		seen->redirect |= READ_ONCE(watch->redirect);
}

static __always_inline bool is_passive(const struct gs_node *node, const struct gs_fn *fn,
				       gs_regs *regs)
{
	unsigned int i;

	if (fn->kind != GS_IOCTL && fn->kind != GS_COMPAT_IOCTL)
		return false;
	for (i = 0; i < node->n_passive; i++)
		/* Type and number: a catalogue knows no sizes, and drivers look at them last. */
		if (((node->passive[i] ^ gs_regs_arg(regs, 1)) & 0xffff) == 0)
			return true;
	return false;
}

/* As see() below, with all that a host may have, but mostly has not. */
static noinline notrace void see_special(const struct gs_fn *fn, const struct inode *inode,
					 const struct file *file, gs_regs *regs)
{
	struct seen seen = {};
	unsigned int redirect;
	struct gs_node *node;
	struct gs_file *entry;
	bool passive;

	node = gs_node_lookup(inode->i_rdev);
	if (!node)
		return;
	if (READ_ONCE(gs_n_files) && fn->kind != GS_OPEN) {
		entry = gs_file_lookup(file);
		if (entry && READ_ONCE(entry->watch->revoked)) {
			gs_regs_redirect(regs, fn->wrapper);
			return;
		}
	}
	gs_walk_current(visit_seen, &seen);
	passive = is_passive(node, fn, regs);
	/* What is passive or exempt elsewhere is refused to a borrower. */
	if (!(seen.roles & (1u << GS_BORROWER)) && (passive || (seen.roles & (1u << GS_EXEMPT))))
		return;
	seen.index = node->index;
	if (!passive)
		gs_walk_current(visit_count, &seen);
	redirect = seen.roles & (1u << GS_BORROWER) ? seen.refuse : seen.redirect;
	if (redirect & fn->bit)
		gs_regs_redirect(regs, fn->wrapper);
}

/* The namespace at so many bytes behind a pid's first one: saves the multiplication by its size. */
static __always_inline unsigned long ns_at(const struct pid *pid, unsigned long at)
{
	return (unsigned long)((const struct upid *)((const char *)pid->numbers + at))->ns;
}

/* Looks for a watch on a cgroup or its ancestors. False: there is more than that one and @watch. */
static __always_inline bool one_of_cgroups(enum gs_key by, struct cgroup *cgrp,
					   struct gs_watch **watch)
{
	struct gs_watch *found;

	for (; cgrp; cgrp = cgroup_parent(cgrp)) {
		found = gs_watch_lookup(by, cgroup_id(cgrp));
		if (!found)
			continue;
		if (*watch)
			return false;
		*watch = found;
	}
	return true;
}

/*
 * Counts a call of the current task, and redirects it if it must not pass by itself. Preemption is
 * off. Where nothing is special, a caller belongs to one watch at most by its PID namespace; with
 * @cgroups those are looked for too. Returns false, and has done nothing, for a call that may be a
 * passive one, or belongs to several watches.
 */
static __always_inline bool see(const struct gs_fn *fn, const struct inode *inode, gs_regs *regs,
				bool cgroups)
{
	const struct pid *pid = task_pid(current);
	struct gs_watch *watch = NULL;
	struct gs_node *node;
	struct css_set *css;
	unsigned long at;

	for (at = pid->level * sizeof(pid->numbers[0]); at; at -= sizeof(pid->numbers[0])) {
		watch = gs_watch_lookup(GS_KEY_PIDNS, ns_at(pid, at));
		if (watch)
			break;
	}
	if (cgroups) {
		css = rcu_dereference_raw(current->cgroups);
		if (gs_watch_count[GS_KEY_CGROUP] &&
		    !one_of_cgroups(GS_KEY_CGROUP, css->dfl_cgrp, &watch))
			return false;
#if GS_CGROUP_V1
		if (gs_watch_count[GS_KEY_CGROUP_V1] &&
		    !one_of_cgroups(GS_KEY_CGROUP_V1,
				    rcu_dereference_raw(css->subsys[devices_cgrp_id])->cgroup,
				    &watch))
			return false;
#endif
	}
	if (!watch)
		return true;
	/* A function may serve devices that nobody asked us to watch. */
	node = gs_node_lookup(inode->i_rdev);
	if (unlikely(!node))
		return true;
	if (unlikely((node->passive_bits >> (gs_regs_arg(regs, 1) & 63)) & 1))
		return false;
	count(watch, node->index);
	if (READ_ONCE(watch->redirect) & fn->bit)
		gs_regs_redirect(regs, fn->wrapper);
	return true;
}

/* Out of line and called last, so that the common way needs no stack. Preemption is off. */
static noinline notrace void call_special(const struct gs_fn *fn, gs_regs *regs)
{
	const struct file *file = (const struct file *)gs_regs_arg(regs, 0);

	if (gs_special >= GS_SPECIAL || !see(fn, file_inode(file), regs, true))
		see_special(fn, file_inode(file), file, regs);
	preempt_enable_notrace();
}

static noinline notrace void open_special(const struct gs_fn *fn, gs_regs *regs)
{
	const struct inode *inode = (const struct inode *)gs_regs_arg(regs, 0);

	if (gs_special >= GS_SPECIAL || !see(fn, inode, regs, true))
		see_special(fn, inode, (const struct file *)gs_regs_arg(regs, 1), regs);
	preempt_enable_notrace();
}

static noinline notrace void fault_special(const struct gs_fn *fn, const struct file *file,
					   gs_regs *regs)
{
	if (gs_special >= GS_SPECIAL || !see(fn, file_inode(file), regs, true))
		see_special(fn, file_inode(file), file, regs);
	preempt_enable_notrace();
}

/* Called by a wrapper of ours? */
static __always_inline bool is_ours(unsigned long parent_ip)
{
	return parent_ip - gs_own_start < gs_own_size;
}

void notrace gs_on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);

	if (is_ours(parent_ip))
		return;
	preempt_disable_notrace();
	if (likely(!gs_special) &&
	    likely(see(fn, file_inode((const struct file *)gs_regs_arg(regs, 0)), regs, false)))
		preempt_enable_notrace();
	else
		call_special(fn, regs);
}

void notrace gs_on_open(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);

	if (is_ours(parent_ip))
		return;
	/* Here io_uring's workers are kernel threads: whose file it would be can't be told. */
	if (!GS_IO_WORKER_NS && (current->flags & PF_IO_WORKER)) {
		gs_regs_redirect(regs, fn->wrapper);
		return;
	}
	preempt_disable_notrace();
	if (likely(!gs_special) &&
	    likely(see(fn, (const struct inode *)gs_regs_arg(regs, 0), regs, false)))
		preempt_enable_notrace();
	else
		open_special(fn, regs);
}

void notrace gs_on_release(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			   gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);

	if (likely(!READ_ONCE(gs_n_files)) || is_ours(parent_ip))
		return;
	preempt_disable_notrace();
	if (gs_file_lookup((const struct file *)gs_regs_arg(regs, 1)))
		gs_regs_redirect(regs, fn->wrapper);
	preempt_enable_notrace();
}

/*
 * A fault on a mapping. Whoever touches it from outside, or is a kernel thread that works in the
 * caller's memory, is not the one whose touch it is: the wrapper finds out.
 */
void notrace gs_on_fault(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			 gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);
	const struct vm_area_struct *vma = ((const struct vm_fault *)gs_regs_arg(regs, 0))->vma;
	const struct file *file = vma->vm_file;

	if (is_ours(parent_ip) || !file)
		return;
	if (unlikely(current->mm != vma->vm_mm || (current->flags & PF_KTHREAD))) {
		gs_regs_redirect(regs, fn->wrapper);
		return;
	}
	preempt_disable_notrace();
	if (likely(!gs_special) && likely(see(fn, file_inode(file), regs, false)))
		preempt_enable_notrace();
	else
		fault_special(fn, file, regs);
}

/* A debugger's way to a mapping: rare, and never the caller's own. */
void notrace gs_on_access(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			  gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);

	if (!is_ours(parent_ip))
		gs_regs_redirect(regs, fn->wrapper);
}
