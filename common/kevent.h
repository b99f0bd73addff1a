/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening to the kernel module's events. The listener outlives the module: it may be opened
 * before it is loaded, and goes on when it comes back.
 *
 * How to keep up with the module's state: open the listener, then gs_klink_dump(), then apply what
 * gs_kevent_next() gives; dump again after every GS_KEVENT_LOST and GS_KEVENT_LOADED. Events up to
 * the dump's status.event_seq tell what the dump tells already.
 */
#ifndef GPUSHARE_COMMON_KEVENT_H
#define GPUSHARE_COMMON_KEVENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/kmsg.h"

struct gs_kevents;

enum gs_kevent_what {
	GS_KEVENT_NONE, /* nothing in that time */
	GS_KEVENT_GOT, /* an event */
	GS_KEVENT_LOST, /* events were lost before the next one */
	GS_KEVENT_LOADED, /* the module is there (again), and knows nothing yet */
	GS_KEVENT_UNLOADED, /* it is gone, and with it all that it kept */
};

/*
 * Opens a listener with room for @buffer bytes of unread events (0: 1 MiB; the kernel doubles it,
 * for its own overhead). -EPERM: no CAP_NET_ADMIN, or not the initial user namespace;
 * -EPROTONOSUPPORT: the module that is loaded has another ABI. The caller closes.
 */
int gs_kevents_open(size_t buffer, struct gs_kevents **ret, struct gs_err *err);

/* Closes it; NULL is none. */
void gs_kevents_close(struct gs_kevents *events);

static inline void gs_cleanup_kevents(struct gs_kevents **events)
{
	gs_kevents_close(*events);
}
#define cleanup_kevents __attribute__((cleanup(gs_cleanup_kevents)))

/*
 * The descriptor to wait for in a loop of one's own: when it is readable, call gs_kevent_next()
 * with @timeout_ms 0 until it says GS_KEVENT_NONE.
 */
int gs_kevents_fd(const struct gs_kevents *events);

/* Is the module there? */
bool gs_kevents_loaded(const struct gs_kevents *events);

/*
 * Waits at most @timeout_ms (-1: without end) and says in @ret_what what came; @ret is written for
 * GS_KEVENT_GOT alone. -EINTR: a signal; -EPROTO: a message that is none, and is passed over;
 * -EPROTONOSUPPORT: a module of another ABI was loaded (it is not listened to); errnos of the
 * socket.
 */
int gs_kevent_next(struct gs_kevents *events, int timeout_ms, enum gs_kevent_what *ret_what,
		   struct gs_kevent *ret, struct gs_err *err);

#endif
