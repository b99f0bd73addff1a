// SPDX-License-Identifier: Apache-2.0
/* What a spot pod may not be. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/capability.h"
#include "common/cleanup.h"
#include "controller/spot.h"
#include "gpushare/resources.h"

#define CRITICAL 2000000000

/* false and null are as good as absent; anything else of a wrong type is taken for true. */
static bool is_set(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return v && !json_is_false(v) && !json_is_null(v);
}

static int check_capabilities(const json_t *security, struct gs_err *err)
{
	const json_t *add = json_object_get(pod_object(security, "capabilities"), "add"), *v;
	size_t i;

	json_array_foreach(add, i, v) {
		const char *name = json_string_value(v);
		const char *refused;

		if (!name)
			return gs_err_set(err, EACCES, "a capability that is not a string");
		refused = strcasecmp(name, "ALL") == 0 || strcasecmp(name, "CAP_ALL") == 0 ?
				  "ALL" :
				  gs_capability_refused(name);
		if (refused)
			return gs_err_set(err, EACCES, "a spot container may not have %s", refused);
	}
	return 0;
}

static int check_container(const json_t *container, struct gs_err *err)
{
	const json_t *security = pod_object(container, "securityContext");
	int r;

	if (is_set(security, "privileged"))
		r = gs_err_set(err, EACCES, "a spot container may not be privileged");
	else
		r = check_capabilities(security, err);
	return r < 0 ? pod_container_prefix(container, err) : 0;
}

static int check_namespaces(const json_t *spec, struct gs_err *err)
{
	static const char *const keys[][2] = {
		{ "hostPID", "pid" },
		{ "hostNetwork", "network" },
		{ "hostIPC", "ipc" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(keys); i++)
		if (is_set(spec, keys[i][0]))
			return gs_err_set(err, EACCES,
					  "a spot pod may not use the host's %s namespace (%s)",
					  keys[i][1], keys[i][0]);
	return 0;
}

/*
 * Pods that come back at once wherever they are ended, or that a node can't be without: to end them
 * for a card's user would be in vain, or harm. Marks that a pod's author has forged are marks, too.
 * "Static Pods", "DaemonSet" and "Guaranteed Scheduling For Critical Add-On Pods", Kubernetes
 * documentation; the priority is that of scheduling.SystemCriticalPriority.
 */
static int check_kind(const json_t *pod, struct gs_err *err)
{
	const json_t *spec = pod_object(pod, "spec"), *owner;
	const char *class = json_string_value(json_object_get(spec, "priorityClassName"));
	size_t i;

	if (pod_annotation(pod, "kubernetes.io/config.mirror"))
		return gs_err_set(err, EACCES, "a static pod can't be a spot pod");
	json_array_foreach(json_object_get(pod_object(pod, "metadata"), "ownerReferences"), i,
			   owner) {
		const char *kind = json_string_value(json_object_get(owner, "kind"));

		if (kind && strcmp(kind, "DaemonSet") == 0)
			return gs_err_set(err, EACCES, "a DaemonSet's pod can't be a spot pod");
	}
	if (json_integer_value(json_object_get(spec, "priority")) >= CRITICAL ||
	    (class && strncmp(class, "system-", strlen("system-")) == 0))
		return gs_err_set(err, EACCES, "a critical pod can't be a spot pod");
	return 0;
}

int spot_check(const json_t *before, const json_t *pod, struct gs_err *err)
{
	int r = 0;

	if (!pod_asks(pod, GS_RESOURCE_SPOT))
		return 0;
	if (!before)
		r = check_namespaces(pod_object(pod, "spec"), err);
	/* an owner can be added later; what was there before us must be able to end */
	if (r == 0 && !(before && check_kind(before, NULL) < 0))
		r = check_kind(pod, err);
	for (int list = before ? POD_EPHEMERAL : 0; r == 0 && list < POD_LISTS; list++) {
		const json_t *old = before ? pod_containers(before, list) : NULL, *container;
		size_t i;

		/* The API keeps the order of ephemeral containers: new ones come last. */
		json_array_foreach(pod_containers(pod, list), i, container) {
			const json_t *was = json_array_get(old, i);

			if (r == 0 && !(was && json_equal(was, container)))
				r = check_container(container, err);
		}
	}
	return r;
}
