// SPDX-License-Identifier: Apache-2.0
/* Share pods and shadow pods as the API has them. Kubernetes API, core/v1 Pod. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/xalloc.h"
#include "controller/pod.h"
#include "controller/shadow_make.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

/*
 * What starts a container runs within its limit: runc needs some 50 ms of a processor for the pod's
 * sandbox, and for each container. With "10m" users waited ten seconds for that alone.
 */
#define CPU "50m"
#define MEMORY "16Mi"
/* No node has so many cards; what asks for more is never placed. */
#define CARDS_MAX 64
/* What selectors, affinity and tolerations of people are together; we keep it for each pod. */
#define LIKE_MAX (16 * 1024)

/*
 * What a shadow pod takes over from the spec of its share pod. Where our runtime is not the default
 * one, the class brings the shadow pod to it too: the agent offers only what our runtime has seen.
 */
static const char *const inherited[] = { "nodeSelector", "tolerations", "priorityClassName",
					 "schedulerName", "runtimeClassName" };

static const char *string_at(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/*
 * The most that the pod asks for at a time: its containers together, or one init container and the
 * sidecars ahead of it. "Sidecar Containers", Kubernetes documentation.
 */
static unsigned int amount(const json_t *pod, const char *resource)
{
	static const enum pod_list lists[] = { POD_INIT, POD_CONTAINERS }; /* as they start */
	int64_t all = 0, most = 0;

	for (size_t list = 0; list < GS_ARRAY_SIZE(lists); list++) {
		const json_t *container;
		size_t i;

		json_array_foreach(pod_containers(pod, lists[list]), i, container) {
			int64_t n = 0;

			if (pod_amount(container, resource, &n, NULL) < 0)
				continue;
			if (lists[list] == POD_CONTAINERS ||
			    strcmp(string_at(container, "restartPolicy"), "Always") == 0)
				all += n;
			else if (all + n > most)
				most = all + n;
		}
	}
	if (all > most)
		most = all;
	return most > CARDS_MAX ? CARDS_MAX : (unsigned int)most;
}

/* What the scheduler says, where it says that there is no room. */
static const char *unplaced(const json_t *pod)
{
	const json_t *condition;
	size_t i;

	json_array_foreach(json_object_get(pod_object(pod, "status"), "conditions"), i, condition) {
		if (strcmp(string_at(condition, "type"), "PodScheduled") == 0 &&
		    strcmp(string_at(condition, "status"), "False") == 0 &&
		    strcmp(string_at(condition, "reason"), "Unschedulable") == 0)
			return string_at(condition, "message");
	}
	return "";
}

static json_t *inherit(const json_t *pod)
{
	const json_t *spec = pod_object(pod, "spec");
	json_t *affinity = json_object_get(pod_object(spec, "affinity"), "nodeAffinity");
	json_t *like = json_object();

	for (size_t i = 0; i < GS_ARRAY_SIZE(inherited); i++) {
		json_t *v = json_object_get(spec, inherited[i]);

		if (v && !json_is_null(v))
			(void)json_object_set(like, inherited[i], v);
	}
	if (json_is_object(affinity))
		(void)json_object_set_new(like, "affinity",
					  json_pack("{s:O}", "nodeAffinity", affinity));
	return like;
}

/* Fills .like and .place, which is the same for two that may be at the same places. */
static void read_place(struct shadow_pod *share, const json_t *pod)
{
	const char *partition = pod_annotation(pod, GS_KEY_PARTITION);
	cleanup_json json_t *like = inherit(pod);
	cleanup_free char *text = json_dumps(like, JSON_COMPACT | JSON_SORT_KEYS);
	cleanup_free char *all = gs_asprintf("%s %s", partition ? partition : "", text ? text : "");

	share->place = gs_asprintf("%016" PRIx64, gs_hash(all));
	share->too_large = strlen(all) > LIKE_MAX;
	/* one that is somewhere needs no other place */
	if (share->too_large || *share->node || share->over || share->ending)
		return;
	if (partition)
		(void)json_object_set_new(like, GS_KEY_PARTITION, json_string(partition));
	share->like = gs_steal(like);
}

static bool is_shadow(const json_t *pod, const struct controller_settings *settings)
{
	const char *value = pod_annotation(pod, GS_KEY_SHADOW);

	return value && strcmp(value, "true") == 0 &&
	       strcmp(string_at(pod_object(pod, "metadata"), "namespace"), settings->namespace) ==
		       0;
}

static char *or_none(const char *s)
{
	return gs_strdup(s ? s : "");
}

static struct shadow_pod *read_pod(const json_t *pod, const struct controller_settings *settings,
				   bool *shadow)
{
	const json_t *meta = pod_object(pod, "metadata");
	const char *phase, *account;
	struct shadow_pod *ret;

	if (pod_check(pod, NULL) < 0 || !*string_at(meta, "uid") || !*string_at(meta, "name"))
		return NULL;
	*shadow = is_shadow(pod, settings);
	if (!*shadow && !pod_asks(pod, GS_RESOURCE_SHARE))
		return NULL;
	phase = string_at(pod_object(pod, "status"), "phase");
	account = pod_annotation(pod, GS_KEY_USER_ID);
	ret = gs_calloc(1, sizeof(*ret));
	ret->namespace = gs_strdup(string_at(meta, "namespace"));
	ret->name = gs_strdup(string_at(meta, "name"));
	ret->uid = gs_strdup(string_at(meta, "uid"));
	ret->version = gs_strdup(string_at(meta, "resourceVersion"));
	ret->made = gs_strdup(string_at(meta, "creationTimestamp"));
	ret->node = gs_strdup(string_at(pod_object(pod, "spec"), "nodeName"));
	ret->account = gs_strdup(account ? account : ret->namespace);
	ret->why = gs_strdup(unplaced(pod));
	/* a share pod has its card while it shuts down */
	ret->ending = json_object_get(meta, "deletionTimestamp");
	ret->over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0 ||
		    (*shadow && ret->ending);
	ret->runs = strcmp(phase, "Running") == 0;
	ret->cards = amount(pod, *shadow ? settings->card : GS_RESOURCE_SHARE);
	ret->of = or_none(*shadow ? pod_annotation(pod, GS_KEY_SHADOW_FOR) : NULL);
	if (*shadow)
		ret->place = or_none(pod_annotation(pod, GS_KEY_SHADOW_PLACE));
	else
		read_place(ret, pod);
	return ret;
}

/*
 * ---- From a pod's text. Its author writes most of it: strings that hold U+0000, field managers
 * nested by the thousand. So jansson, which takes none of that, reads only the parts that matter
 * here. One that can't be read would be a share pod that nobody counts, or for ever.
 */

/* Parts of a pod that are taken as they are. */
static const struct part {
	const char *in, *key;
} parts[] = {
	{ "metadata", "namespace" },
	{ "metadata", "name" },
	{ "metadata", "uid" },
	{ "metadata", "resourceVersion" },
	{ "metadata", "creationTimestamp" },
	{ "metadata", "deletionTimestamp" },
	{ "spec", "nodeName" },
	{ "spec", "nodeSelector" },
	{ "spec", "tolerations" },
	{ "spec", "priorityClassName" },
	{ "spec", "schedulerName" },
	{ "spec", "runtimeClassName" },
	{ "status", "phase" },
	{ "status", "conditions" },
};

/* Sets @key of @object to the value @v, where there is one that can be read. */
static void take(json_t *object, const char *key, struct js v)
{
	json_t *json = NULL;

	if (!js_absent(v))
		json = json_loadb(v.p, v.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (json)
		(void)json_object_set_new(object, key, json);
}

static void take_annotations(json_t *meta, struct js map)
{
	json_t *ours = json_object();
	struct js_iter it = js_iter(map);
	struct js key, value;

	while (js_is(map, JS_OBJECT) && js_next_member(&it, &key, &value)) {
		cleanup_free char *k = js_string(key);

		if (k && strncmp(k, GS_ANNOTATION_PREFIX, strlen(GS_ANNOTATION_PREFIX)) == 0)
			take(ours, k, value);
	}
	(void)json_object_set_new(meta, "annotations", ours);
}

static void take_containers(json_t *spec, const char *name, struct js list)
{
	static const char *const keys[] = { "name", "resources", "restartPolicy" };
	json_t *containers = json_array();
	struct js_iter it = js_iter(list);
	struct js container, v[GS_ARRAY_SIZE(keys)];

	while (js_is(list, JS_ARRAY) && js_next_element(&it, &container)) {
		json_t *one = json_object();

		if (js_members(container, keys, GS_ARRAY_SIZE(keys), v, NULL) == 0)
			for (size_t i = 0; i < GS_ARRAY_SIZE(keys); i++)
				take(one, keys[i], v[i]);
		(void)json_array_append_new(containers, one);
	}
	(void)json_object_set_new(spec, name, containers);
}

static json_t *parts_of(struct js pod)
{
	json_t *json =
		json_pack("{s:{}, s:{s:{}}, s:{}}", "metadata", "spec", "affinity", "status");
	json_t *spec = json_object_get(json, "spec");
	struct js v;

	for (size_t i = 0; i < GS_ARRAY_SIZE(parts); i++)
		if (js_path(pod, &v, NULL, parts[i].in, parts[i].key, NULL) == 0)
			take(json_object_get(json, parts[i].in), parts[i].key, v);
	if (js_path(pod, &v, NULL, "spec", "affinity", "nodeAffinity", NULL) == 0)
		take(json_object_get(spec, "affinity"), "nodeAffinity", v);
	if (js_path(pod, &v, NULL, "metadata", "annotations", NULL) == 0)
		take_annotations(json_object_get(json, "metadata"), v);
	for (int list = 0; list < POD_EPHEMERAL; list++)
		if (js_path(pod, &v, NULL, "spec", pod_list_name(list), NULL) == 0)
			take_containers(spec, pod_list_name(list), v);
	return json;
}

struct shadow_pod *shadow_read(struct js pod, const struct controller_settings *settings,
			       bool *shadow)
{
	cleanup_json json_t *json = NULL;

	if (memmem(pod.p, pod.n, GS_RESOURCE_SHARE, strlen(GS_RESOURCE_SHARE)) ||
	    memmem(pod.p, pod.n, GS_KEY_SHADOW, strlen(GS_KEY_SHADOW)))
		json = parts_of(pod);
	return json ? read_pod(json, settings, shadow) : NULL;
}

void shadow_pod_free(struct shadow_pod *pod)
{
	if (!pod)
		return;
	free(pod->namespace);
	free(pod->name);
	free(pod->uid);
	free(pod->version);
	free(pod->node);
	free(pod->account);
	free(pod->place);
	free(pod->made);
	free(pod->why);
	free(pod->of);
	free(pod->told);
	json_decref(pod->like);
	free(pod);
}

char *shadow_name(const struct shadow_pod *share)
{
	return gs_asprintf("shadow-%.200s", share->uid);
}

/* One for each card: a container that has several is no source of one of them. */
static json_t *containers(const struct shadow_pod *share,
			  const struct controller_settings *settings)
{
	cleanup_json json_t *amounts =
		json_pack("{s:s, s:s, s:s}", "cpu", CPU, "memory", MEMORY, settings->card, "1");
	cleanup_json json_t *security = json_pack("{s:b, s:b, s:b, s:i, s:{s:[s]}, s:{s:s}}",
						  "allowPrivilegeEscalation", 0,
						  "readOnlyRootFilesystem", 1, "runAsNonRoot", 1,
						  "runAsUser", 65534, "capabilities", "drop", "ALL",
						  "seccompProfile", "type", "RuntimeDefault");
	json_t *list = json_array();

	for (unsigned int i = 0; i < share->cards; i++) {
		cleanup_free char *name = i ? gs_asprintf("card-%u", i) : gs_strdup("card");

		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:{s:O, s:O}, s:O}", "name", name, "image",
					settings->image, "resources", "limits", amounts, "requests",
					amounts, "securityContext", security));
	}
	return list;
}

