// SPDX-License-Identifier: Apache-2.0
/* What we need of a Pod object, and no more. Kubernetes API, core/v1. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/impl.h"
#include "common/cleanup.h"
#include "common/quantity.h"
#include "common/xalloc.h"
#include "gpushare/resources.h"

#define OURS "gpushare.k8s.io/"
/* More than any node has: sums of these can't overflow. */
#define REQUEST_MAX 1000000000

void kube_pod_free(struct kube_pod *pod)
{
	free(pod->namespace);
	free(pod->name);
	free(pod->uid);
	free(pod->phase);
	free(pod->priority_class);
	free(pod->created);
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

/*
 * ---- What it asks for. Kubernetes documentation, "Resource Management for Pods and Containers",
 * and "Sidecar Containers" for what init containers count.
 */

/* @container requests so much of @resource; what is no number is none. */
static uint64_t requested(struct js container, const char *resource)
{
	cleanup_free char *text = NULL;
	struct js requests, v;
	int64_t n;

	if (js_path(container, &requests, NULL, "resources", "requests", NULL) < 0 ||
	    js_map_member(requests, resource, &v, NULL) < 0)
		return 0;
	text = js_string(v);
	if (!text || gs_quantity_units(text, &n, NULL) < 0)
		return 0;
	return n < REQUEST_MAX ? (uint64_t)n : REQUEST_MAX;
}

static bool names(struct js container, const char *resource)
{
	static const char *const where[] = { "requests", "limits" };
	struct js v;

	for (size_t i = 0; i < GS_ARRAY_SIZE(where); i++)
		if (js_path(container, &v, NULL, "resources", where[i], resource, NULL) < 0 ||
		    !js_absent(v))
			return true;
	return false;
}

/* What the runtime itself takes, in the pod's cgroup: "Pod Overhead", Kubernetes documentation. */
static bool has_overhead(struct js spec, const char *resource)
{
	struct js v;

	return js_path(spec, &v, NULL, "overhead", resource, NULL) < 0 || !js_absent(v);
}

/* An init container that goes on beside the others is one of them. */
static bool goes_on(struct js container)
{
	struct js v;

	return js_member(container, "restartPolicy", &v, NULL) == 0 && js_string_is(v, "Always");
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void read_requests(struct js object, struct kube_pod *pod)
{
	static const char *const kinds[] = { "initContainers", "containers" };
	uint64_t init_vcpu = 0, init_vmem = 0;
	struct js spec, list, container;

	if (js_member(object, "spec", &spec, NULL) < 0)
		return;
	/* the pod as a whole */
	pod->plain_cpu = names(spec, "cpu") || has_overhead(spec, "cpu");
	pod->plain_memory = names(spec, "memory") || has_overhead(spec, "memory");
	for (size_t i = 0; i < GS_ARRAY_SIZE(kinds); i++) {
		struct js_iter it;

		if (js_member(spec, kinds[i], &list, NULL) < 0 || !js_is(list, JS_ARRAY))
			continue;
		it = js_iter(list);
		while (js_next_element(&it, &container)) {
			uint64_t vcpu = requested(container, GS_RESOURCE_VCPU);
			uint64_t vmem = requested(container, GS_RESOURCE_VMEM);

			pod->plain_cpu |= names(container, "cpu");
			pod->plain_memory |= names(container, "memory");
			if (i == 1 || goes_on(container)) {
				pod->vcpu += vcpu;
				pod->vmem += vmem;
			} else {
				/* beside those before it that go on */
				init_vcpu = larger(init_vcpu, pod->vcpu + vcpu);
				init_vmem = larger(init_vmem, pod->vmem + vmem);
				pod->init_share |= requested(container, GS_RESOURCE_SHARE) > 0;
				pod->init_spot |= requested(container, GS_RESOURCE_SPOT) > 0;
			}
		}
	}
	/* init containers run one after the other, before the rest */
	pod->vcpu = larger(pod->vcpu, init_vcpu);
	pod->vmem = larger(pod->vmem, init_vmem);
}

/* As Kubernetes has it: without a class 0. */
static int64_t priority_of(struct js object)
{
	struct js v;
	int64_t n = 0;

	if (js_path(object, &v, NULL, "spec", "priority", NULL) < 0 || !js_int64(v, &n))
		return 0;
	return n;
}

int kube_pod_read(struct js object, struct kube_pod *ret, struct gs_err *err)
{
	static const char *const keys[] = {
		"namespace", "name", "uid", "annotations", "deletionTimestamp", "creationTimestamp"
	};
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
	pod.created = js_string(v[5]);
	pod.phase = string_at(object, "status", "phase");
	pod.priority_class = string_at(object, "spec", "priorityClassName");
	pod.priority = priority_of(object);
	read_requests(object, &pod);
	*ret = pod;
	return 0;
}
