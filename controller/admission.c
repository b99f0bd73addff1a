// SPDX-License-Identifier: Apache-2.0
/* From an AdmissionReview to its answer. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/glob.h"
#include "common/identity.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "controller/admission.h"
#include "controller/keys.h"
#include "controller/order.h"
#include "controller/oversold.h"
#include "controller/partition.h"
#include "controller/patch.h"
#include "controller/pod.h"
#include "controller/share.h"
#include "controller/spot.h"
#include "controller/warn.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

/* A uid is 36 characters; this much is echoed. */
#define UID_MAX 128
/* More values than a pod has: each costs our memory up to fifty times what it is as text. */
#define VALUES_MAX 200000
/* More containers than a pod of ours may have: some checks compare each with each annotation. */
#define CONTAINERS_MAX 512

/* The question, taken apart; borrowed from its JSON. */
struct question {
	const char *uid, *operation, *kind;
	const json_t *object, *before; /* what is to be; what was, on an update */
	bool trusted; /* may whoever asks write what only the platform may? */
};

void admission_policy_init(struct admission_policy *policy)
{
	*policy = (struct admission_policy){ 0 };
	policy->partition_label = gs_strdup(GS_KEY_PARTITION);
}

void admission_policy_cards(struct admission_policy *policy, const struct gs_catalogue *cat)
{
	for (size_t i = 0; i < cat->n; i++) {
		gs_strv_merge(&policy->cards, &cat->v[i].resources);
		gs_strv_merge(&policy->slices, &cat->v[i].slices);
	}
}

void admission_policy_free(struct admission_policy *policy)
{
	gs_strv_free(&policy->cards);
	gs_strv_free(&policy->slices);
	gs_strv_free(&policy->platform_users);
	gs_strv_free(&policy->data_classes);
	free(policy->partition_label);
	*policy = (struct admission_policy){ 0 };
}

static const char *string_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static int read_question(const struct admission_policy *policy, const json_t *review,
			 struct question *ret, struct gs_err *err)
{
	const char *version = string_at(review, "apiVersion"), *user;
	const json_t *request = pod_object(review, "request");
	struct question q = { 0 };

	if (!version || strcmp(version, "admission.k8s.io/v1") != 0)
		return gs_err_set(err, EINVAL, "apiVersion is not admission.k8s.io/v1");
	q.uid = string_at(request, "uid");
	q.operation = string_at(request, "operation");
	q.kind = string_at(pod_object(request, "kind"), "kind");
	if (!q.uid || !q.uid[0] || strlen(q.uid) > UID_MAX)
		return gs_err_set(err, EINVAL, "request.uid is missing or malformed");
	if (!q.operation || !q.kind)
		return gs_err_set(err, EINVAL, "request.operation or request.kind is missing");
	q.object = json_object_get(request, "object");
	if (strcmp(q.operation, "UPDATE") == 0)
		q.before = json_object_get(request, "oldObject");
	user = string_at(pod_object(request, "userInfo"), "username");
	q.trusted = user && user[0] && gs_strv_has(&policy->platform_users, user);
	*ret = q;
	return 0;
}

static bool has_our_key(const json_t *object)
{
	const char *key;
	json_t *v;

	json_object_foreach(pod_annotations(object), key, v) {
		if (strncmp(key, GS_ANNOTATION_PREFIX, strlen(GS_ANNOTATION_PREFIX)) == 0)
			return true;
	}
	return false;
}

/* @side: "limits" or "requests". */
static bool asks_for_card(const struct admission_policy *policy, const json_t *pod,
			  const char *side)
{
	for (int list = 0; list < POD_EPHEMERAL; list++) {
		const json_t *container;
		json_t *v;
		const char *name;
		size_t i;

		json_array_foreach(pod_containers(pod, list), i, container) {
			json_t *amounts = pod_object(pod_object(container, "resources"), side);

			json_object_foreach(amounts, name, v) {
				if (gs_glob_any(&policy->cards, name))
					return true;
			}
		}
	}
	return false;
}

static bool is_ours(const struct admission_policy *policy, const json_t *space, const json_t *pod)
{
	return has_our_key(pod) || oversold_is(policy, pod) || pod_asks(pod, GS_RESOURCE_SHARE) ||
	       (keys_are_in(space) && asks_for_card(policy, pod, "limits"));
}

/* As share_apply() sees it, which takes cards from both sides and leaves shares. */
static bool has_something_to_share(const struct admission_policy *policy, const json_t *pod)
{
	return pod_asks(pod, GS_RESOURCE_SHARE) || asks_for_card(policy, pod, "limits") ||
	       asks_for_card(policy, pod, "requests");
}

