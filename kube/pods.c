// SPDX-License-Identifier: Apache-2.0
/*
 * The pods of this node. Which were told is kept, so that those that went while nobody watched can
 * be told gone.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "kube/impl.h"

struct known {
	char *namespace, *name, *uid;
	unsigned int list; /* the list that last told it */
};

struct kube_pods {
	struct kube *kube;
	unsigned int list;
	bool full; /* that some are left out was told */
	struct known *known;
	size_t n_known;
};

/* ---- What is known. */

static void forget(struct kube_pods *pods, size_t i)
{
	free(pods->known[i].namespace);
	free(pods->known[i].name);
	free(pods->known[i].uid);
	pods->known[i] = pods->known[--pods->n_known];
}

/* False: there are too many, and this is a new one. */
static bool note_known(struct kube_pods *pods, const struct kube_pod *pod, bool gone)
{
	size_t i = 0;

	while (i < pods->n_known && strcmp(pods->known[i].uid, pod->uid) != 0)
		i++;
	if (gone) {
		if (i < pods->n_known)
			forget(pods, i);
		return true;
	}
	if (i == pods->n_known && i >= pods->kube->tune.pods_max)
		return false;
	if (i == pods->n_known) {
		pods->known = gs_grow(pods->known, i, sizeof(*pods->known));
		pods->known[pods->n_known++] = (struct known){
			.namespace = gs_strdup(pod->namespace),
			.name = gs_strdup(pod->name),
			.uid = gs_strdup(pod->uid),
		};
	}
	pods->known[i].list = pods->list;
	return true;
}

static void tell(struct kube_pods *pods, const struct kube_pod *pod, bool gone)
{
	struct kube *kube = pods->kube;

	if (note_known(pods, pod, gone)) {
		if (kube->ops.pod)
			kube->ops.pod(pod, gone, kube->ops.arg);
	} else if (!pods->full) {
		pods->full = true;
		kube_note(kube, "more than %zu pods of this node: the others are left out",
			  kube->tune.pods_max);
	}
}

static void on_object(struct js object, bool gone, void *arg)
{
	struct kube_pods *pods = arg;
	struct kube_pod pod;
	struct gs_err err;

	/* One that can't be read must not keep the others from us. */
	if (kube_pod_read(object, &pod, &err) < 0) {
		kube_note(pods->kube, "a pod is left out: %s", err.msg);
		return;
	}
	tell(pods, &pod, gone);
	kube_pod_free(&pod);
}

/* ---- What comes. */

static void on_begin(void *arg)
{
	((struct kube_pods *)arg)->list++;
}

static void on_synced(void *arg)
{
	struct kube_pods *pods = arg;
	struct kube *kube = pods->kube;
	size_t i = 0;

	while (i < pods->n_known) {
		struct known *known = &pods->known[i];
		struct kube_pod pod = { .namespace = known->namespace,
					.name = known->name,
					.uid = known->uid };

		if (known->list == pods->list) {
			i++;
			continue;
		}
		if (kube->ops.pod)
			kube->ops.pod(&pod, true, kube->ops.arg);
		forget(pods, i);
	}
	if (kube->ops.synced)
		kube->ops.synced(kube->ops.arg);
}

void kube_watch_pods(struct kube *kube)
{
	cleanup_free char *query = NULL;
	struct kube_pods *pods;
	struct kube_watch_ops ops = { on_object, on_begin, on_synced, NULL };

	if (kube->pods || kube->dying)
		return;
	pods = gs_calloc(1, sizeof(*pods));
	pods->kube = kube;
	kube->pods = ops.arg = pods;
	/* a node's name has nothing to escape, "=" has */
	query = gs_asprintf("fieldSelector=spec.nodeName%%3D%s", kube->config.node);
	kube_watch(kube, "/api/v1/pods", query, "pod", kube->tune.page, &ops);
}

void kube_pods_free(struct kube *kube)
{
	struct kube_pods *pods = gs_steal(kube->pods);

	if (!pods)
		return;
	while (pods->n_known > 0)
		forget(pods, pods->n_known - 1);
	free(pods->known);
	free(pods);
}
