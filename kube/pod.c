// SPDX-License-Identifier: Apache-2.0
/* What we need of a Pod object, and no more. Kubernetes API, core/v1. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/impl.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

#define OURS "gpushare.k8s.io/"

void kube_pod_free(struct kube_pod *pod)
{
	free(pod->namespace);
	free(pod->name);
	free(pod->uid);
	free(pod->phase);
	free(pod->priority_class);
	for (size_t i = 0; i < pod->n_annotations; i++) {
		free(pod->annotations[i].key);
		free(pod->annotations[i].value);
	}
	free(pod->annotations);
	*pod = (struct kube_pod){ 0 };
}

static void read_annotations(struct js map, struct kube_pod *pod)
{
	struct js_iter it = js_iter(map);
	struct js key, value;

	if (!js_is(map, JS_OBJECT))
		return;
	while (js_next_member(&it, &key, &value)) {
		cleanup_free char *k = js_string(key);
		char *v;

		if (!k)
			continue;
		if (strncmp(k, OURS, strlen(OURS)) != 0)
			continue;
		v = js_string(value);
		if (!v)
			continue;
		pod->annotations =
			gs_grow(pod->annotations, pod->n_annotations, sizeof(*pod->annotations));
		pod->annotations[pod->n_annotations++] =
			(struct kube_annotation){ .key = gs_steal(k), .value = v };
	}
}

/* The string at @parent.@key; NULL: none. */
static char *string_at(struct js object, const char *parent, const char *key)
{
	struct js v;

	return js_path(object, &v, NULL, parent, key, NULL) == 0 ? js_string(v) : NULL;
}

int kube_pod_read(struct js object, struct kube_pod *ret, struct gs_err *err)
{
	static const char *const keys[] = { "namespace", "name", "uid", "annotations",
					    "deletionTimestamp" };
	struct js meta, v[GS_ARRAY_SIZE(keys)];
	struct kube_pod pod = { 0 };
	int r;

	r = js_member(object, "metadata", &meta, err);
	if (r == 0 && !js_is(meta, JS_OBJECT))
		r = gs_err_set(err, EINVAL, "no metadata");
	if (r == 0)
		r = js_members(meta, keys, GS_ARRAY_SIZE(keys), v, err);
	if (r < 0)
		return r;
	pod.namespace = js_string(v[0]);
	pod.name = js_string(v[1]);
	pod.uid = js_string(v[2]);
	if (!pod.namespace || !pod.name || !pod.uid) {
		r = gs_err_set(err, EINVAL, "'%s': no namespace, name or UID",
			       pod.name ? pod.name : "");
		kube_pod_free(&pod);
		return r;
	}
	read_annotations(v[3], &pod);
	pod.deleting = !js_absent(v[4]);
	pod.phase = string_at(object, "status", "phase");
	pod.priority_class = string_at(object, "spec", "priorityClassName");
	*ret = pod;
	return 0;
}
