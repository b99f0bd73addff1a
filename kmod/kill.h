/* SPDX-License-Identifier: GPL-2.0-only */
/* Doing what was decided under gs_lock: killing first, then telling. */
#ifndef GS_KMOD_KILL_H
#define GS_KMOD_KILL_H

/**
 * gs_act() - kill the watches that are marked for it, and then send the events
 *
 * By a work item: the caller may be out of processor time, or hold the mmap lock.
 * Context: any.
 */
void gs_act(void);

/** gs_act_exit() - waits until all is done. Context: process. */
void gs_act_exit(void);

#endif
