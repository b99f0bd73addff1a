/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of a redirected call: it passes, is refused, or waits. */
#ifndef GS_KMOD_GATE_H
#define GS_KMOD_GATE_H

#include "gs.h"

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
