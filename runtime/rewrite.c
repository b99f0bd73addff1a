// SPDX-License-Identifier: Apache-2.0
/* The edits of one config.json. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/rewrite.h"

void rewrite_begin(struct rewrite *rw, const struct spec *spec)
{
	*rw = (struct rewrite){ .spec = spec };
	js_array_begin(&rw->env, spec->env);
	js_array_begin(&rw->mounts, spec->mounts);
	js_array_begin(&rw->devices, spec->devices);
	js_array_begin(&rw->rules, spec->rules);
	for (int i = 0; i < STAGE_COUNT; i++)
		js_array_begin(&rw->hooks[i], spec->stages[i]);
}

void rewrite_free(struct rewrite *rw)
{
	js_array_free(&rw->env);
	js_array_free(&rw->mounts);
	js_array_free(&rw->devices);
	js_array_free(&rw->rules);
	for (int i = 0; i < STAGE_COUNT; i++)
		js_array_free(&rw->hooks[i]);
}

void rewrite_limit(struct rewrite *rw, const char *group, const char *key, int64_t value)
{
	if (rw->n_limits < REWRITE_LIMITS_MAX)
		rw->limits[rw->n_limits++] = (struct rewrite_limit){ group, key, value };
}

static bool hooks_change(const struct rewrite *rw)
{
	for (int i = 0; i < STAGE_COUNT; i++)
		if (rw->hooks[i].changed)
			return true;
	return false;
}

bool rewrite_changes(const struct rewrite *rw)
{
	return rw->env.changed || rw->mounts.changed || rw->devices.changed || rw->rules.changed ||
	       hooks_change(rw) || rw->n_limits;
}

/* The object at @obj as it is, or, where there is none yet, member @key of @parent. */
static void add_object(struct js_edit *edit, struct js obj, struct js parent, const char *key,
		       const char *json)
{
	if (obj.n)
		js_edit_replace(edit, obj, json); /* it was null */
	else
		js_edit_add_member(edit, parent, key, json);
}

static void edit_hooks(const struct rewrite *rw, struct js_edit *edit)
{
	cleanup_buf struct gs_buf fresh = { 0 };

	if (!hooks_change(rw))
		return;
	if (!js_absent(rw->spec->hooks)) {
		for (int i = 0; i < STAGE_COUNT; i++)
			js_edit_array(edit, &rw->hooks[i], rw->spec->hooks, spec_stage_names[i]);
		return;
	}
	for (int i = 0; i < STAGE_COUNT; i++) {
		cleanup_free char *text = NULL;

		if (!rw->hooks[i].changed)
			continue;
		text = js_array_text(&rw->hooks[i]);
		gs_buf_addf(&fresh, "%s\"%s\":%s", fresh.len ? "," : "{", spec_stage_names[i],
			    text);
	}
	gs_buf_addc(&fresh, '}');
	add_object(edit, rw->spec->hooks, rw->spec->root, "hooks", fresh.data);
}

/* All limits of one group as the text of a new object, "" where there are none. */
static void limit_group(const struct rewrite *rw, const char *group, struct gs_buf *out)
{
	for (size_t i = 0; i < rw->n_limits; i++)
		if (strcmp(rw->limits[i].group, group) == 0)
			gs_buf_addf(out, "%s\"%s\":%" PRId64, out->len ? "," : "{",
				    rw->limits[i].key, rw->limits[i].value);
	if (out->len)
		gs_buf_addc(out, '}');
}

static const char *const limit_groups[] = { "cpu", "memory" };

/* linux.resources is there: edit inside of it. */
static void edit_resources(const struct rewrite *rw, struct js_edit *edit)
{
	js_edit_array(edit, &rw->rules, rw->spec->resources, "devices");
	for (size_t g = 0; g < GS_ARRAY_SIZE(limit_groups); g++) {
		cleanup_buf struct gs_buf fresh = { 0 };
		struct js obj;

		limit_group(rw, limit_groups[g], &fresh);
		if (!fresh.len || js_member(rw->spec->resources, limit_groups[g], &obj, NULL) < 0)
			continue;
		if (js_absent(obj)) {
			add_object(edit, obj, rw->spec->resources, limit_groups[g], fresh.data);
			continue;
		}
		for (size_t i = 0; i < rw->n_limits; i++) {
			const struct rewrite_limit *limit = &rw->limits[i];
			cleanup_free char *text = gs_asprintf("%" PRId64, limit->value);
			struct js old;

			if (strcmp(limit->group, limit_groups[g]) != 0 ||
			    js_member(obj, limit->key, &old, NULL) < 0)
				continue;
			add_object(edit, old, obj, limit->key, text);
		}
	}
}

/* linux.resources is absent or null: one new object with everything. */
static void add_resources(const struct rewrite *rw, struct js_edit *edit)
{
	cleanup_buf struct gs_buf fresh = { 0 };

	if (rw->rules.changed) {
		cleanup_free char *text = js_array_text(&rw->rules);

		gs_buf_addf(&fresh, "{\"devices\":%s", text);
	}
	for (size_t g = 0; g < GS_ARRAY_SIZE(limit_groups); g++) {
		cleanup_buf struct gs_buf group = { 0 };

		limit_group(rw, limit_groups[g], &group);
		if (group.len)
			gs_buf_addf(&fresh, "%s\"%s\":%s", fresh.len ? "," : "{", limit_groups[g],
				    group.data);
	}
	if (!fresh.len)
		return;
	gs_buf_addc(&fresh, '}');
	add_object(edit, rw->spec->resources, rw->spec->linux_obj, "resources", fresh.data);
}

void rewrite_text(const struct rewrite *rw, struct gs_buf *out)
{
	const struct spec *spec = rw->spec;
	cleanup_js_edit struct js_edit edit = { .text = spec->text, .len = spec->len };

	js_edit_array(&edit, &rw->env, spec->process, "env");
	js_edit_array(&edit, &rw->mounts, spec->root, "mounts");
	edit_hooks(rw, &edit);
	js_edit_array(&edit, &rw->devices, spec->linux_obj, "devices");
	if (!js_absent(spec->resources))
		edit_resources(rw, &edit);
	else
		add_resources(rw, &edit);
	js_edit_apply(&edit, out);
}

static void add_array(struct gs_buf *out, const char *before, const struct js_array *array)
{
	cleanup_free char *text = js_array_text(array);

	gs_buf_adds(out, before);
	gs_buf_adds(out, text);
}

void rewrite_parts(const struct rewrite *rw, const char *rules, struct gs_buf *out)
{
	add_array(out, "{\"process\":{\"env\":", &rw->env);
	add_array(out, "},\"mounts\":", &rw->mounts);
	gs_buf_adds(out, ",\"hooks\":{");
	for (int i = 0; i < STAGE_COUNT; i++) {
		gs_buf_addf(out, "%s\"%s\":", i ? "," : "", spec_stage_names[i]);
		add_array(out, "", &rw->hooks[i]);
	}
	add_array(out, "},\"linux\":{\"devices\":", &rw->devices);
	gs_buf_adds(out, ",\"resources\":{\"devices\":");
	if (rules)
		gs_buf_adds(out, rules);
	else
		add_array(out, "", &rw->rules);
	gs_buf_adds(out, "}}}");
}
