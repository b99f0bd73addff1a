// SPDX-License-Identifier: Apache-2.0
/* The node's picture for the cluster's view. */
#include "agent/cluster_view.h"
#include "agent/observe.h"
#include "agent/publisher.h"
#include "agent/status.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/view.h"

#define CHANGE_MS 10000
#define LOAD_MS 60000
/* Inventories, registry, module and kubelet have told by then, or are late. */
#define SETTLE_MS 3000

static json_t *on_look(void *arg)
{
	struct agent *agent = arg;

	/* what an agent that starts does not know yet is no news */
	if (!inventory_complete(agent->inventory) || !agent->registry_read_ms)
		return NULL;
	return status_json(agent);
}

static void on_told(const struct gs_err *err, void *arg)
{
	static const char failed[] = "the cluster's view is not told of this node";
	struct agent *agent = arg;

	observe_view(agent, err ? "failed" : "ok");
	if (err)
		told_log(&agent->told, GS_LOG_ERROR, failed, NULL, NULL, err->msg);
	else if (told_over(&agent->told, failed))
		gs_log_fields(GS_LOG_INFO, "the cluster's view is told again", NULL);
}

void cluster_view_start(struct agent *agent)
{
	struct settings *s = &agent->settings;
	struct publisher_config config = {
		.loop = agent->loop,
		.kube = agent->kube,
		.server = s->kube.server,
		.node = s->kube.node,
		.run_dir = agent->config.run_dir,
		.change_ms = CHANGE_MS,
		.load_ms = LOAD_MS,
		.refresh_ms = GS_VIEW_REFRESH_S * 1000,
		.settle_ms = SETTLE_MS,
		.max = GS_VIEW_MAX,
		.look = on_look,
		.told = on_told,
		.arg = agent,
	};

	if (!agent->kube || !s->view)
		return;
	if (!s->view_namespace && kube_own_namespace(&s->view_namespace, NULL) < 0)
		s->view_namespace = gs_strdup(GS_VIEW_NAMESPACE);
	config.namespace = s->view_namespace;
	agent->publisher = publisher_new(&config);
}

void cluster_view_stop(struct agent *agent)
{
	publisher_free(agent->publisher);
	agent->publisher = NULL;
}

void cluster_view_changed(struct agent *agent)
{
	if (agent->publisher)
		publisher_changed(agent->publisher);
}
