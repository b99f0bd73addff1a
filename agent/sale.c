// SPDX-License-Identifier: Apache-2.0
/* The agent's sale of CPU and memory. */
#include "agent/observe.h"
#include "agent/pods.h"
#include "agent/sale.h"
#include "agent/seller.h"
#include "common/cgroup.h"
#include "common/log.h"

#define PERIOD_MS 10000

static size_t on_jobs(struct oversale_job **ret, void *arg)
{
	return pods_jobs(arg, ret);
}

static void on_evict(const char *uid, const char *why, void *arg)
{
	struct agent *agent = arg;

	observe_job_evicted(agent, "memory");
	gs_log_fields(GS_LOG_WARN, "a job is evicted", "pod", uid, "why", why, NULL);
	pods_evict(agent, uid, why);
}

static void on_limited(const char *uid, bool above, void *arg)
{
	observe_job_limited(arg, above ? "used" : "bought");
	if (above)
		gs_log_fields(GS_LOG_WARN, "a job uses more memory than it bought", "pod", uid,
			      NULL);
	else
		gs_log_fields(GS_LOG_INFO, "a job's memory is limited to what it bought", "pod",
			      uid, NULL);
}

static void on_told(const struct gs_err *err, void *arg)
{
	static int last;
	struct agent *agent = arg;

	observe_sale(agent, err ? "failed" : "ok");
	/* each look meets it again: say it once */
	if (err && err->code != last)
		gs_log_fields(GS_LOG_ERROR, "CPU and memory are not sold", "why", err->msg, NULL);
	last = err ? err->code : 0;
}

void sale_start(struct agent *agent)
{
	const struct seller_config config = {
		.loop = agent->loop,
		.kube = agent->kube,
		.node = agent->settings.kube.node,
		.proc = "/proc",
		.cgroups = GS_CGROUP_ROOT,
		.period_ms = PERIOD_MS,
		.settings = agent->settings.sale,
		.jobs = on_jobs,
		.evict = on_evict,
		.limited = on_limited,
		.told = on_told,
		.arg = agent,
	};

	if (!agent->settings.sale.enabled)
		return;
	if (agent->kube)
		agent->seller = seller_new(&config);
	else
		gs_log_fields(GS_LOG_WARN, "nothing is sold without Kubernetes", NULL);
}

void sale_stop(struct agent *agent)
{
	seller_free(agent->seller);
	agent->seller = NULL;
}

static void set(struct agent *agent, const struct metric *metric, const struct seller_view *view,
		double unit)
{
	metrics_set(agent->metrics, metric, (double)view->sale * unit, "sale");
	metrics_set(agent->metrics, metric, (double)view->others * unit, "others");
	metrics_set(agent->metrics, metric, (double)view->jobs * unit, "jobs");
	metrics_set(agent->metrics, metric, (double)view->sold * unit, "sold");
}

void sale_observe(struct agent *agent, const struct metric *cpu, const struct metric *memory)
{
	struct seller_view views[2];

	if (!agent->seller)
		return;
	seller_look(agent->seller, &views[0], &views[1]);
	set(agent, cpu, &views[0], 0.001);
	set(agent, memory, &views[1], 1024 * 1024);
}
