// SPDX-License-Identifier: Apache-2.0
/* What the controller counts. */
#include "controller/figures.h"
#include "controller/keeper.h"
#include "controller/leader.h"

#define PREFIX "gpushare_controller_"
#define METRIC(id, name, type, text, ...) \
	static const struct metric id = { PREFIX name, text, type, { __VA_ARGS__ }, NULL, 0 }
#define COUNTER(id, text, ...) METRIC(id, #id "_total", METRIC_COUNTER, text, __VA_ARGS__)
#define GAUGE(id, text, ...) METRIC(id, #id, METRIC_GAUGE, text, __VA_ARGS__)

COUNTER(reviews, "Questions of the API server, by the answer.", "answer");
COUNTER(shadows, "What was done to shadow pods.", "what");
COUNTER(events_dropped, "Kubernetes Events that were given up.", NULL);
GAUGE(shadow_pods, "Shadow pods: placed on a node, or pending.", "state");
GAUGE(share_pods_waiting, "Share pods that can't be placed.", NULL);
GAUGE(leader, "1: this replica leads.", NULL);
GAUGE(kubernetes_api_up, "1: the Kubernetes API answers.", NULL);
GAUGE(certificate_end_seconds, "When the certificate ends, in Unix time; 0: not known.", NULL);

void figures_start(struct controller *controller)
{
	struct metrics *metrics = metrics_new();

	controller->metrics = metrics;
	metrics_add(metrics, &reviews);
	metrics_add(metrics, &shadows);
	metrics_add(metrics, &events_dropped);
	metrics_add(metrics, &shadow_pods);
	metrics_add(metrics, &share_pods_waiting);
	metrics_add(metrics, &leader);
	metrics_add(metrics, &kubernetes_api_up);
	metrics_add(metrics, &certificate_end_seconds);
}

void figures_review(struct controller *controller, const char *answer)
{
	metrics_inc(controller->metrics, &reviews, 1, answer);
}

void figures_shadow(struct controller *controller, const char *what)
{
	metrics_inc(controller->metrics, &shadows, 1, what);
}

void figures_shadows(struct controller *controller, size_t placed, size_t pending, size_t waiting)
{
	metrics_set(controller->metrics, &shadow_pods, (double)placed, "placed");
	metrics_set(controller->metrics, &shadow_pods, (double)pending, "pending");
	metrics_set(controller->metrics, &share_pods_waiting, (double)waiting);
}

void figures_text(struct controller *controller, struct gs_buf *out)
{
	struct metrics *metrics = controller->metrics;

	metrics_set(metrics, &leader, leader_is(controller));
	metrics_set(metrics, &kubernetes_api_up, controller->kube_ok);
	metrics_set(metrics, &certificate_end_seconds, (double)keeper_end(controller));
	metrics_set(metrics, &events_dropped,
		    controller->kube ? (double)kube_events_dropped(controller->kube) : 0);
	metrics_text(metrics, out);
}