/* What the API server would refuse later, but what we write into keys and messages before. */
static int check_containers(const json_t *pod, struct gs_err *err)
{
	for (int list = 0; list < POD_LISTS; list++) {
		const json_t *container;
		size_t i;

		if (json_array_size(pod_containers(pod, list)) > CONTAINERS_MAX)
			return gs_err_set(err, E2BIG, "spec.%s has more than %d elements",
					  pod_list_name(list), CONTAINERS_MAX);
		json_array_foreach(pod_containers(pod, list), i, container) {
			const char *name = string_at(container, "name");

			if (!name || !gs_dns_label(name, strlen(name))) {
				cleanup_free char *quoted = pod_container_name(container);

				return gs_err_set(err, EINVAL, "container %s: no DNS label",
						  quoted);
			}
		}
	}
	return 0;
}

static int on_create(const struct admission_policy *policy, const json_t *space,
		     const struct question *q, json_t *pod, struct gs_err *err)
{
	bool oversold = oversold_is(policy, pod);
	int r = 0;

	if (!q->trusted)
		r = keys_check(space, NULL, pod, oversold, err);
	if (r == 0)
		r = order_check(pod, err);
	if (r == 0)
		r = spot_check(NULL, pod, err);
	if (r == 0)
		r = share_apply(policy, pod, err);
	if (r == 0 && oversold)
		r = oversold_apply(pod, q->trusted, err);
	if (r < 0)
		return r;
	keys_inherit(space, pod);
	return partition_apply(policy, pod, err);
}

static int on_update(const struct admission_policy *policy, const json_t *space,
		     const struct question *q, struct gs_err *err)
{
	int r = pod_check(q->before, err);

	if (r == 0 && !q->trusted)
		r = keys_check(space, q->before, q->object, false, err);
	if (r == 0)
		r = spot_check(q->before, q->object, err);
	if (r == 0 && oversold_is(policy, q->object))
		r = oversold_update(q->before, q->object, err);
	return r;
}

/* Fills *ret_patch on creation, and *ret_warnings on updates as well; a refusal is an error. */
static int decide(const struct admission_policy *policy, const json_t *space,
		  const struct question *q, json_t **ret_patch, json_t **ret_warnings,
		  struct gs_err *err)
{
	bool create = strcmp(q->operation, "CREATE") == 0;
	cleanup_json json_t *pod = NULL;
	int r;

	if (!create && strcmp(q->operation, "UPDATE") != 0)
		return 0;
	if (strcmp(q->kind, "Binding") == 0) {
		/* its annotations become the pod's */
		r = pod_check(q->object, err);
		return r < 0 || q->trusted ? r : keys_check(space, NULL, q->object, false, err);
	}
	if (strcmp(q->kind, "Pod") != 0)
		return gs_err_set(err, EINVAL, "neither a pod nor a binding");
	r = pod_check(q->object, err);
	if (r < 0 || !(is_ours(policy, space, q->object) || has_our_key(q->before)))
		return r;
	r = check_containers(q->object, err);
	if (r < 0)
		return r;
	if (create) {
		pod = json_deep_copy(q->object);
		r = on_create(policy, space, q, pod, err);
	} else {
		r = on_update(policy, space, q, err);
	}
	if (r < 0)
		return r;
	if (create)
		*ret_patch = patch_make(q->object, pod);
	*ret_warnings = warn_make(q->object, has_something_to_share(policy, q->object));
	return 0;
}

/* Whatever is between two of these is one value; those in strings count, too. */
static bool has_too_many_values(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n <= VALUES_MAX; i++)
		n += text[i] == ',' || text[i] == '[' || text[i] == '{';
	return n > VALUES_MAX;
}

int admission_review(const struct admission_policy *policy, const json_t *space, const char *text,
		     size_t len, json_t **ret, struct gs_err *err)
{
	cleanup_json json_t *review = NULL;
	cleanup_json json_t *patch = NULL, *warnings = NULL;
	struct gs_err why = { 0 };
	struct question q = { 0 };
	json_t *response;
	int r;

	if (len > ADMISSION_MAX)
		return gs_err_set(err, EINVAL, "longer than %zu bytes", ADMISSION_MAX);
	if (has_too_many_values(text, len))
		return gs_err_set(err, EINVAL, "more than %d values", VALUES_MAX);
	r = gs_json_parse("AdmissionReview", text, len, &review, err);
	if (r == 0)
		r = read_question(policy, review, &q, err);
	if (r < 0)
		return r;
	r = decide(policy, space, &q, &patch, &warnings, &why);
	response = json_pack("{s:s, s:b}", "uid", q.uid, "allowed", r == 0);
	if (r < 0)
		(void)json_object_set_new(response, "status",
					  json_pack("{s:i, s:s, s:o}", "code", 403, "reason",
						    "Forbidden", "message",
						    json_sprintf("gpushare: %s", why.msg)));
	if (r == 0 && json_array_size(patch) > 0) {
		cleanup_free char *encoded = patch_encode(patch);

		(void)json_object_set_new(response, "patchType", json_string("JSONPatch"));
		(void)json_object_set_new(response, "patch", json_string(encoded));
	}
	if (json_array_size(warnings) > 0)
		(void)json_object_set(response, "warnings", warnings);
	*ret = json_pack("{s:s, s:s, s:o}", "apiVersion", "admission.k8s.io/v1", "kind",
			 "AdmissionReview", "response", response);
	return 0;
}
