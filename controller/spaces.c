// SPDX-License-Identifier: Apache-2.0
/* What namespaces say for their pods. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/spaces.h"
#include "gpushare/annotations.h"

#define PAGE 500

struct spaces {
	json_t *known; /* name: {annotation: text} */
	json_t *listed; /* the names that the list under way has told; NULL: none is */
	bool synced;
	void (*changed)(struct controller *controller);
};

static json_t *our_annotations(struct js object)
{
	json_t *ours = json_object();
	struct js map, key, value;
	struct js_iter it;

	if (js_path(object, &map, NULL, "metadata", "annotations", NULL) < 0 ||
	    !js_is(map, JS_OBJECT))
		return ours;
	it = js_iter(map);
	while (js_next_member(&it, &key, &value)) {
		cleanup_free char *k = js_string(key);
		cleanup_free char *v = js_string(value);

		if (k && v && strncmp(k, GS_ANNOTATION_PREFIX, strlen(GS_ANNOTATION_PREFIX)) == 0)
			(void)json_object_set_new(ours, k, json_string(v));
	}
	return ours;
}

static void tell(struct controller *controller)
{
	if (controller->spaces->synced && controller->spaces->changed)
		controller->spaces->changed(controller);
}

static void on_object(struct js object, bool gone, void *arg)
{
	struct controller *controller = arg;
	struct spaces *spaces = controller->spaces;
	cleanup_free char *name = NULL;
	struct js v;

	if (js_path(object, &v, NULL, "metadata", "name", NULL) < 0)
		return;
	name = js_string(v);
	if (!name)
		return;
	if (spaces->listed)
		(void)json_object_set_new(spaces->listed, name, json_null());
	if (gone)
		(void)json_object_del(spaces->known, name);
	else
		(void)json_object_set_new(spaces->known, name, our_annotations(object));
	tell(controller);
}

static void on_begin(void *arg)
{
	struct spaces *spaces = ((struct controller *)arg)->spaces;

	json_decref(spaces->listed);
	spaces->listed = json_object();
}

static void on_synced(void *arg)
{
	struct controller *controller = arg;
	struct spaces *spaces = controller->spaces;
	const char *name;
	json_t *v;
	void *tmp;

	json_object_foreach_safe(spaces->known, tmp, name, v)
	{
		if (!json_object_get(spaces->listed, name))
			(void)json_object_del(spaces->known, name);
	}
	json_decref(spaces->listed);
	spaces->listed = NULL;
	spaces->synced = true;
	tell(controller);
}

void spaces_start(struct controller *controller, void (*changed)(struct controller *controller))
{
	const struct kube_watch_ops ops = { on_object, on_begin, on_synced, controller };

	controller->spaces = gs_calloc(1, sizeof(*controller->spaces));
	controller->spaces->known = json_object();
	controller->spaces->changed = changed;
	kube_watch(controller->kube, "/api/v1/namespaces", NULL, "namespace", PAGE, &ops);
}

void spaces_stop(struct controller *controller)
{
	struct spaces *spaces = gs_steal(controller->spaces);

	if (!spaces)
		return;
	json_decref(spaces->known);
	json_decref(spaces->listed);
	free(spaces);
}

bool spaces_synced(const struct controller *controller)
{
	return controller->spaces && controller->spaces->synced;
}

const json_t *spaces_get(const struct controller *controller, const char *name)
{
	return json_object_get(controller->spaces->known, name);
}
