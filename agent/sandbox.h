/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent gives up before it listens to anybody: capabilities, and system calls. Both last
 * until the process ends and are inherited, so children are started by somebody else: spawner.h.
 */
#ifndef GPUSHARE_AGENT_SANDBOX_H
#define GPUSHARE_AGENT_SANDBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/capability.h>

#include "common/err.h"

/*
 * Keeps these capabilities alone, permitted and effective; the bounding, inheritable and ambient
 * sets are emptied of every other one, and no program that is executed can bring one back
 * (no_new_privs). Call it while there is one thread: capabilities are a thread's own. -EPERM: we
 * were started without one of @keep, or without CAP_SETPCAP, which changing the bounding set takes.
 */
int sandbox_capabilities(const cap_value_t *keep, size_t n, struct gs_err *err);

/*
 * From now on this thread, and each that it starts, gets ENOSYS from io_uring_setup(2). Before the
 * first loop is made: libuv from 1.45 on makes rings for it where it can, and takes it for a bug if
 * sandbox_filter() then refuses io_uring_enter(2). Needs no_new_privs, of sandbox_capabilities(),
 * or CAP_SYS_ADMIN.
 */
int sandbox_no_rings(struct gs_err *err);

/*
 * Filters the system calls of every thread from now on. What the agent needs is allowed; a few
 * calls that nothing of it could ever need, such as loading a kernel module, kill the process;
 * every other one returns ENOSYS and is counted. No programs and no processes are started any more,
 * only threads; sockets are local, IP or netlink; memory that is or was writable is not executable.
 * Catches SIGSYS, which nobody may block.
 */
int sandbox_filter(struct gs_err *err);

/* How many calls the filter has answered with ENOSYS, from any thread. */
uint64_t sandbox_denied(void);

/* The same for each system call that was; its name, or its number where it has none. */
void sandbox_denied_each(void (*each)(const char *call, uint64_t count, void *arg), void *arg);

#endif
