// SPDX-License-Identifier: Apache-2.0
/* Reads and changes a pod. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/quantity.h"
#include "common/xalloc.h"
#include "controller/pod.h"

static const char *const sides[] = { "limits", "requests" };

const char *pod_list_name(enum pod_list list)
{
	static const char *const names[POD_LISTS] = {
		[POD_CONTAINERS] = "containers",
		[POD_INIT] = "initContainers",
		[POD_EPHEMERAL] = "ephemeralContainers",
	};

	return names[list];
}

json_t *pod_object(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_object(v) ? v : NULL;
}

/* @key of @object is of @type, or not there. */
static int check(const json_t *object, const char *where, const char *key, json_type type,
		 struct gs_err *err)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "a list",
		[JSON_STRING] = "a string",
	};
	const json_t *v = json_object_get(object, key);

	if (!v || json_is_null(v) || json_typeof(v) == type)
		return 0;
	return gs_err_set(err, EINVAL, "%s.%s is not %s", where, key, names[type]);
}

static int check_strings(const json_t *object, const char *where, struct gs_err *err)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)object, key, v) {
		if (!json_is_string(v)) {
			cleanup_free char *quoted = gs_quote(key, strlen(key));

			return gs_err_set(err, EINVAL, "%s: %s is not a string", where, quoted);
		}
	}
	return 0;
}

static int check_resources(const json_t *container, const char *where, struct gs_err *err)
{
	const json_t *resources = pod_object(container, "resources");
	int r = check(container, where, "resources", JSON_OBJECT, err);

	for (size_t i = 0; r == 0 && i < GS_ARRAY_SIZE(sides); i++) {
		r = check(resources, "resources", sides[i], JSON_OBJECT, err);
		if (r == 0)
			r = check_strings(pod_object(resources, sides[i]), sides[i], err);
	}
	return r;
}

static int check_container(const json_t *container, const char *list, struct gs_err *err)
{
	const json_t *security = pod_object(container, "securityContext");
	const json_t *capabilities = pod_object(security, "capabilities");
	int r;

	if (!json_is_object(container))
		return gs_err_set(err, EINVAL, "spec.%s has an element that is not an object",
				  list);
	r = check(container, list, "name", JSON_STRING, err);
	if (r == 0)
		r = check(container, list, "restartPolicy", JSON_STRING, err);
	if (r == 0)
		r = check_resources(container, list, err);
	if (r == 0)
		r = check(container, list, "securityContext", JSON_OBJECT, err);
	if (r == 0)
		r = check(security, "securityContext", "capabilities", JSON_OBJECT, err);
	if (r == 0)
		r = check(capabilities, "capabilities", "add", JSON_ARRAY, err);
	return r;
}

static int check_affinity(const json_t *spec, struct gs_err *err)
{
	const json_t *affinity = pod_object(spec, "affinity");
	const json_t *node = pod_object(affinity, "nodeAffinity");
	const char *required = "requiredDuringSchedulingIgnoredDuringExecution";
	int r = check(spec, "spec", "affinity", JSON_OBJECT, err);

	if (r == 0)
		r = check(affinity, "affinity", "nodeAffinity", JSON_OBJECT, err);
	if (r == 0)
		r = check(node, "nodeAffinity", required, JSON_OBJECT, err);
	if (r == 0)
		r = check(pod_object(node, required), required, "nodeSelectorTerms", JSON_ARRAY,
			  err);
	return r;
}

int pod_check(const json_t *pod, struct gs_err *err)
{
	const json_t *meta = pod_object(pod, "metadata");
	const json_t *spec = pod_object(pod, "spec");
	int r;

	if (!json_is_object(pod))
		return gs_err_set(err, EINVAL, "the object is missing or not an object");
	r = check(pod, "object", "metadata", JSON_OBJECT, err);
	if (r == 0)
		r = check(meta, "metadata", "annotations", JSON_OBJECT, err);
	if (r == 0)
		r = check_strings(pod_object(meta, "annotations"), "metadata.annotations", err);
	if (r == 0)
		r = check(pod, "object", "spec", JSON_OBJECT, err);
	if (r == 0)
		r = check(spec, "spec", "priorityClassName", JSON_STRING, err);
	if (r == 0)
		r = check_resources(spec, "spec", err);
	for (int list = 0; r == 0 && list < POD_LISTS; list++) {
		const json_t *container;
		size_t i;

		r = check(spec, "spec", pod_list_name(list), JSON_ARRAY, err);
		json_array_foreach(json_object_get(spec, pod_list_name(list)), i, container) {
			if (r == 0)
				r = check_container(container, pod_list_name(list), err);
		}
	}
	return r < 0 ? r : check_affinity(spec, err);
}

