/* SPDX-License-Identifier: Apache-2.0 */
/* Killing a cgroup with all that is in it. */
#ifndef GPUSHARE_COMMON_CGROUP_KILL_H
#define GPUSHARE_COMMON_CGROUP_KILL_H

#include <stdint.h>

#include "common/err.h"

/*
 * Kills every process in the cgroup @path (absolute, below /sys/fs/cgroup) and below it, and waits
 * until CLOCK_BOOTTIME @deadline_ms for it to be empty or gone; 0 kills once and does not wait.
 * -EINVAL: a path that no borrower can have (the root, the kubelet's own, one with "..");
 * -ETIMEDOUT: somebody is still in it.
 */
int gs_cgroup_kill(const char *path, uint64_t deadline_ms, struct gs_err *err);

/*
 * The first thing of that alone, for callers in a hurry: one write makes the kernel kill all that
 * is in the cgroup @path and below it (cgroup.kill, Documentation/admin-guide/cgroup-v2.rst).
 * Whether it is empty then, and what else could keep the dying alive, is for gs_cgroup_kill() to
 * see to, afterwards.
 * @ret_ns (may be NULL): when it was written, CLOCK_MONOTONIC. The kernel sends the signals before
 * write(2) returns, which is its time and not the caller's.
 * -EINVAL as there; -errno where there is no such file (before 5.14, and on cgroup v1).
 */
int gs_cgroup_kill_begin(const char *path, uint64_t *ret_ns, struct gs_err *err);

#endif
