// SPDX-License-Identifier: Apache-2.0
/* cpu and memory become gpushare/vcpu and gpushare/vmem. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/quantity.h"
#include "common/xalloc.h"
#include "controller/oversold.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

#define MIB ((int64_t)1024 * 1024)
/* What the API server takes as the part of a key behind its '/'. */
#define KEY_NAME_MAX 63

/* What is sold, and under what names. */
struct ware {
	const char *resource, *sold, *key, *suffix;
	int (*parse)(const char *text, int64_t *ret, struct gs_err *err);
	int64_t unit;
};

static const struct ware wares[] = {
	{ "cpu", GS_RESOURCE_VCPU, GS_KEY_VCPU, "m", gs_quantity_milli, 1 },
	{ "memory", GS_RESOURCE_VMEM, GS_KEY_VMEM, "Mi", gs_quantity_units, MIB },
};

/* What one container has: in the pod as it came, and in the pod as it will be. */
struct portion {
	int64_t before, after;
};

bool oversold_is(const struct admission_policy *policy, const json_t *pod)
{
	const char *class =
		json_string_value(json_object_get(pod_object(pod, "spec"), "priorityClassName"));

	return (class && gs_strv_has(&policy->data_classes, class)) ||
	       pod_asks(pod, GS_RESOURCE_SPOT) || pod_asks(pod, GS_RESOURCE_VCPU) ||
	       pod_asks(pod, GS_RESOURCE_VMEM);
}

static int read_portion(const json_t *container, const struct ware *ware, struct portion *ret,
			struct gs_err *err)
{
	const char *text = pod_resource(container, "requests", ware->resource);
	int64_t asked = 0;
	int r = pod_amount(container, ware->sold, &ret->before, err);

	if (r < 0)
		return r;
	if (!text)
		text = pod_resource(container, "limits", ware->resource);
	if (text) {
		r = ware->parse(text, &asked, err);
		if (r < 0)
			return gs_err_prefix(err, "%s", ware->resource);
		asked = asked / ware->unit + (asked % ware->unit != 0);
		if (asked > POD_AMOUNT_MAX)
			return gs_err_set(err, ERANGE, "%s: more than any node has",
					  ware->resource);
	}
	ret->after = asked > ret->before ? asked : ret->before;
	return 0;
}

/* An init container that ends before the others start may do with what the largest has. */
static bool runs_on(const json_t *container, enum pod_list list)
{
	const char *policy = json_string_value(json_object_get(container, "restartPolicy"));

	return list == POD_CONTAINERS || (policy && strcmp(policy, "Always") == 0);
}

static char *text_of(const struct ware *ware, int64_t amount)
{
	return gs_asprintf("%" PRId64 "%s", amount, ware->suffix);
}

/*
 * Writes an annotation where there is something to say. What is there already must be what we wrote
 * (amount.before, when another webhook changed the pod after us) or would write.
 */
static int annotate(json_t *pod, const struct ware *ware, const char *key, struct portion amount,
		    bool trusted, struct gs_err *err)
{
	cleanup_free char *after = text_of(ware, amount.after);
	cleanup_free char *before = text_of(ware, amount.before);
	const char *old = pod_annotation(pod, key);

	if (old && trusted)
		return 0;
	if (old && (amount.after == 0 || strcmp(old, after) != 0) &&
	    (amount.before == 0 || strcmp(old, before) != 0)) {
		cleanup_free char *quoted = gs_quote(key, strlen(key));

		return gs_err_set(err, EACCES, "annotation %s: only the platform may write it",
				  quoted);
	}
	if (amount.after)
		pod_annotate(pod, key, after);
	return 0;
}

static int annotate_container(json_t *pod, const struct ware *ware, const json_t *container,
			      struct portion own, struct portion most, bool trusted,
			      struct gs_err *err)
{
	const char *name = json_string_value(json_object_get(container, "name"));
	cleanup_free char *key = gs_asprintf("%s.%s", ware->key, name ? name : "");

	if ((own.after == 0 || own.after == most.after) && !pod_annotation(pod, key))
		return 0;
	if (strlen(key) - strlen(GS_ANNOTATION_PREFIX) > KEY_NAME_MAX)
		return gs_err_set(err, EINVAL,
				  "its name is longer than %zu characters, and its %s not that of "
				  "the pod's largest container",
				  KEY_NAME_MAX - strlen(ware->key) - 1 +
					  strlen(GS_ANNOTATION_PREFIX),
				  ware->resource);
	return annotate(pod, ware, key, own, trusted, err);
}

