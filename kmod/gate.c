// SPDX-License-Identifier: GPL-2.0-only
/* What becomes of a redirected call: it passes, is refused, or waits. */
#include <linux/compat.h>
#include <linux/major.h>
#include <linux/sched/signal.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "event.h"
#include "file.h"
#include "gate.h"
#include "holding.h"
#include "kill.h"
#include "node.h"
#include "watch.h"

/* i386's numbers, and arm's, which are the same but for openat. */
#define COMPAT_OPEN 5
#define COMPAT_CREAT 8
#define COMPAT_IOCTL 54
#ifdef CONFIG_X86_64
#define COMPAT_OPENAT 295
#else
#define COMPAT_OPENAT 322
#endif
#define COMPAT_OPENAT2 437

static bool is_open(int nr, bool compat)
{
	if (compat)
		return nr == COMPAT_OPEN || nr == COMPAT_CREAT || nr == COMPAT_OPENAT ||
		       nr == COMPAT_OPENAT2;
#ifdef __NR_open
	if (nr == __NR_open || nr == __NR_creat)
		return true;
#endif
	return nr == __NR_openat || nr == __NR_openat2;
}

/*
 * Will the system call be made anew if the driver's function returns -ERESTARTNOINTR? Only a caller
 * who came straight from open(2) or ioctl(2). io_uring turns that value into an error: its workers
 * are known by their flag; when it opens a file in the caller's own context, first or in task work
 * at the end of any system call, it sets O_NONBLOCK. An open(2) that has that flag itself is not
 * told from it, and is treated as the rest: it waits killably, and goes on from there.
 */
static bool can_restart(const struct gs_call *call)
{
	bool compat = in_compat_syscall();
	int nr;

	if (current->flags & (PF_KTHREAD | PF_IO_WORKER))
		return false;
	nr = syscall_get_nr(current, current_pt_regs());
	switch (call->kind) {
	case GS_OPEN:
		return is_open(nr, compat) && !(call->file->f_flags & O_NONBLOCK);
	case GS_IOCTL:
	case GS_COMPAT_IOCTL:
		return nr == (compat ? COMPAT_IOCTL : __NR_ioctl);
	default:
		return false;
	}
}

/*
 * May the caller wait here? mmap is called with the mmap lock held, an open of a misc device with
 * the lock of all misc devices: whoever waits there holds up others.
 */
static bool can_hold(const struct gs_call *call)
{
	if (call->kind == GS_MMAP)
		return false;
	return call->kind != GS_OPEN || imajor(call->inode) != MISC_MAJOR;
}

static void visit_roles(struct gs_watch *watch, void *arg)
{
	struct gs_verdict *verdict = arg;

	verdict->roles |= 1u << watch->role;
	if (watch->role != GS_BORROWER)
		return;
	if (!verdict->borrower)
		verdict->borrower = watch;
	if (watch->revoked)
		verdict->revoked = true;
}

/* While one is away, its members' mappings are. */
static bool is_away(const struct gs_holding *holding)
{
	return holding->state == GS_LENDING || holding->state == GS_LENT ||
	       holding->state == GS_RETURNING;
}

static void count_fault(struct gs_holding *holding)
{
	holding->faults++;
	gs_totals.faults++;
}

static void visit_touch(struct gs_watch *watch, void *arg)
{
	struct gs_verdict *verdict = arg;
	struct gs_holding *holding;
	struct gs_link *link;

	if (watch->role != GS_MEMBER)
		return;
	list_for_each_entry(link, &watch->links, of_watch) {
		holding = link->holding;
		if (verdict->call->quiet) {
			if (is_away(holding))
				verdict->wait = holding;
			continue;
		}
		if (verdict->call->kind == GS_FAULT && is_away(holding))
			count_fault(holding);
		gs_holding_on(holding, GS_ON_TOUCH, watch, verdict->call);
		if (holding->state == GS_RETURNING && !verdict->wait)
			verdict->wait = holding;
	}
	if (watch->redirect & GS_KIND_BIT(verdict->call->kind))
		verdict->redirected = true;
}

/* A file of a revoked borrower stays refused in whatever hands it is. gs_lock held. */
static bool is_stolen(const struct gs_call *call, const struct gs_verdict *verdict)
{
	struct gs_notice *notice;
	struct gs_file *entry;

	if (!gs_n_files || call->kind == GS_OPEN)
		return false;
	entry = gs_file_lookup(call->file);
	if (!entry || !entry->watch->revoked)
		return false;
	/* Once: it may have thousands, and each would push somebody's event out of the queue. */
	if (entry->watch != verdict->borrower && !entry->watch->stolen) {
		entry->watch->stolen = true;
		notice = gs_event_new(GS_EV_STOLEN);
		gs_notice_caller(notice, entry->watch, call);
		gs_act();
	}
	return true;
}

static void walk(struct gs_verdict *verdict, gs_visit visit)
{
	rcu_read_lock();
	gs_walk_task(verdict->call->task ?: current, visit, verdict);
	rcu_read_unlock();
}

long gs_judge(struct gs_verdict *verdict)
{
	walk(verdict, visit_roles);
	if (verdict->revoked || is_stolen(verdict->call, verdict)) {
		gs_totals.refused++;
		return -EIO;
	}
	if (verdict->borrower || (verdict->roles & (1u << GS_EXEMPT)))
		return 0;
	walk(verdict, visit_touch);
	return 0;
}

