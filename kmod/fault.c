// SPDX-License-Identifier: GPL-2.0-only
/*
 * Touches of mappings that LEND took away (revoke.c): a fault is held, with no lock of the caller's
 * memory; what comes from outside is refused.
 *
 * A fault that may go on is not passed on from here but made anew, as calls are (gate.c): whoever
 * returns VM_FAULT_RETRY or VM_FAULT_NOPAGE without a page comes again.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "event.h"
#include "gate.h"
#include "watch.h"

/* How long somebody waits who can't give up the mmap lock, before he comes again. */
#define SHORT_WAIT (HZ / 50 + 1)

/*
 * The process that lives in that memory, with a reference; NULL if there is none any more.
 * (mm->owner is not on every kernel.)
 */
static struct task_struct *owner_of(const struct mm_struct *mm)
{
	struct task_struct *process, *thread;

	rcu_read_lock();
	for_each_process_thread(process, thread) {
		if (READ_ONCE(thread->mm) != mm || (thread->flags & PF_KTHREAD))
			continue;
		get_task_struct(process);
		rcu_read_unlock();
		return process;
	}
	rcu_read_unlock();
	return NULL;
}

static void visit_member(struct gs_watch *watch, void *arg)
{
	if (watch->role == GS_MEMBER)
		*(bool *)arg = true;
}

static bool is_member(void)
{
	bool member = false;

	preempt_disable();
	gs_walk_current(visit_member, &member);
	preempt_enable();
	return member;
}

/*
 * A touch from outside of the memory that it is in: by a debugger, or by a kernel thread. It counts
 * as its owner's, but a debugger's only if that is in a container of a member itself.
 */
static void set_owner(struct gs_call *call, const struct mm_struct *mm)
{
	call->task = owner_of(mm);
	call->quiet = !(current->flags & PF_KTHREAD) && !is_member();
}

/*
 * Who exits writes to the memory of others who were waiting for it, at addresses that it named
 * itself (robust futexes, set_tid_address(2)). No signal ends a wait there, SIGKILL neither; and to
 * die is not to come back. So it is refused, which nobody sees.
 */
static bool is_exiting(void)
{
	return current->flags & PF_EXITING;
}

int gs_gate_access(const struct vm_area_struct *vma)
{
	struct gs_call call = { .kind = GS_ACCESS, .file = vma->vm_file };
	struct gs_verdict verdict = { .call = &call };
	long ret;

	if (!call.file)
		return 0;
	call.inode = file_inode(call.file);
	set_owner(&call, vma->vm_mm);
	if (!call.task)
		return 0;
	spin_lock(&gs_lock);
	ret = gs_judge(&verdict);
	if (!ret && verdict.wait && !gs_going)
		ret = -EIO;
	spin_unlock(&gs_lock);
	put_task_struct(call.task);
	return ret;
}

/*
 * For how long may a fault of the kernel's own still be held, in jiffies? Its system call may have
 * any lock meanwhile, also one that all others need (the network's, while it lists addresses), and
 * a member chooses which. So some time after the return it goes on: its user is back, and has been
 * told of. gs_lock held.
 */
static long kernel_rest(const struct gs_holding *holding)
{
	u64 ms = div_u64(gs_clock() - holding->since, NSEC_PER_MSEC), most = gs_kernel_hold_max();

	return ms < most ? (long)msecs_to_jiffies(most - ms) : 0;
}

/*
 * The fault waits. With gs_lock, which is given up, and the memory's lock, which is given up where
 * the fault may be retried. Without it @vmf and all that is behind it may be gone.
 */
static vm_fault_t hold_fault(struct gs_holding *holding, struct vm_fault *vmf, dev_t dev, bool own)
	__releases(&gs_lock)
{
	unsigned int flags = vmf->flags;
	bool retry = flags & FAULT_FLAG_ALLOW_RETRY;
	/* In user mode a signal ends the fault, and is served. Elsewhere only a deadly one does. */
	bool anew = retry && (flags & FAULT_FLAG_USER) && (flags & FAULT_FLAG_INTERRUPTIBLE);
	struct gs_waiter waiter;
	long ret;

	if (retry && (flags & FAULT_FLAG_RETRY_NOWAIT)) {
		spin_unlock(&gs_lock);
		if (own)
			gs_uncount(dev);
		return VM_FAULT_RETRY;
	}
	gs_hold_begin(holding, &waiter);
	if (!(flags & FAULT_FLAG_USER))
		waiter.timeout = min(waiter.timeout, kernel_rest(holding));
	spin_unlock(&gs_lock);
	if (retry)
		gs_release_fault_lock(vmf);
	else
		waiter.timeout = min_t(long, waiter.timeout, SHORT_WAIT);
	ret = gs_hold(&waiter, anew);
	if (own)
		gs_uncount(dev);
	if (retry)
		return VM_FAULT_RETRY;
	return ret ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
}

/* As above, with what is known by now of who it is. gs_lock held, and given up. */
static vm_fault_t decide(struct gs_call *call, struct vm_fault *vmf) __releases(&gs_lock)
{
	struct gs_verdict verdict = { .call = call };
	bool own = !call->task;
	bool outside = current->mm != vmf->vma->vm_mm;
	long ret = gs_judge(&verdict);

	if (!ret && verdict.wait && !gs_going) {
		if (outside || is_exiting())
			ret = -EIO;
		else if ((vmf->flags & FAULT_FLAG_USER) || kernel_rest(verdict.wait))
			return hold_fault(verdict.wait, vmf, call->inode->i_rdev, own);
	}
	spin_unlock(&gs_lock);
	if (ret) {
		if (own && call->quiet)
			gs_uncount(call->inode->i_rdev);
		return VM_FAULT_SIGBUS;
	}
	if (own && !verdict.redirected && !verdict.borrower) {
		gs_uncount(call->inode->i_rdev);
		return VM_FAULT_NOPAGE;
	}
	return 0;
}

vm_fault_t gs_gate_fault(struct vm_fault *vmf)
{
	struct gs_call call = { .kind = GS_FAULT, .file = vmf->vma->vm_file };
	vm_fault_t ret;

	call.inode = file_inode(call.file);
	if (current->mm != vmf->vma->vm_mm || (current->flags & PF_KTHREAD)) {
		set_owner(&call, vmf->vma->vm_mm);
		if (!call.task)
			return 0;
	}
	call.quiet |= is_exiting();
	spin_lock(&gs_lock);
	ret = decide(&call, vmf);
	if (call.task)
		put_task_struct(call.task);
	return ret;
}
