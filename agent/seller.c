// SPDX-License-Identifier: Apache-2.0
/* Sells the node's unused CPU and memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ceiling.h"
#include "agent/node_use.h"
#include "agent/seller.h"
#include "agent/squeeze.h"
#include "common/cleanup.h"
#include "common/js.h"
#include "common/quantity.h"
#include "common/xalloc.h"
#include "gpushare/resources.h"

/* In what steps: a tenth of a CPU, 64 MiB. */
#define CPU_STEP 100
#define MEMORY_STEP 64
/* How often the kubelet's own figures are read again, in looks. */
#define ALLOCATABLE_EVERY 30
#define MIB (1024 * 1024)

/* What a pod to whom it was sold had used of CPU. */
struct job {
	char *uid;
	uint64_t cpu_us;
	bool above; /* it uses more memory than it bought, and that was told */
};

struct seller {
	struct seller_config config;
	char *path; /* of the node */
	uv_timer_t timer;
	struct kube_ask *asking, *telling;
	unsigned int looks;
	bool allocatable_known;
	uint64_t allocatable[2]; /* CPU, memory */
	struct oversale sale[2];
	struct seller_view seen[2];
	bool begun; /* the two below are of a look before */
	uint64_t at_ns;
	struct node_use_all all;
	struct job *jobs;
	size_t n_jobs;
	bool again; /* what was to be told was not */
};

static void jobs_free(struct job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(jobs[i].uid);
	free(jobs);
}

/* ---- What the kubelet has to give away. */

static bool get_quantity(struct js object, const char *key, int64_t *ret)
{
	cleanup_free char *text = NULL;
	struct js v = { 0 };

	if (js_member(object, key, &v, NULL) < 0)
		return false;
	text = js_string(v);
	return text && gs_quantity_milli(text, ret, NULL) == 0;
}

static void on_node(const struct kube_reply *reply, void *arg)
{
	struct seller *seller = arg;
	struct js root, allocatable = { 0 };
	int64_t cpu, memory;

	seller->asking = NULL;
	if (reply->r < 0) {
		seller->config.told(reply->err, seller->config.arg);
		return;
	}
	if (js_parse(reply->text, reply->len, &root, NULL) < 0 ||
	    js_path(root, &allocatable, NULL, "status", "allocatable", NULL) < 0 ||
	    !get_quantity(allocatable, "cpu", &cpu) ||
	    !get_quantity(allocatable, "memory", &memory))
		return; /* a node whose kubelet has not told yet */
	seller->allocatable[0] = (uint64_t)cpu;
	seller->allocatable[1] = (uint64_t)memory / 1000 / MIB;
	seller->allocatable_known = true;
}

static void ask(struct seller *seller)
{
	if (!seller->asking && seller->looks % ALLOCATABLE_EVERY == 0)
		seller->asking = kube_ask(seller->config.kube, "GET", seller->path, NULL, NULL,
					  on_node, seller);
	/* until it is known, each look asks */
	if (seller->allocatable_known)
		seller->looks++;
}

/* ---- What is for sale. */

static void on_told(const struct kube_reply *reply, void *arg)
{
	struct seller *seller = arg;

	seller->telling = NULL;
	seller->again = reply->r < 0;
	seller->config.told(reply->r < 0 ? reply->err : NULL, seller->config.arg);
}

static void tell(struct seller *seller)
{
	cleanup_free char *path = gs_asprintf("%s/status", seller->path);
	cleanup_free char *body = NULL;

	if (seller->telling) {
		seller->again = true;
		return;
	}
	body = gs_asprintf("{\"status\":{\"capacity\":{\"" GS_RESOURCE_VCPU "\":\"%" PRIu64
			   "\",\"" GS_RESOURCE_VMEM "\":\"%" PRIu64 "\"}}}",
			   seller->sale[0].told, seller->sale[1].told);
	seller->again = false;
	/* its allocatable follows: the kubelet copies what it does not know */
	seller->telling = kube_ask(seller->config.kube, "PATCH", path,
				   "application/merge-patch+json", body, on_told, seller);
}

static void sell(struct seller *seller, const uint64_t used[2], const uint64_t jobs[2])
{
	const struct sale_settings *s = &seller->config.settings;
	const unsigned int ratio[2] = { s->cpu_ratio, s->memory_ratio };
	const uint64_t floor[2] = { s->cpu_floor, s->memory_floor };
	const uint64_t step[2] = { CPU_STEP, MEMORY_STEP };
	bool any = seller->again;

	for (size_t i = 0; i < 2; i++) {
		const struct oversale_view view = {
			.allocatable = seller->allocatable[i],
			.ratio = ratio[i],
			.floor = floor[i],
			.used = used[i],
			.jobs = jobs[i],
		};
		bool news;

		seller->seen[i].sale = oversale_sell(&seller->sale[i], &view, step[i], &news);
		seller->seen[i].others = (uint64_t)seller->sale[i].others;
		seller->seen[i].jobs = jobs[i];
		any |= news;
	}
	if (any)
		tell(seller);
}

/* ---- What is in use. */

/* As it was at the last look; NULL: it was not there. */
static struct job *find(const struct seller *seller, const char *uid)
{
	for (size_t i = 0; i < seller->n_jobs; i++)
		if (strcmp(seller->jobs[i].uid, uid) == 0)
			return &seller->jobs[i];
	return NULL;
}

