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
	unsigned int n;
	unsigned int roles;
	unsigned int redirect; /* of members */
	unsigned int refuse; /* of borrowers */
	unsigned int index;
};

static __always_inline void visit_seen(struct gs_watch *watch, void *arg)
{
	struct seen *seen = arg;

	seen->n++;
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
		if (node->passive[i] == (unsigned int)gs_regs_arg(regs, 1))
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

/*
 * Counts a call of the current task, and redirects it if it must not pass by itself. Preemption is
 * off. Where nothing is special, a caller belongs to one watch at most, by its PID namespace.
 */
static __always_inline void see(const struct gs_fn *fn, const struct inode *inode, gs_regs *regs)
{
	const struct pid *pid = task_pid(current);
	const struct upid *upid;
	struct gs_watch *watch;
	struct gs_node *node;

	for (upid = &pid->numbers[pid->level]; upid != pid->numbers; upid--) {
		watch = gs_watch_lookup(GS_BY_PIDNS, (unsigned long)upid->ns);
		if (watch)
			goto found;
	}
	return;
found:
	/* A function may serve devices that nobody asked us to watch. */
	node = gs_node_lookup(inode->i_rdev);
	if (unlikely(!node))
		return;
	count(watch, node->index);
	if (READ_ONCE(watch->redirect) & fn->bit)
		gs_regs_redirect(regs, fn->wrapper);
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
	const struct file *file = (const struct file *)gs_regs_arg(regs, 0);

	if (is_ours(parent_ip))
		return;
	preempt_disable_notrace();
	if (unlikely(READ_ONCE(gs_special) | READ_ONCE(fn->passive)))
		see_special(fn, file_inode(file), file, regs);
	else
		see(fn, file_inode(file), regs);
	preempt_enable_notrace();
}

void notrace gs_on_open(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			gs_regs *regs)
{
	const struct gs_fn *fn = container_of(ops, struct gs_fn, ops);
	const struct inode *inode = (const struct inode *)gs_regs_arg(regs, 0);

	if (is_ours(parent_ip))
		return;
	preempt_disable_notrace();
	if (unlikely(READ_ONCE(gs_special)))
		see_special(fn, inode, (const struct file *)gs_regs_arg(regs, 1), regs);
	else
		see(fn, inode, regs);
	preempt_enable_notrace();
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
