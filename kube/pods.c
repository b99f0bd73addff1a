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
	bool over; /* it has ended */
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

bool kube_pod_over(const struct kube_pod *pod)
{
	return pod->phase &&
	       (strcmp(pod->phase, "Succeeded") == 0 || strcmp(pod->phase, "Failed") == 0);
}

static void tell_gone(const struct kube_pods *pods, const struct known *known)
{
	const struct kube *kube = pods->kube;
	const struct kube_pod pod = { .namespace = known->namespace,
				      .name = known->name,
				      .uid = known->uid };

	if (kube->ops.pod)
		kube->ops.pod(&pod, true, kube->ops.arg);
}

/*
 * One that has ended makes room for one that has not: a kubelet keeps what it refuses by the
 * thousand, and whoever may make pods names a node.
 */
static bool make_room(struct kube_pods *pods)
{
	size_t i = 0;

	while (i < pods->n_known && !pods->known[i].over)
		i++;
	if (i == pods->n_known)
		return false;
	tell_gone(pods, &pods->known[i]);
	forget(pods, i);
	return true;
}

static void tell_full(struct kube_pods *pods)
{
	if (!pods->full)
		kube_note(pods->kube, "more than %zu pods of this node: the others are left out",
			  pods->kube->tune.pods_max);
	pods->full = true;
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
	if (i == pods->n_known && i >= pods->kube->tune.pods_max) {
		tell_full(pods);
		if (kube_pod_over(pod) || !make_room(pods))
			return false;
		i = pods->n_known;
	}
	if (i == pods->n_known) {
		pods->known = gs_grow(pods->known, i, sizeof(*pods->known));
		pods->known[pods->n_known++] = (struct known){
			.namespace = gs_strdup(pod->namespace),
			.name = gs_strdup(pod->name),
			.uid = gs_strdup(pod->uid),
		};
	}
	pods->known[i].list = pods->list;
	pods->known[i].over = kube_pod_over(pod);
	return true;
}

static void tell(struct kube_pods *pods, const struct kube_pod *pod, bool gone)
{
	const struct kube *kube = pods->kube;

	if (note_known(pods, pod, gone) && kube->ops.pod)
		kube->ops.pod(pod, gone, kube->ops.arg);
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
		if (pods->known[i].list == pods->list) {
			i++;
			continue;
		}
		tell_gone(pods, &pods->known[i]);
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
