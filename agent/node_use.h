/* SPDX-License-Identifier: Apache-2.0 */
/* What the node and single pods use of CPU and memory. */
#ifndef GPUSHARE_AGENT_NODE_USE_H
#define GPUSHARE_AGENT_NODE_USE_H

#include <stdint.h>

#include "common/err.h"

/*
 * CPU: microseconds since some beginning. Memory: MiB in use that can't be dropped. Of a pod
 * besides, in bytes: all that counts against its limit, and pages of files in it that nobody used
 * of late and that are on the disk as they are.
 */
struct node_use {
	uint64_t cpu_us, memory_mib;
	uint64_t charged, clean;
};

/*
 * The whole node: how many processors are online, for how many microseconds they were idle or
 * waited for disks, all together since the start, and memory in MiB that can't be dropped.
 */
struct node_use_all {
	uint64_t processors, idle_us, memory_mib;
};

/*
 * @proc/stat, and @proc/meminfo (MemTotal less MemAvailable); proc(5). @proc: "/proc". -EINVAL:
 * something is missing there.
 */
int node_use_all(const char *proc, struct node_use_all *ret, struct gs_err *err);

/*
 * Thousandths of a processor that were in use between two readings, @passed_us one after the other;
 * -EAGAIN: processors came or went meanwhile, so that nothing can be told. What was not idle was
 * used: by tasks, by interrupts, by a hypervisor. The kernel's own counts of those are samples of
 * the timer's, and lose what it misses, as in a virtual machine that has to wait.
 */
int node_use_between(const struct node_use_all *before, const struct node_use_all *now,
		     uint64_t passed_us, uint64_t *ret_milli);

/* Is cgroup v2 mounted at @root? -ENOTSUP: nothing below can tell of pods. */
int node_use_check(const char *root, struct gs_err *err);

/*
 * The cgroup of the pod of that UID, a folder; NULL: it has none, under any of the names that the
 * kubelet gives to pods (cgroupfs and systemd, each class of service). @root: where cgroup v2 is
 * mounted. The caller frees.
 */
char *node_use_folder(const char *root, const char *uid);

/*
 * Of the pod of that UID, by its cgroup: cpu.stat, and memory.current less inactive_file, as the
 * kubelet counts. -ENOENT: it has none.
 */
int node_use_pod(const char *root, const char *uid, struct node_use *ret, struct gs_err *err);

#endif