/* Containers and init containers in one row; ephemeral ones have no resources. */
struct walk {
	enum pod_list list;
	size_t i;
};

static json_t *next(const json_t *pod, struct walk *walk)
{
	for (; walk->list < POD_EPHEMERAL; walk->list++, walk->i = 0) {
		json_t *container = json_array_get(pod_containers(pod, walk->list), walk->i);

		if (container) {
			walk->i++;
			return container;
		}
	}
	return NULL;
}

static int sell(json_t *pod, const struct ware *ware, bool trusted, struct gs_err *err)
{
	cleanup_free struct portion *portions = NULL;
	struct portion most = { 0 };
	json_t *container;
	size_t n = 0, i = 0;
	int r;

	for (struct walk walk = { 0 }; (container = next(pod, &walk));) {
		struct portion *p;

		portions = gs_grow(portions, n, sizeof(*portions));
		p = &portions[n++];
		r = read_portion(container, ware, p, err);
		if (r == 0 && p->after == 0 && runs_on(container, walk.list))
			r = gs_err_set(err, EINVAL,
				       "it must say how much %s it requests: what is over-sold "
				       "is limited to that",
				       ware->resource);
		if (r < 0)
			return pod_container_prefix(container, err);
		if (p->before > most.before)
			most.before = p->before;
		if (p->after > most.after)
			most.after = p->after;
	}
	r = annotate(pod, ware, ware->key, most, trusted, err);
	for (struct walk walk = { 0 }; r == 0 && i < n && (container = next(pod, &walk));) {
		struct portion own = portions[i++];

		r = annotate_container(pod, ware, container, own, most, trusted, err);
		if (r < 0)
			return pod_container_prefix(container, err);
		pod_drop(container, ware->resource);
		if (own.after)
			pod_ask(container, ware->sold, own.after);
	}
	return r;
}

bool oversold_writes(const json_t *pod, const char *key)
{
	const json_t *container;

	for (size_t i = 0; i < GS_ARRAY_SIZE(wares); i++) {
		size_t len = strlen(wares[i].key);

		if (strcmp(key, wares[i].key) == 0)
			return true;
		if (strncmp(key, wares[i].key, len) != 0 || key[len] != '.')
			continue;
		for (struct walk walk = { 0 }; (container = next(pod, &walk));) {
			const char *name = json_string_value(json_object_get(container, "name"));

			if (name && strcmp(name, key + len + 1) == 0)
				return true;
		}
	}
	return false;
}

/* @container: or a pod's spec */
static bool has(const json_t *container, const struct ware *ware)
{
	return pod_resource(container, "requests", ware->resource) ||
	       pod_resource(container, "limits", ware->resource);
}

/* Has the pod as a whole cpu or memory, and had it none in @before (NULL: it is new)? */
static int check_whole(const json_t *before, const json_t *pod, const struct ware *ware,
		       struct gs_err *err)
{
	if (!has(pod_object(pod, "spec"), ware) || has(pod_object(before, "spec"), ware))
		return 0;
	return gs_err_set(err, EINVAL,
			  "spec.resources: %s of the pod as a whole can't be over-sold; write it "
			  "at the containers",
			  ware->resource);
}

int oversold_apply(json_t *pod, bool trusted, struct gs_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < GS_ARRAY_SIZE(wares); i++) {
		r = check_whole(NULL, pod, &wares[i], err);
		if (r == 0)
			r = sell(pod, &wares[i], trusted, err);
	}
	return r;
}

int oversold_update(const json_t *before, const json_t *now, struct gs_err *err)
{
	struct walk old = { 0 }, new = { 0 };
	const json_t *container;
	int r;

	for (size_t i = 0; i < GS_ARRAY_SIZE(wares); i++) {
		r = check_whole(before, now, &wares[i], err);
		if (r < 0)
			return r;
	}
	while ((container = next(now, &new))) {
		const json_t *was = next(before, &old);

		for (size_t i = 0; i < GS_ARRAY_SIZE(wares); i++) {
			if (!has(container, &wares[i]) || has(was, &wares[i]))
				continue;
			(void)gs_err_set(err, EACCES,
					 "%s of an over-sold container can't be given back",
					 wares[i].resource);
			return pod_container_prefix(container, err);
		}
	}
	return 0;
}
