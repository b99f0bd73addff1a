// SPDX-License-Identifier: Apache-2.0
/* Removes shadow pods. */
#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "controller/figures.h"
#include "controller/leader.h"
#include "controller/shadow.h"
#include "controller/shadow_make.h"
#include "controller/shadow_remove.h"

#define PAGE 100
/* At a time; whoever waits is planned for again. */
#define REMOVALS_MAX 8
/* Until the watch may have told what is new, and after a refusal. */
#define CHANGED_MS 3000
#define REFUSED_MS 60000

/* First its node is looked at, where it has one; then it is deleted. */
struct removal {
	struct removal *next;
	struct controller *controller;
	struct kube_watch *list; /* of the pods of its node */
	struct kube_ask *ask;
	char *path, *uid;
	char *version; /* it goes only as it was then; NULL: however it is */
	bool used; /* as the list says so far */
};

static void removal_free(struct removal *removal)
{
	struct removal **at = &removal->controller->removals;

	while (*at != removal)
		at = &(*at)->next;
	*at = removal->next;
	free(removal->path);
	free(removal->uid);
	free(removal->version);
	free(removal);
}

static void stays(struct removal *removal, unsigned int ms)
{
	shadows_stays(removal->controller, removal->uid, removal->used, ms);
	removal_free(removal);
}

static void on_deleted(const struct kube_reply *reply, void *arg)
{
	struct removal *removal = arg;

	if (reply->r == -EEXIST) { /* it is another one now, or not as it was */
		stays(removal, CHANGED_MS);
	} else if (reply->r < 0 && reply->r != -ENOENT) {
		gs_log_fields(GS_LOG_WARN, "a shadow pod stays", "why", reply->err->msg, NULL);
		stays(removal, REFUSED_MS);
	} else {
		figures_shadow(removal->controller, "deleted");
		removal_free(removal);
	}
}

static void delete (struct removal *removal)
{
	cleanup_buf struct gs_buf options = { 0 };

	kube_delete_options(&options, removal->uid, removal->version);
	removal->ask = kube_ask(removal->controller->kube, "DELETE", removal->path,
				"application/json", options.data, on_deleted, removal);
}

/* ---- A look at its node. */

static void on_begin(void *arg)
{
	((struct removal *)arg)->used = false;
}

static void on_pod(struct js object, bool gone, void *arg)
{
	struct removal *removal = arg;
	bool shadow = false;
	struct shadow_pod *pod = shadow_read(object, &removal->controller->settings, &shadow);

	(void)gone;
	if (pod && !shadow && !pod->over)
		removal->used = true;
	shadow_pod_free(pod);
}

static void on_listed(void *arg)
{
	struct removal *removal = arg;

	removal->list = NULL;
	if (removal->used)
		gs_log_fields(GS_LOG_INFO, "a shadow pod stays", "why",
			      "somebody shares its card by now", NULL);
	if (removal->used || !leader_is(removal->controller))
		stays(removal, CHANGED_MS);
	else
		delete (removal);
}

static void look(struct removal *removal, const char *node)
{
	const struct kube_watch_ops ops = { on_pod, on_begin, on_listed, removal };
	cleanup_free char *query = gs_asprintf("fieldSelector=spec.nodeName%%3D%s", node);

	removal->list =
		kube_list(removal->controller->kube, "/api/v1/pods", query, "pod", PAGE, &ops);
}

/* ---- For others. */

bool shadow_remove(struct controller *controller, const struct shadow_pod *shadow, const char *why)
{
	struct removal *removal;
	unsigned int n = 0;

	for (removal = controller->removals; removal; removal = removal->next)
		n++;
	if (n >= REMOVALS_MAX)
		return false;
	gs_log_fields(GS_LOG_INFO, "removing a shadow pod", "pod", shadow->name, "why", why, NULL);
	removal = gs_calloc(1, sizeof(*removal));
	removal->controller = controller;
	removal->path =
		gs_asprintf("/api/v1/namespaces/%s/pods/%s", shadow->namespace, shadow->name);
	removal->uid = gs_strdup(shadow->uid);
	removal->next = controller->removals;
	controller->removals = removal;
	if (*shadow->node && !shadow->over) {
		look(removal, shadow->node);
		return true;
	}
	/* By now it may have a node, and somebody there who uses it. */
	if (!shadow->over)
		removal->version = gs_strdup(shadow->version);
	delete (removal);
	return true;
}

void shadow_remove_stop(struct controller *controller)
{
	while (controller->removals) {
		kube_list_cancel(controller->removals->list);
		kube_ask_cancel(controller->removals->ask);
		stays(controller->removals, 0);
	}
}
