// SPDX-License-Identifier: Apache-2.0
/* gpushared, the node agent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/cluster_view.h"
#include "agent/ends.h"
#include "agent/events.h"
#include "agent/hooker.h"
#include "common/metrics.h"
#include "agent/notify.h"
#include "agent/observe.h"
#include "agent/plugins.h"
#include "agent/pods.h"
#include "agent/sale.h"
#include "agent/sandbox.h"
#include "agent/spawner.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/program.h"
#include "common/xalloc.h"
#include "gpushare/grant.h"

/*
 * NET_ADMIN: to speak to the kernel module. KILL: borrowers of any user. SYS_PTRACE: to see whose
 * process that is (/proc/PID/ns).
 */
static const cap_value_t capabilities[] = { CAP_NET_ADMIN, CAP_KILL, CAP_SYS_PTRACE };

static const char usage[] =
	"usage: gpushared [--config FILE]\n"
	"\n"
	"The node agent: watches containers that hold cards, lends what is idle, takes it back.\n"
	"As root, and as a rule as a service. See gpushared(8).\n"
	"\n"
	"Example: systemctl enable --now gpushared\n";

/*
 * Each container's process is a descriptor of ours (ends.c): as many as we may have. Our children
 * keep what they were started with, for some of them still call select().
 */
static void more_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void on_lease(uv_timer_t *timer)
{
	lease_renew(timer->data);
}

static void end(void *arg)
{
	const struct agent *agent = arg;

	uv_stop(agent->loop);
}

/* Whoever started us starts another, which has all that this one lacks. */
static void on_childless(void *arg)
{
	struct agent *agent = arg;

	agent->childless = true;
	uv_stop(agent->loop);
}

static int start(struct agent *agent, struct gs_err *err)
{
	int r;

	/* the kernel module speaks to nobody in another than the host's */
	r = gs_proc_ns(getpid(), "pid", &agent->host_pid_ns, err);
	if (r < 0)
		return r;
	spawner_on_death(agent->spawner, on_childless, agent);
	r = spawner_attach(agent->spawner, agent->loop, err);
	if (r < 0)
		return r;
	r = observe_start(agent, err);
	if (r < 0)
		return r;
	evictions_new(agent);
	(void)uv_timer_init(agent->loop, &agent->back_timer);
	(void)uv_timer_init(agent->loop, &agent->lease_timer);
	(void)uv_timer_init(agent->loop, &agent->revoke_timer);
	agent->back_timer.data = agent->lease_timer.data = agent->revoke_timer.data = agent;
	lent_read(agent);
	r = server_start(agent, err);
	hooks_start(agent);
	if (r == 0)
		r = events_inventory(agent, err);
	if (r == 0)
		r = events_kernel(agent, err);
	if (r == 0)
		r = pods_start(agent, err);
	if (r == 0)
		r = reconcile_start(agent, err);
	if (r == 0)
		sale_start(agent);
	if (r == 0)
		plugins_start(agent);
	if (r == 0)
		cluster_view_start(agent);
	if (r == 0)
		r = notify_new(agent->loop, &agent->notify, err);
	if (r == 0)
		(void)uv_timer_start(&agent->lease_timer, on_lease, 0, GS_LEASE_RENEW_MS);
	return r;
}

/*
 * Of what was told to the kernel module nothing is undone: the next agent finds all as it is, and
 * the module guards it meanwhile. Parts close their own handles first, then go those of the agent.
 */
static void stop(struct agent *agent)
{
	notify_free(agent->notify);
	plugins_stop(agent);
	observe_stop(agent);
	server_stop(agent);
	lease_revoke_now(agent);
	sale_stop(agent);
	cluster_view_stop(agent);
	pods_stop(agent);
	inventory_free(agent->inventory);
	hooker_free(agent->hooker);
	kernel_free(agent->kernel);
	if (agent->evictions)
		evictions_free(agent);
	ends_free(agent);
	spawner_free(agent->spawner);
	gs_program_close(agent->loop);
	reconcile_free(agent);
	plugins_free(agent);
	metrics_free(agent->metrics);
}

static int run(struct agent *agent, struct gs_err *err)
{
	struct gs_program_signals signals;
	int r;

	r = sandbox_no_rings(err);
	if (r < 0)
		return r;
	agent->loop = uv_default_loop();
	gs_program_signals(&signals, agent->loop, end, agent);
	r = start(agent, err);
	if (r == 0)
		r = sandbox_filter(err);
	if (r == 0) {
		gs_log_fields(GS_LOG_INFO, "started", "version", GPUSHARE_VERSION, NULL);
		notify_ready(agent->notify);
		(void)uv_run(agent->loop, UV_RUN_DEFAULT);
		notify_stopping(agent->notify);
		gs_log_fields(GS_LOG_INFO, "stopping", NULL);
		if (agent->childless)
			r = gs_err_set(err, ECHILD,
				       "the process that starts our children has died");
	}
	stop(agent);
	return r;
}

int main(int argc, char **argv)
{
	struct agent agent = { 0 };
	struct gs_err err = { 0 };
	int r;

	gs_config_init(&agent.config);
	settings_init(&agent.settings);
	r = gs_program_options(argc, argv, usage, &agent.config);
	if (r >= 0)
		goto out;
	r = gs_config_load(&agent.config, NULL, &err);
	if (r == 0)
		r = settings_load(&agent.settings, agent.config.path, &err);
	if (r == 0) {
		agent.settings.all_is_each = agent.config.cri == GS_CRI_NONE;
		gs_program_log(&agent.config);
		/* while there is one thread, and before capabilities go */
		r = spawner_start(&agent.spawner, &err);
	}
	if (r == 0)
		more_files();
	if (r == 0)
		r = sandbox_capabilities(capabilities, GS_ARRAY_SIZE(capabilities), &err);
	if (r == 0)
		r = run(&agent, &err);
	if (r < 0)
		(void)fprintf(stderr, "gpushared: %s\n", err.msg);
	r = r < 0 ? 1 : 0;
out:
	settings_free(&agent.settings);
	gs_config_free(&agent.config);
	return r;
}
