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

#endif