/* Sums what jobs use, of CPU since the last look, in microseconds, and what they bought. */
static void look_at_jobs(struct seller *seller, struct oversale_job *v, size_t n_v,
			 uint64_t *ret_cpu_us, uint64_t *ret_mib)
{
	struct job *jobs = gs_calloc(n_v + 1, sizeof(*jobs));
	uint64_t sold[2] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < n_v; i++) {
		const struct job *was = find(seller, v[i].uid);
		struct node_use use;

		sold[0] += v[i].cpu;
		sold[1] += v[i].memory;
		/* one that has no cgroup (yet, or any more) uses nothing */
		if (node_use_pod(seller->config.cgroups, v[i].uid, &use, NULL) < 0)
			continue;
		/* of one that is seen for the first time from now on */
		if (was && was->cpu_us <= use.cpu_us)
			*ret_cpu_us += use.cpu_us - was->cpu_us;
		*ret_mib += use.memory_mib;
		v[i].memory_used = use.memory_mib;
		jobs[n++] = (struct job){ gs_strdup(v[i].uid), use.cpu_us, was && was->above };
	}
	seller->seen[0].sold = sold[0];
	seller->seen[1].sold = sold[1];
	jobs_free(seller->jobs, seller->n_jobs);
	seller->jobs = jobs;
	seller->n_jobs = n;
}

/* ---- Nobody has more than he bought. */

/* Whatever stands in his annotations, and whoever made his containers; see ceiling.c. */
static void limit_memory(struct seller *seller, const struct oversale_job *v, size_t n)
{
	const struct seller_config *config = &seller->config;

	for (size_t i = 0; i < n; i++) {
		struct job *job = find(seller, v[i].uid);
		struct gs_err err;
		bool above;
		int r;

		if (!job || !v[i].memory || !v[i].only_memory)
			continue;
		r = ceiling_pod(config->cgroups, v[i].uid, v[i].memory, &above, &err);
		if (r < 0 && r != -ENOENT && r != -ENODEV)
			config->told(&err, config->arg);
		if (r > 0 || (above && !job->above))
			config->limited(v[i].uid, above, config->arg);
		job->above = above;
	}
}

/* ---- Where less is left than was sold. */

/*
 * Each look sets it anew, so that no squeeze outlives its reason, nor an agent that began it; and
 * of CPU, too, nobody has more than he bought.
 */
static void squeeze(struct seller *seller, const struct oversale_job *jobs, size_t n)
{
	const struct seller_view *cpu = &seller->seen[0];
	struct gs_err err;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t part = oversale_squeezed(jobs[i].cpu, cpu->sold, cpu->sale);

		if (!part || !jobs[i].only_cpu)
			continue;
		r = squeeze_pod(seller->config.cgroups, jobs[i].uid, part, &err);
		if (r < 0 && r != -ENOENT && r != -ENODEV)
			seller->config.told(&err, seller->config.arg);
	}
}

static void evict(struct seller *seller, struct oversale_job *jobs, size_t n, uint64_t used,
		  uint64_t jobs_mib)
{
	const struct oversale_view view = {
		.allocatable = seller->allocatable[1],
		.ratio = seller->config.settings.memory_ratio,
		.floor = seller->config.settings.memory_floor,
		.used = used,
		.jobs = jobs_mib,
	};
	uint64_t excess = oversale_excess(&view);
	size_t victims = oversale_victims(jobs, n, excess);

	for (size_t i = 0; i < victims; i++) {
		cleanup_free char *why =
			gs_asprintf("the node's other pods want over-sold memory back: %" PRIu64
				    " MiB of the %" PRIu64 " that jobs use; this one used %" PRIu64,
				    excess, jobs_mib, jobs[i].memory_used);

		seller->config.evict(jobs[i].uid, why, seller->config.arg);
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct seller *seller = timer->data;
	cleanup_free struct oversale_job *v = NULL;
	size_t n;
	uint64_t now = uv_hrtime(), used[2] = { 0 }, jobs[2] = { 0 }, jobs_us = 0;
	uint64_t passed_us = (now - seller->at_ns) / 1000;
	struct node_use_all all;
	struct gs_err err;

	if (node_use_check(seller->config.cgroups, &err) < 0) {
		/* what jobs use could not be told from what others do, nor be taken back */
		seller->config.told(&err, seller->config.arg);
		return;
	}
	ask(seller);
	if (node_use_all(seller->config.proc, &all, &err) < 0) {
		seller->config.told(&err, seller->config.arg);
		return;
	}
	n = seller->config.jobs(&v, seller->config.arg);
	look_at_jobs(seller, v, n, &jobs_us, &jobs[1]);
	limit_memory(seller, v, n);
	used[1] = all.memory_mib;
	if (seller->begun && node_use_between(&seller->all, &all, passed_us, &used[0]) == 0) {
		jobs[0] = jobs_us * 1000 / passed_us;
		if (seller->allocatable_known) {
			sell(seller, used, jobs);
			squeeze(seller, v, n);
			evict(seller, v, n, used[1], jobs[1]);
		}
	}
	seller->begun = true;
	seller->at_ns = now;
	seller->all = all;
}

void seller_look(const struct seller *seller, struct seller_view *cpu, struct seller_view *memory)
{
	*cpu = seller->seen[0];
	*memory = seller->seen[1];
}

struct seller *seller_new(const struct seller_config *config)
{
	struct seller *seller = gs_calloc(1, sizeof(*seller));

	seller->config = *config;
	seller->path = gs_asprintf("/api/v1/nodes/%s", config->node);
	seller->timer.data = seller;
	(void)uv_timer_init(config->loop, &seller->timer);
	(void)uv_timer_start(&seller->timer, on_timer, 0, config->period_ms);
	return seller;
}

static void on_close(uv_handle_t *handle)
{
	struct seller *seller = handle->data;

	jobs_free(seller->jobs, seller->n_jobs);
	free(seller->path);
	free(seller);
}

void seller_free(struct seller *seller)
{
	if (!seller)
		return;
	kube_ask_cancel(seller->asking);
	kube_ask_cancel(seller->telling);
	uv_close((uv_handle_t *)&seller->timer, on_close);
}
