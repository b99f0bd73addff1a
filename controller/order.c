// SPDX-License-Identifier: Apache-2.0
/*
 * Init containers start one after another, before all others; a plain one has to end before the
 * next one starts, a sidecar (restartPolicy Always) only has to have started. "Init Containers" and
 * "Sidecar Containers", Kubernetes documentation.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/sources.h"
#include "common/xalloc.h"
#include "controller/order.h"
#include "controller/pod.h"
#include "gpushare/annotations.h"

/* The runtime takes fewer: 16 without repeats. */
#define SOURCES_MAX 64

/* One container after the other, and what it receives from. */
struct target {
	const json_t *inits; /* the pod's init containers */
	const json_t *places; /* names of containers: init containers first, as they start */
	struct gs_identity id; /* borrowed; what "_" stands for */
	size_t place;
	unsigned int n; /* sources so far */
	bool never; /* .why says why it can't receive */
	struct gs_err why;
};

static bool is_sidecar(const json_t *container)
{
	const char *policy = json_string_value(json_object_get(container, "restartPolicy"));

	return policy && strcmp(policy, "Always") == 0;
}

static int check_source(const struct gs_identity *source, void *arg, struct gs_err *err)
{
	struct target *t = arg;
	const json_t *at = json_object_get(t->places, source->container);
	size_t place = (size_t)json_integer_value(at), n_inits = json_array_size(t->inits);

	(void)err;
	if (++t->n > SOURCES_MAX)
		return -E2BIG;
	/* one that is not there is ephemeral, or somebody adds it still */
	if (!at || strcmp(source->ns, t->id.ns) != 0 || strcmp(source->pod, t->id.pod) != 0)
		return 0;
	if (t->place < n_inits && place > t->place)
		(void)gs_err_set(&t->why, EINVAL,
				 "it can't ever receive from container \"%s\", which starts only "
				 "after it",
				 source->container);
	else if (place < n_inits && !is_sidecar(json_array_get(t->inits, place)))
		(void)gs_err_set(&t->why, EINVAL,
				 "it can't ever receive from container \"%s\", which has ended "
				 "before it starts",
				 source->container);
	else
		return 0;
	t->never = true;
	return -EINVAL;
}

/* What can't be read is the runtime's to refuse. */
static int check_target(struct target *t, const json_t *pod, const json_t *container,
			struct gs_err *err)
{
	const char *name = json_string_value(json_object_get(container, "name"));
	cleanup_free char *key = gs_asprintf(GS_KEY_FROM ".%s", name);
	const char *own = pod_annotation(pod, key), *all = pod_annotation(pod, GS_KEY_FROM);
	const char *entry = NULL;
	struct gs_err ignored;
	size_t len;

	t->id.container = (char *)name;
	t->n = 0;
	if (own && strlen(own) <= GS_SOURCES_VALUE_MAX)
		(void)gs_sources_parse(own, strlen(own), &t->id, check_source, t, &ignored);
	if (!t->never && all && strlen(all) <= GS_SOURCES_VALUE_MAX &&
	    gs_sources_find(all, name, &entry, &len, &ignored) == 0 && entry)
		(void)gs_sources_parse(entry, len, &t->id, check_source, t, &ignored);
	if (!t->never)
		return 0;
	*err = t->why;
	return pod_container_prefix(container, err);
}

/* A name that is not given yet is none that anybody can write: "_" will do. */
static char *name_at(const json_t *pod, const char *key)
{
	const json_t *v = json_object_get(pod_object(pod, "metadata"), key);

	return (char *)(json_is_string(v) && json_string_length(v) ? json_string_value(v) : "_");
}

int order_check(const json_t *pod, struct gs_err *err)
{
	const json_t *lists[] = { pod_containers(pod, POD_INIT),
				  pod_containers(pod, POD_CONTAINERS) };
	cleanup_json json_t *places = json_object();
	struct target t = {
		.inits = lists[0],
		.places = places,
		.id = { .ns = name_at(pod, "namespace"), .pod = name_at(pod, "name") },
	};
	json_t *container;
	size_t i;

	for (size_t list = 0; list < GS_ARRAY_SIZE(lists); list++)
		json_array_foreach(lists[list], i, container) {
			const char *name = json_string_value(json_object_get(container, "name"));

			(void)json_object_set_new(
				places, name, json_integer((json_int_t)json_object_size(places)));
		}
	for (size_t list = 0; list < GS_ARRAY_SIZE(lists); list++)
		json_array_foreach(lists[list], i, container) {
			int r = check_target(&t, pod, container, err);

			if (r < 0)
				return r;
			t.place++;
		}
	return 0;
}
