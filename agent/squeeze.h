/* SPDX-License-Identifier: Apache-2.0 */
/* What a job may use of CPU: a limit on its pod's cgroup, above those of its containers. */
#ifndef GPUSHARE_AGENT_SQUEEZE_H
#define GPUSHARE_AGENT_SQUEEZE_H

#include <stdint.h>

#include "common/err.h"

/*
 * Lets the pod of that UID use @milli thousandths of a CPU (at least 10), unless it is so already:
 * its cpu.max, which the kubelet leaves alone where the pod has no limit of Kubernetes' own.
 * @root: where cgroup v2 is mounted. -ENOENT: it has no cgroup (yet, or any more).
 */
int squeeze_pod(const char *root, const char *uid, uint64_t milli, struct gs_err *err);

#endif