json_t *pod_annotations(const json_t *object)
{
	return pod_object(pod_object(object, "metadata"), "annotations");
}

const char *pod_annotation(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(pod_annotations(object), key));
}

/* The object @key of @object, made where it is missing. */
static json_t *make_object(json_t *object, const char *key)
{
	json_t *v = pod_object(object, key);

	if (!v) {
		v = json_object();
		(void)json_object_set_new(object, key, v);
	}
	return v;
}

void pod_annotate(json_t *pod, const char *key, const char *value)
{
	(void)json_object_set_new(make_object(make_object(pod, "metadata"), "annotations"), key,
				  json_string(value));
}

json_t *pod_containers(const json_t *pod, enum pod_list list)
{
	json_t *v = json_object_get(pod_object(pod, "spec"), pod_list_name(list));

	return json_is_array(v) ? v : NULL;
}

char *pod_container_name(const json_t *container)
{
	const char *name = json_string_value(json_object_get(container, "name"));

	return name ? gs_quote(name, strlen(name)) : gs_strdup("without a name");
}

int pod_container_prefix(const json_t *container, struct gs_err *err)
{
	cleanup_free char *name = pod_container_name(container);

	return gs_err_prefix(err, "container %s", name);
}

const char *pod_resource(const json_t *container, const char *which, const char *resource)
{
	return json_string_value(
		json_object_get(pod_object(pod_object(container, "resources"), which), resource));
}

bool pod_asks(const json_t *pod, const char *resource)
{
	for (int list = 0; list < POD_LISTS; list++) {
		const json_t *container;
		size_t i;

		json_array_foreach(pod_containers(pod, list), i, container) {
			for (size_t side = 0; side < GS_ARRAY_SIZE(sides); side++)
				if (pod_resource(container, sides[side], resource))
					return true;
		}
	}
	return false;
}

int pod_amount(const json_t *container, const char *resource, int64_t *ret, struct gs_err *err)
{
	int64_t amount[2];
	bool there = false;
	int r;

	for (size_t i = 0; i < GS_ARRAY_SIZE(sides); i++) {
		const char *text = pod_resource(container, sides[i], resource);
		cleanup_free char *quoted = gs_quote(resource, strlen(resource));

		amount[i] = -1;
		if (!text)
			continue;
		there = true;
		r = gs_quantity_milli(text, &amount[i], err);
		if (r < 0)
			return gs_err_prefix(err, "%s", quoted);
		if (amount[i] % 1000 != 0)
			return gs_err_set(err, EINVAL, "%s: it must be a whole number", quoted);
		amount[i] /= 1000;
		if (amount[i] > POD_AMOUNT_MAX)
			return gs_err_set(err, ERANGE, "%s: it is more than %" PRId64, quoted,
					  POD_AMOUNT_MAX);
	}
	if (amount[0] >= 0 && amount[1] >= 0 && amount[0] != amount[1]) {
		cleanup_free char *quoted = gs_quote(resource, strlen(resource));

		return gs_err_set(err, EINVAL, "%s: requests and limits must be the same", quoted);
	}
	*ret = !there ? 0 : amount[0] >= 0 ? amount[0] : amount[1];
	return 0;
}

void pod_drop(json_t *container, const char *resource)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(sides); i++)
		(void)json_object_del(pod_object(pod_object(container, "resources"), sides[i]),
				      resource);
}

void pod_ask(json_t *container, const char *resource, int64_t amount)
{
	json_t *resources = make_object(container, "resources");

	for (size_t i = 0; i < GS_ARRAY_SIZE(sides); i++)
		(void)json_object_set_new(make_object(resources, sides[i]), resource,
					  json_sprintf("%" JSON_INTEGER_FORMAT,
						       (json_int_t)amount));
}
