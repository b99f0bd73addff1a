// SPDX-License-Identifier: Apache-2.0
/* What a pod's author should hear of though the pod is let in. */
#include <stdlib.h>
#include <string.h>

#include "common/annotation.h"
#include "common/cleanup.h"
#include "common/identity.h"
#include "common/xalloc.h"
#include "controller/pod.h"
#include "controller/warn.h"
#include "gpushare/annotations.h"

/* So many are told; of the others how many they are. */
#define TOLD_MAX 5

struct warnings {
	json_t *list;
	size_t more;
};

/* Takes @text over. */
static void add(struct warnings *to, char *text)
{
	if (text && json_array_size(to->list) < TOLD_MAX)
		(void)json_array_append_new(to->list, json_sprintf("gpushare: %s", text));
	else if (text)
		to->more++;
	free(text);
}

static bool has_container(const json_t *pod, const char *wanted)
{
	for (int list = 0; list < POD_LISTS; list++) {
		const json_t *container;
		size_t i;

		json_array_foreach(pod_containers(pod, list), i, container) {
			const char *name = json_string_value(json_object_get(container, "name"));

			if (name && strcmp(name, wanted) == 0)
				return true;
		}
	}
	return false;
}

/* Of sources for a container that may be added still, as debuggers are, it is told too. */
static char *without_container(const json_t *pod, const char *key)
{
	static const char each[] = GS_KEY_FROM ".";
	cleanup_free char *quoted = NULL;

	if (strncmp(key, each, strlen(each)) != 0 || has_container(pod, key + strlen(each)))
		return NULL;
	quoted = gs_quote(key, strlen(key));
	return gs_asprintf("annotation %s: the pod has no container of that name", quoted);
}

json_t *warn_make(const json_t *pod, bool asks)
{
	const char *share = pod_annotation(pod, GS_KEY_SHARE), *key;
	struct warnings to = { .list = json_array() };
	json_t *v;

	json_object_foreach(pod_annotations(pod), key, v) {
		add(&to, gs_annotation_unknown(key));
		add(&to, without_container(pod, key));
	}
	if (share && strcmp(share, "true") == 0 && !asks)
		add(&to, gs_strdup("annotation " GS_KEY_SHARE ": the pod asks for no card"));
	if (to.more)
		(void)json_array_append_new(to.list, json_sprintf("gpushare: %zu more", to.more));
	return to.list;
}
