// SPDX-License-Identifier: Apache-2.0
/* cpu.max of pods: "Control Group v2", Linux kernel documentation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/pod_cgroup.h"
#include "agent/squeeze.h"
#include "common/cleanup.h"

/* Microseconds, as the kubelet has it; the kernel takes no quota below 1000. */
#define PERIOD_US 100000
#define TEXT_MAX 64

int squeeze_pod(const char *root, const char *uid, uint64_t milli, struct gs_err *err)
{
	cleanup_free char *path = NULL, *has = NULL;
	char want[TEXT_MAX];
	int r = pod_cgroup_read(root, uid, "cpu.max", &path, &has, err);

	(void)snprintf(want, sizeof(want), "%" PRIu64 " %d\n", milli * (PERIOD_US / 1000),
		       PERIOD_US);
	if (r < 0 || strcmp(has, want) == 0)
		return r;
	return pod_cgroup_write(path, want, err);
}
