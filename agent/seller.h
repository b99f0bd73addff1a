/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sells the node's unused CPU and memory: gpushare/vcpu (thousandths of a CPU) and gpushare/vmem
 * (MiB), extended resources in the node's status, which the kubelet then has to give away and the
 * scheduler counts. What is for sale follows what is in use. Where less is left than was sold, the
 * CPU of jobs is squeezed, and some are evicted for their memory.
 */
#ifndef GPUSHARE_AGENT_SELLER_H
#define GPUSHARE_AGENT_SELLER_H

#include <uv.h>

#include "agent/oversale.h"
#include "agent/settings.h"
#include "kube/kube.h"

struct seller;

struct seller_config {
	uv_loop_t *loop;
	struct kube *kube; /* must outlive it */
	const char *node; /* its name; copied */
	const char *proc, *cgroups; /* "/proc", "/sys/fs/cgroup"; they stay */
	unsigned int period_ms;
	struct sale_settings settings;
	/* Gives the pods to whom it was sold, and how many; as pods_jobs(). */
	size_t (*jobs)(struct oversale_job **ret, void *arg);
	/* That one has to go, for its memory; @why is a sentence. */
	void (*evict)(const char *uid, const char *why, void *arg);
	/*
	 * A job's cgroup would have let it use more memory than it bought, and does no more; or,
	 * where @above, it does use more: it is told once, and may use so much and no more.
	 */
	void (*limited)(const char *uid, bool above, void *arg);
	/* The node's status was changed (NULL), or why not. */
	void (*told)(const struct gs_err *err, void *arg);
	void *arg;
};

/* Starts looking; @config is copied. */
struct seller *seller_new(const struct seller_config *config);

/* Ends it; before kube_free(). What is for sale stays so. NULL is none. */
void seller_free(struct seller *seller);

/* One of the two, as seen last: for sale, in use, and sold. Thousandths of a CPU, or MiB. */
struct seller_view {
	uint64_t sale, others, jobs, sold;
};
void seller_look(const struct seller *seller, struct seller_view *cpu, struct seller_view *memory);

#endif
