/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells systemd how the program is doing: the protocol of sd_notify(3), without its library. A
 * program that was not started so (no NOTIFY_SOCKET) tells nobody, and nothing fails.
 */
#ifndef GPUSHARE_AGENT_NOTIFY_H
#define GPUSHARE_AGENT_NOTIFY_H

#include <uv.h>

#include "common/err.h"

struct notify;

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment. Where
 * a watchdog is asked for, it hears of us at half of its time from now on, as long as @loop runs.
 * -EINVAL: NOTIFY_SOCKET is neither an absolute path nor an abstract name (@name), or too long;
 * WATCHDOG_USEC is no number.
 */
int notify_new(uv_loop_t *loop, struct notify **ret, struct gs_err *err);

/* We are up; we are going down. Only the first waits, should systemd be busy. */
void notify_ready(struct notify *notify);
void notify_stopping(struct notify *notify);

/* A line for `systemctl status`. */
__attribute__((format(printf, 2, 3))) void notify_status(struct notify *notify, const char *fmt,
							 ...);

/* Stops the watchdog's timer; freed once the loop has closed it. NULL is none. */
void notify_free(struct notify *notify);

#endif
