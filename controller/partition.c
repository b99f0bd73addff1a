// SPDX-License-Identifier: Apache-2.0
/* The partition as node affinity. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "controller/partition.h"
#include "controller/pod.h"
#include "gpushare/annotations.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define TERMS "nodeSelectorTerms"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* As the API server checks values of labels; an empty one would be that of nodes without it. */
static bool is_label_value(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > 63 || !is_alnum(s[0]) || !is_alnum(s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alnum(s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

/* The object @key of @object, made where it is missing. */
static json_t *make(json_t *object, const char *key)
{
	json_t *v = pod_object(object, key);

	if (!v) {
		v = json_object();
		(void)json_object_set_new(object, key, v);
	}
	return v;
}

static bool has(const json_t *list, const json_t *element)
{
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		if (json_equal(v, element))
			return true;
	}
	return false;
}

/* A term without any expression matches no node, and has to go on doing so. */
static bool is_empty(const json_t *term)
{
	return json_array_size(json_object_get(term, "matchExpressions")) == 0 &&
	       json_array_size(json_object_get(term, "matchFields")) == 0;
}

static int merge(json_t *terms, json_t *wanted, struct gs_err *err)
{
	json_t *term;
	size_t i;

	json_array_foreach(terms, i, term) {
		json_t *list = json_object_get(term, "matchExpressions");

		if (!json_is_object(term))
			return gs_err_set(err, EINVAL, TERMS " has an element that is no object");
		if (is_empty(term))
			continue;
		if (!json_is_array(list)) {
			list = json_array();
			(void)json_object_set_new(term, "matchExpressions", list);
		}
		if (!has(list, wanted))
			(void)json_array_append(list, wanted);
	}
	return 0;
}

int partition_apply(const struct admission_policy *policy, json_t *pod, struct gs_err *err)
{
	const char *partition = pod_annotation(pod, GS_KEY_PARTITION);
	cleanup_json json_t *wanted = NULL;
	json_t *at = pod_object(pod, "spec"), *terms;

	if (!partition)
		return 0;
	if (!is_label_value(partition)) {
		cleanup_free char *quoted = gs_quote(partition, strlen(partition));

		return gs_err_set(err, EINVAL,
				  "annotation " GS_KEY_PARTITION
				  ": %s is no value of a node's label",
				  quoted);
	}
	if (!at)
		return gs_err_set(err, EINVAL, "the pod has no spec");
	wanted = json_pack("{s:s, s:s, s:[s]}", "key", policy->partition_label, "operator", "In",
			   "values", partition);
	at = make(make(at, "affinity"), "nodeAffinity");
	terms = json_object_get(pod_object(at, REQUIRED), TERMS);
	if (pod_object(at, REQUIRED))
		return merge(terms, wanted, err); /* no term at all: the API server refuses it */
	return json_object_set_new(at, REQUIRED,
				   json_pack("{s:[{s:[O]}]}", TERMS, "matchExpressions", wanted));
}
