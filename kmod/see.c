// SPDX-License-Identifier: GPL-2.0-only
/*
 * The callbacks: whose call is it? Count it, and say whether it may pass. They run at the entry of
 * every hooked function, for everybody on the host who uses that driver, so everything that they
 * call is inline (and so can't be traced either), nothing is written that another processor writes,
 * and no lock is taken.
 */
#include "file.h"
#include "hook.h"
#include "node.h"
#include "watch.h"

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
	if (watch->role == GS_BORROWER)
		seen->refuse |= READ_ONCE(watch->redirect);
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
			return seen.refuse & GS_KIND_BIT(fn->kind);
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
	return parent_ip - gs_own_start < gs_own_size;
}

void notrace gs_on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
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

void notrace gs_on_open(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
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

void notrace gs_on_release(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
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
