/* SPDX-License-Identifier: GPL-2.0-only */
/* Telling user space: events are made under gs_lock, and sent outside of it. */
#ifndef GS_KMOD_EVENT_H
#define GS_KMOD_EVENT_H

#include "gs.h"

/**
 * struct gs_notice - one event, waiting to be sent
 *
 * Zero fields that do not apply; @event says which do.
 */
struct gs_notice {
	u64 seq;
	u64 time;
	u64 start_time;
	u32 pid;
	u32 pidns;
	dev_t dev;
	u32 held;
	u32 held_ms;
	u32 mappings;
	u64 faults;
	u8 event; /* enum gs_event */
	u8 state;
	u8 from;
	u8 cause;
	u8 kind;
	bool by_call; /* pid, start_time, pidns, dev, kind and watch are of a caller */
	bool killed;
	bool alive;
	char name[GS_NAME_MAX + 1];
	char watch[GS_NAME_MAX + 1];
};

/* Totals since the module was loaded; under gs_lock. */
struct gs_totals {
	u64 held;
	u64 returns;
	u64 settled;
	u64 hold_max;
	u64 quarantine;
	u64 kills;
	u64 refused;
	u64 events_lost;
	u64 mappings;
	u64 faults;
};

extern struct gs_totals gs_totals;
extern u64 gs_event_seq; /* of the last event; under gs_lock */

/**
 * gs_event_new() - a place for an event in the queue
 * @event: which
 *
 * Takes the next sequence number even when there is no place, so that the listener sees the gap.
 * Context: gs_lock held.
 * Return: to be filled in before gs_lock is given up, never NULL.
 */
struct gs_notice *gs_event_new(enum gs_event event);

/** gs_notice_caller() - says who called, and on what. Context: the caller's own; gs_lock held. */
void gs_notice_caller(struct gs_notice *notice, const struct gs_watch *watch,
		      const struct gs_call *call);

/** gs_tell() - send what is in the queue, soon. Context: any. See gs_act(). */
void gs_tell(void);

/** gs_tell_exit() - waits until it is sent. Context: process. */
void gs_tell_exit(void);

/** gs_clock() - CLOCK_BOOTTIME in nanoseconds. */
static inline u64 gs_clock(void)
{
	return ktime_get_boottime_ns();
}

#endif