json_t *shadow_make(const struct shadow_pod *share, const struct controller_settings *settings)
{
	cleanup_free char *name = shadow_name(share);
	const char *partition = json_string_value(json_object_get(share->like, GS_KEY_PARTITION));
	json_t *annotations = json_pack("{s:s, s:s, s:s, s:s}", GS_KEY_SHADOW, "true",
					GS_KEY_SHADOW_FOR, share->uid, GS_KEY_SHADOW_PLACE,
					share->place, GS_KEY_USER_ID, share->account);
	json_t *spec = json_deep_copy(share->like);

	(void)json_object_del(spec, GS_KEY_PARTITION);
	if (partition)
		(void)json_object_set_new(annotations, GS_KEY_PARTITION, json_string(partition));
	(void)json_object_set_new(spec, "containers", containers(share, settings));
	(void)json_object_set_new(spec, "restartPolicy", json_string("Always"));
	(void)json_object_set_new(spec, "automountServiceAccountToken", json_false());
	(void)json_object_set_new(spec, "enableServiceLinks", json_false());
	(void)json_object_set_new(spec, "terminationGracePeriodSeconds", json_integer(0));
	return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}, s:o}, s:o}", "apiVersion", "v1", "kind",
			 "Pod", "metadata", "name", name, "namespace", settings->namespace,
			 "labels", "app.kubernetes.io/managed-by", "gpushare-controller",
			 "annotations", annotations, "spec", spec);
}
