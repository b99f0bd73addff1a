// SPDX-License-Identifier: Apache-2.0
/* JSON patches of pods. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/base64.h"
#include "controller/patch.h"
#include "controller/pod.h"

static void add(json_t *patch, const char *path, json_t *value)
{
	(void)json_array_append_new(patch, json_pack("{s:s, s:s, s:O}", "op", "add", "path", path,
						     "value", value));
}

static bool differ(const json_t *a, const json_t *b)
{
	return b && !(a && json_equal(a, b));
}

/* A part of a JSON pointer (RFC 6901): '~' and '/' are written otherwise. */
static void add_part(struct gs_buf *buf, const char *part)
{
	gs_buf_addc(buf, '/');
	for (; *part; part++) {
		if (*part == '~')
			gs_buf_adds(buf, "~0");
		else if (*part == '/')
			gs_buf_adds(buf, "~1");
		else
			gs_buf_addc(buf, *part);
	}
}

static void patch_annotations(json_t *patch, const json_t *before, const json_t *after)
{
	json_t *old = pod_annotations(before), *new = pod_annotations(after), *v;
	const char *key;

	if (new && !old) {
		if (!pod_object(before, "metadata"))
			add(patch, "/metadata", json_object_get(after, "metadata"));
		else
			add(patch, "/metadata/annotations", new);
		return;
	}
	json_object_foreach(new, key, v) {
		cleanup_buf struct gs_buf path = { 0 };

		if (!differ(json_object_get(old, key), v))
			continue;
		gs_buf_adds(&path, "/metadata/annotations");
		add_part(&path, key);
		add(patch, path.data, v);
	}
}

json_t *patch_make(const json_t *before, const json_t *after)
{
	json_t *patch = json_array();
	json_t *affinity = json_object_get(pod_object(after, "spec"), "affinity");

	patch_annotations(patch, before, after);
	for (int list = 0; list < POD_EPHEMERAL; list++) {
		const json_t *container;
		size_t i;

		json_array_foreach(pod_containers(after, list), i, container) {
			const json_t *old = json_array_get(pod_containers(before, list), i);
			json_t *new = json_object_get(container, "resources");
			cleanup_free char *path =
				gs_asprintf("/spec/%s/%zu/resources", pod_list_name(list), i);

			if (differ(json_object_get(old, "resources"), new))
				add(patch, path, new);
		}
	}
	if (differ(json_object_get(pod_object(before, "spec"), "affinity"), affinity))
		add(patch, "/spec/affinity", affinity);
	return patch;
}

char *patch_encode(const json_t *json)
{
	cleanup_free char *text = json_dumps(json, JSON_COMPACT);

	return base64_encode(text ? text : "");
}