static void visit_away(struct gs_watch *watch, void *arg)
{
	struct gs_verdict *verdict = arg;
	struct gs_link *link;

	verdict->roles |= 1u << watch->role;
	if (watch->role != GS_MEMBER)
		return;
	list_for_each_entry(link, &watch->links, of_watch)
		if (is_away(link->holding))
			verdict->wait = link->holding;
}

bool gs_gate_away(void)
{
	struct gs_verdict verdict = {};

	spin_lock(&gs_lock);
	gs_walk_current(visit_away, &verdict);
	spin_unlock(&gs_lock);
	return verdict.wait && !gs_going &&
	       !(verdict.roles & (1u << GS_BORROWER | 1u << GS_EXEMPT));
}

static bool still_held(const struct gs_holding *holding, unsigned int round)
{
	return READ_ONCE(holding->state) == GS_RETURNING && READ_ONCE(holding->round) == round &&
	       !READ_ONCE(gs_going);
}

/*
 * Waits until the return is over. Interruptibly where the call can be made anew: then freezers,
 * debuggers, SIGSTOP and handlers are served, and the call is held again after that. Else killably.
 * The holding's clock ends the wait at hold_max; should the work queue be stuck, our own does.
 */
static long wait_for(struct gs_holding *holding, unsigned int round, bool anew, long timeout)
{
	unsigned int state = anew ? TASK_INTERRUPTIBLE : GS_TASK_KILLABLE;
	DEFINE_WAIT(wait);
	long ret = 0;

	if (!anew)
		gs_freezer_ignore(true);
	for (;;) {
		prepare_to_wait_exclusive(&holding->wait, &wait, state);
		if (!still_held(holding, round))
			break;
		if (signal_pending_state(state, current)) {
			ret = anew ? -ERESTARTNOINTR : -EINTR;
			break;
		}
		timeout = schedule_timeout(timeout);
		if (!timeout)
			break;
	}
	finish_wait(&holding->wait, &wait);
	if (!anew)
		gs_freezer_ignore(false);
	return ret;
}

void gs_hold_begin(struct gs_holding *holding, struct gs_waiter *waiter)
{
	waiter->holding = holding;
	waiter->round = holding->round;
	waiter->timeout = max_t(long, holding->return_until - jiffies, 0) + HZ;
	kref_get(&holding->ref);
	gs_totals.held++;
	holding->held++;
	if (!holding->held_round++)
		holding->held_since = jiffies;
}

long gs_hold(struct gs_waiter *waiter, bool anew)
{
	struct gs_holding *holding = waiter->holding;
	long ret;

	ret = wait_for(holding, waiter->round, anew, waiter->timeout);

	spin_lock(&gs_lock);
	holding->held--;
	if (!ret && still_held(holding, waiter->round) &&
	    time_after_eq(jiffies, holding->return_until))
		gs_holding_on(holding, GS_ON_HOLD_MAX, NULL, NULL);
	spin_unlock(&gs_lock);
	gs_holding_put(holding);
	return ret;
}

static void visit_uncount(struct gs_watch *watch, void *arg)
{
	const struct gs_node *node = arg;

	if (watch->role == GS_MEMBER)
		raw_cpu_dec(watch->counts->touches[node->index]);
}

/*
 * The call is made anew, and will be counted again. Its state has been judged already, so a count
 * that goes down for a moment hides nothing from a lend.
 */
void gs_uncount(dev_t dev)
{
	struct gs_node *node;

	preempt_disable();
	node = gs_node_lookup(dev);
	if (node)
		gs_walk_current(visit_uncount, node);
	preempt_enable();
}

static long restart(const struct gs_call *call)
{
	gs_uncount(call->inode->i_rdev);
	return -ERESTARTNOINTR;
}

long gs_gate_enter(struct gs_call *call)
{
	bool anew = can_restart(call);
	bool may_hold = can_hold(call);
	struct gs_verdict verdict;
	struct gs_waiter waiter;
	long ret;

	if (!GS_IO_WORKER_NS && call->kind == GS_OPEN && (current->flags & PF_IO_WORKER))
		return -EOPNOTSUPP;
	for (;;) {
		verdict = (struct gs_verdict){ .call = call };
		spin_lock(&gs_lock);
		ret = gs_judge(&verdict);
		if (ret || !verdict.wait || !may_hold || gs_going)
			break;
		gs_hold_begin(verdict.wait, &waiter);
		spin_unlock(&gs_lock);
		ret = gs_hold(&waiter, anew);
		if (ret)
			return ret == -ERESTARTNOINTR ? restart(call) : ret;
	}
	if (!ret && verdict.borrower && call->kind == GS_OPEN)
		call->borrower = verdict.borrower;
	if (call->borrower)
		kref_get(&call->borrower->ref);
	spin_unlock(&gs_lock);
	if (ret)
		return ret;
	if (call->borrower) {
		ret = gs_file_opening(call->file, call->inode->i_rdev, call->borrower);
		if (ret)
			call->borrower = NULL;
		return ret == -EEXIST ? 0 : ret;
	}
	/*
	 * A member's call is made anew by pretending a signal, now that nothing redirects it: if it
	 * sleeps in the driver then, nothing of ours is on its stack, and unloading need not wait.
	 */
	if (anew && !verdict.redirected && !verdict.borrower) {
		set_tsk_thread_flag(current, TIF_SIGPENDING);
		return restart(call);
	}
	return 0;
}

void gs_gate_leave(struct gs_call *call, bool failed)
{
	if (call->borrower && failed)
		gs_file_closed(call->file);
}
