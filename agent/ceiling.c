// SPDX-License-Identifier: Apache-2.0
/*
 * memory.max of pods: "Control Group v2", Linux kernel documentation.
 *
 * The runtime has limited each container to what it bought, and their sum is what the pod bought:
 * where that holds, the pod's own limit is never felt. It is for where it does not: a container
 * that another runtime made, or whose annotation was written by hand. The kubelet does the same
 * for pods whose containers all have limits of Kubernetes' own, and leaves this one's memory.max
 * alone.
 *
 * With systemd's driver the folder is a slice, whose MemoryMax nobody has set: a daemon-reload
 * writes "max" into it again. So it is looked at anew each time, and not remembered.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ceiling.h"
#include "agent/node_use.h"
#include "agent/pod_cgroup.h"
#include "common/cleanup.h"

#define MIB ((uint64_t)1024 * 1024)
/* So much of a pod's page cache is dropped at a time: the writer waits for it. */
#define STEP (64 * MIB)
#define TEXT_MAX 64

/* The limit that the file's text tells; "max" is none. */
static uint64_t limit_of(const char *text)
{
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/*
 * Whoever lowers a limit below what is used waits until the kernel has taken so much back, and
 * where it can't, it kills. So below that only for pages of files that cost nothing: half of those
 * that were neither used of late nor written to, and few at a time.
 */
static uint64_t lowest(const struct node_use *use)
{
	uint64_t step = use->clean / 2 < STEP ? use->clean / 2 : STEP;

	return use->charged > step ? use->charged - step : 0;
}

int ceiling_pod(const char *root, const char *uid, uint64_t mib, bool *ret_above,
		struct gs_err *err)
{
	cleanup_free char *path = NULL, *has = NULL;
	uint64_t bought = mib * MIB, least, want;
	struct node_use use = { 0 };
	char text[TEXT_MAX];
	int r;

	*ret_above = false;
	r = pod_cgroup_read(root, uid, "memory.max", &path, &has, err);
	if (r < 0 || limit_of(has) <= bought)
		return r;
	r = node_use_pod(root, uid, &use, err);
	if (r < 0)
		return r;
	least = lowest(&use);
	want = least > bought ? least : bought;
	*ret_above = use.memory_mib > mib;
	if (want >= limit_of(has))
		return 0;
	(void)snprintf(text, sizeof(text), "%" PRIu64 "\n", want);
	r = pod_cgroup_write(path, text, err);
	if (r < 0)
		return r;
	return want == bought;
}
