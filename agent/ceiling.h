/* SPDX-License-Identifier: Apache-2.0 */
/* What a job may use of memory: a limit on its pod's cgroup, above those of its containers. */
#ifndef GPUSHARE_AGENT_CEILING_H
#define GPUSHARE_AGENT_CEILING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/*
 * Sees to it that the pod of that UID can't use more memory than the @mib MiB that it bought: its
 * memory.max, where that is higher, is lowered so far, but never below what it uses already (the
 * kernel would kill at once). *ret_above: that is more than it bought, and memory.max may come down
 * at the next call. @root: where cgroup v2 is mounted. Returns 1 where memory.max was higher, and
 * is what it bought now; else 0. -ENOENT: it has no cgroup (yet, or any more).
 */
int ceiling_pod(const char *root, const char *uid, uint64_t mib, bool *ret_above,
		struct gs_err *err);

#endif
