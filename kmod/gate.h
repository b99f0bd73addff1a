/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of a redirected call: it passes, is refused, or waits. */
#ifndef GS_KMOD_GATE_H
#define GS_KMOD_GATE_H

#include <linux/mm_types.h>

#include "gs.h"

/**
 * struct gs_verdict - what a walk over a caller's watches found
 * @roles: 1 << enum gs_role
 * @wait: a holding for whose return the caller has to wait
 * @redirected: his calls still are, after the touch was told
 */
struct gs_verdict {
	struct gs_call *call;
	unsigned int roles;
	struct gs_watch *borrower;
	bool revoked;
	struct gs_holding *wait;
	bool redirected;
};

/**
 * struct gs_waiter - somebody who is held
 * @timeout: jiffies that it may last
 */
struct gs_waiter {
	struct gs_holding *holding;
	unsigned int round;
	long timeout;
};

/**
 * gs_judge() - whose call it is, and what becomes of it; tells the holdings of the touch
 * @verdict: @call is set, all else 0
 *
 * Context: gs_lock held. Return: 0, or -EIO for what is refused.
 */
long gs_judge(struct gs_verdict *verdict);

/** gs_hold_begin() - somebody will wait for the holding's return. Context: gs_lock held. */
void gs_hold_begin(struct gs_holding *holding, struct gs_waiter *waiter);

/**
 * gs_hold() - waits until the return is over, or @waiter->timeout
 * @anew: the call can be made anew: any signal ends the wait; else only a deadly one
 *
 * Context: process; gs_hold_begin() was called, gs_lock is not held.
 * Return: 0, -ERESTARTNOINTR or -EINTR for a signal.
 */
long gs_hold(struct gs_waiter *waiter, bool anew);

/**
 * gs_uncount() - a call of the current task on that node will be made anew, and counted again
 *
 * Context: process.
 */
void gs_uncount(dev_t dev);

/**
 * gs_gate_fault() - a redirected fault on a mapping (fault.c)
 *
 * Context: the mmap lock, or the mapping's own, is held; it is given up where @vmf allows that.
 * Return: 0: call the original. Else what the fault function returns.
 */
vm_fault_t gs_gate_fault(struct vm_fault *vmf);

/** gs_gate_access() - a debugger's access (fault.c). mmap lock held. Return: 0 pass, or -EIO. */
int gs_gate_access(const struct vm_area_struct *vma);

/** gs_gate_away() - are the current task's mappings to be taken away now? Context: process. */
bool gs_gate_away(void);

/**
 * gs_gate_enter() - decide, and wait if need be
 * @call: kind, inode and file are given; borrower is set for a borrower's open
 *
 * Context: the caller's own; may sleep, but for mmap.
 * Return: 0: call the original, and of an open gs_gate_leave() after it. Negative: the call's
 * result; -ERESTARTNOINTR with a signal pending or pretended, so that the call is made anew.
 */
long gs_gate_enter(struct gs_call *call);

/**
 * gs_gate_leave() - the original is over
 * @failed: an open has not opened
 */
void gs_gate_leave(struct gs_call *call, bool failed);

#endif
