// SPDX-License-Identifier: Apache-2.0
/* gpushare-controller, the cluster's part. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/program.h"
#include "common/xalloc.h"
#include "controller/controller.h"
#include "controller/figures.h"
#include "controller/keeper.h"
#include "controller/leader.h"
#include "controller/shadow.h"
#include "controller/spaces.h"
#include "controller/web.h"

static const char usage[] =
	"usage: gpushare-controller [--config FILE]\n"
	"\n"
	"The cluster's part of gpushare: answers the admission webhook, makes and removes shadow "
	"pods.\nSee gpushare-controller(8).\n"
	"\n"
	"Example: gpushare-controller --config ./config.json\n";

static void end_now(struct controller *controller)
{
	uv_stop(controller->loop);
}

static void end(void *arg)
{
	leader_release(arg, end_now);
}

/* ---- Who we are. */

static int set_namespace(struct controller *controller, struct gs_err *err)
{
	char **namespace = &controller->settings.namespace;

	if (!*namespace && kube_own_namespace(namespace, err) < 0)
		return gs_err_prefix(err, "no namespace is set, and nothing tells ours");
	if (!gs_dns_label(*namespace, strlen(*namespace)))
		return gs_err_set(err, EINVAL, "'%s' is no namespace", *namespace);
	return 0;
}

/* Another one for every process: two with one name would both believe that they lead. */
static void set_identity(struct controller *controller)
{
	const char *pod = getenv("POD_NAME");
	char host[256] = "";
	uint64_t n = 0;

	(void)gethostname(host, sizeof(host) - 1);
	(void)uv_random(NULL, NULL, &n, sizeof(n), 0, NULL);
	controller->identity = gs_asprintf("%.200s_%016" PRIx64, pod && *pod ? pod : host, n);
	controller->settings.kube.instance = gs_strdup(pod && *pod ? pod : host);
}

/* ---- The API. */

static void on_health(bool ok, const char *why, void *arg)
{
	struct controller *controller = arg;

	controller->kube_ok = ok;
	kube_log_health(ok, why);
}

static void on_leads(struct controller *controller, bool leads)
{
	if (leads)
		keeper_hurry(controller);
	shadows_lead(controller, leads);
}

static int start(struct controller *controller, struct gs_err *err)
{
	const struct kube_ops ops = { .health = on_health,
				      .note = kube_log_note,
				      .arg = controller };
	struct kube_config *config = &controller->settings.kube;
	int r = set_namespace(controller, err);

	if (r < 0)
		return r;
	set_identity(controller);
	r = kube_config_in_cluster(config, err);
	/* our Events are of no node */
	free(gs_steal(config->node));
	if (r == 0)
		r = kube_new(controller->loop, config, &ops, &controller->kube, err);
	if (r == 0)
		r = keeper_start(controller, err);
	if (r == 0)
		r = web_start(controller, err);
	if (r < 0)
		return r;
	spaces_start(controller, web_spaces_changed);
	shadows_start(controller);
	leader_start(controller, on_leads);
	return 0;
}

static void stop(struct controller *controller)
{
	web_stop(controller);
	leader_stop(controller);
	keeper_stop(controller);
	shadows_stop(controller);
	kube_free(controller->kube);
	controller->kube = NULL;
	spaces_stop(controller);
	gs_program_close(controller->loop);
}

static int run(struct controller *controller, struct gs_err *err)
{
	struct gs_program_signals signals;
	char port[16];
	int r;

	controller->loop = uv_default_loop();
	gs_program_signals(&signals, controller->loop, end, controller);
	figures_start(controller);
	r = start(controller, err);
	if (r == 0) {
		(void)snprintf(port, sizeof(port), "%u", web_port(controller));
		gs_log_fields(GS_LOG_INFO, "started", "version", GPUSHARE_VERSION, "identity",
			      controller->identity, "port", port, NULL);
		(void)uv_run(controller->loop, UV_RUN_DEFAULT);
		gs_log_fields(GS_LOG_INFO, "stopping", NULL);
	}
	stop(controller);
	metrics_free(controller->metrics);
	free(controller->identity);
	return r;
}

int main(int argc, char **argv)
{
	struct controller controller = { 0 };
	struct gs_err err = { 0 };
	int r;

	gs_config_init(&controller.config);
	controller_settings_init(&controller.settings);
	r = gs_program_options(argc, argv, usage, &controller.config);
	if (r >= 0)
		goto out;
	r = gs_config_load(&controller.config, NULL, &err);
	if (r == 0)
		r = controller_settings_load(&controller.settings, &controller.config, &err);
	if (r == 0) {
		gs_program_log(&controller.config);
		r = run(&controller, &err);
	}
	if (r < 0)
		(void)fprintf(stderr, "gpushare-controller: %s\n", err.msg);
	r = r < 0 ? 1 : 0;
out:
	controller_settings_free(&controller.settings);
	gs_config_free(&controller.config);
	return r;
}
