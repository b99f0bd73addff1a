// SPDX-License-Identifier: Apache-2.0
/*
 * Merges the environment. Every name that a vendor owns stands exactly once in the result: runc
 * keeps the last of several, glibc's getenv() reads the first, and who asks whom is nobody's
 * guess.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/xalloc.h"
#include "runtime/inject.h"

#define SELECT_ALL "all"

struct env_merge {
	struct rewrite *rw;
	const struct inject *in;
	struct gs_strv done; /* names that were merged already */
};

/* The entries of target or source with this name. */
static bool is_named(const struct spec_env *e, const char *name)
{
	return strlen(name) == e->name_len && memcmp(e->text, name, e->name_len) == 0;
}

/* The target's variable gets @value at its first place and loses every other; NULL: all go. */
static void set_env(struct rewrite *rw, const char *name, const char *value)
{
	cleanup_buf struct gs_buf json = { 0 };
	cleanup_free char *text = gs_asprintf("%s=%s", name, value ? value : "");
	bool placed = !value;

	gs_buf_add_json(&json, text);
	for (size_t i = 0; i < rw->spec->n_envs; i++) {
		const struct spec_env *e = &rw->spec->envs[i];

		if (!is_named(e, name))
			continue;
		if (placed)
			js_array_drop(&rw->env, i);
		else if (strcmp(e->text, text) != 0)
			js_array_replace(&rw->env, i, json.data);
		placed = true;
	}
	if (!placed)
		js_array_append(&rw->env, json.data);
}

/* Adds the comma-separated parts of @value that @list does not have. */
static void join(struct gs_strv *list, const char *value)
{
	while (*value) {
		size_t n = strcspn(value, ",");
		char *part = gs_strndup(value, n);

		if (n && !gs_strv_has(list, part))
			gs_strv_take(list, part);
		else
			free(part);
		value += n + (value[n] == ',');
	}
}

/* Several values that select cards: one that means no card gives way, "all" takes all. */
static char *join_selectors(const struct gs_vendor *vendor, const struct gs_strv *values)
{
	cleanup_strv struct gs_strv parts = { 0 };

	for (size_t i = 0; i < values->n; i++)
		if (!gs_strv_has(&vendor->select_none, values->v[i]))
			join(&parts, values->v[i]);
	if (parts.n == 0)
		return gs_strdup(values->v[0]);
	if (gs_strv_has(&parts, SELECT_ALL))
		return gs_strdup(SELECT_ALL);
	return gs_strv_join(&parts);
}

static char *join_list(const struct gs_strv *values)
{
	cleanup_strv struct gs_strv parts = { 0 };

	for (size_t i = 0; i < values->n; i++)
		join(&parts, values->v[i]);
	return gs_strv_join(&parts);
}

/* Does the value name cards that no source names? */
static bool selects_more(const struct gs_vendor *vendor, const char *own,
			 const struct gs_strv *given)
{
	cleanup_strv struct gs_strv parts = { 0 }, known = { 0 };

	join(&parts, own);
	for (size_t i = 0; i < given->n; i++)
		join(&known, given->v[i]);
	for (size_t i = 0; i < parts.n; i++)
		if (!gs_strv_has(&known, parts.v[i]) &&
		    !gs_strv_has(&vendor->select_none, parts.v[i]))
			return true;
	return false;
}

/*
 * A plain target whose own variable names cards. Where the next runtime acts on it they are its own
 * allocation, or its author wrote somebody's card there: nobody here can tell, so it is refused.
 * Elsewhere the word opens nothing; what it names the target has as nodes, and it is joined.
 */
static int join_own(const struct env_merge *m, const struct gs_vendor *vendor,
		    const struct gs_env *env, struct gs_strv *values, struct gs_err *err)
{
	const char *own = spec_env_value(m->rw->spec, env->name);
	cleanup_free char *quoted = NULL;

	if (!own || strcmp(own, SELECT_ALL) == 0 || !selects_more(vendor, own, values))
		return 0;
	if (!gs_vendor_next_runtime(vendor, m->in->next)) {
		gs_strv_add(values, own);
		return 0;
	}
	quoted = gs_quote(own, strlen(own));
	return gs_err_set(err, EEXIST,
			  "the container itself selects cards (%s=%s), which can't be joined with "
			  "those of its sources",
			  env->name, quoted);
}

/*
 * No source has the selecting variable, but the target (its image, as a rule) or the next
 * runtime's default would select: say "none" in the vendor's words.
 */
static void deselect(struct env_merge *m, const struct gs_vendor *vendor, const char *name)
{
	const char *own = spec_env_value(m->rw->spec, name);

	if (!own && !gs_vendor_next_runtime(vendor, m->in->next))
		return;
	set_env(m->rw, name, vendor->select_none.n ? vendor->select_none.v[0] : NULL);
}

static int merge_env(struct env_merge *m, const struct gs_vendor *vendor, const struct gs_env *env,
		     struct gs_err *err)
{
	cleanup_strv struct gs_strv values = { 0 };
	cleanup_free char *value = NULL;
	const char *from = NULL, *own;
	size_t n_giving = 0;

	for (size_t i = 0; i < m->in->n_sources; i++) {
		const struct source *src = &m->in->sources[i];
		const char *v = spec_env_value(&src->spec, env->name);

		if (!inject_gives(m->in, src, vendor))
			continue;
		n_giving++;
		if (!v)
			continue;
		if (env->merge == GS_ENV_REPLACE && values.n && strcmp(values.v[0], v) != 0)
			return gs_err_set(err, EEXIST, "%s is \"%s\" in source %s and \"%s\" in %s",
					  env->name, values.v[0], from, v, src->name);
		from = src->name;
		gs_strv_add(&values, v);
	}
	own = spec_env_value(m->rw->spec, env->name);
	if (env->selects && !m->in->strict) {
		int r = join_own(m, vendor, env, &values, err);

		if (r < 0)
			return r;
	}
	if (env->merge == GS_ENV_LOCAL && n_giving > 1) {
		if (own || values.n) /* positions of one source mean other cards beside another's */
			set_env(m->rw, env->name, NULL);
	} else if (values.n && env->selects) {
		value = join_selectors(vendor, &values);
		set_env(m->rw, env->name, value);
	} else if (values.n && env->merge == GS_ENV_LIST) {
		value = join_list(&values);
		set_env(m->rw, env->name, value);
	} else if (values.n) {
		set_env(m->rw, env->name, values.v[0]);
	} else if (env->selects) {
		deselect(m, vendor, env->name);
	} else if (own) {
		value = gs_strdup(own); /* one entry: the last, which the runtimes keep */
		set_env(m->rw, env->name, value);
	}
	return 0;
}

static bool selects_by_mount(const struct source *src, const struct gs_vendor *vendor)
{
	for (size_t i = 0; i < src->slice.n; i++) {
		const struct slice_item *item = &src->slice.items[i];

		if (item->vendor == vendor && item->kind == SLICE_MOUNT && item->mount->selects)
			return true;
	}
	return false;
}

/* NVIDIA's chain looks at mounts first and then never at the variable: one would be lost. */
static int check_one_way(const struct env_merge *m, const struct gs_vendor *vendor,
			 struct gs_err *err)
{
	const struct source *by_mount = NULL, *by_env = NULL;

	for (size_t i = 0; i < m->in->n_sources; i++) {
		const struct source *src = &m->in->sources[i];

		if (selects_by_mount(src, vendor))
			by_mount = src;
		else if (slice_selects(&src->slice, vendor))
			by_env = src;
	}
	if (by_mount && by_env)
		return gs_err_set(err, EEXIST,
				  "source %s selects its %s cards by mounts and source %s by "
				  "environment: the two can't be joined",
				  by_mount->name, vendor->name, by_env->name);
	return 0;
}

/* Does a source mount the very same thing? */
static bool source_mounts(const struct env_merge *m, const struct spec_mount *mount)
{
	for (size_t i = 0; i < m->in->n_sources; i++) {
		const struct spec *spec = &m->in->sources[i].spec;

		for (size_t j = 0; j < spec->n_mounts; j++)
			if (strcmp(spec->mount[j].to, mount->to) == 0)
				return true;
	}
	return false;
}

/*
 * The target's own mounts that select cards, at which NVIDIA's chain would look first: a target
 * that may have nothing of its own loses them, any other is refused as for a variable.
 */
static int merge_own_mounts(struct env_merge *m, const struct gs_vendor *vendor, struct gs_err *err)
{
	const struct slice *own = m->in->own;

	for (size_t i = 0; i < own->n; i++) {
		const struct slice_item *item = &own->items[i];
		const struct spec_mount *mount;

		if (item->vendor != vendor || item->kind != SLICE_MOUNT || !item->mount->selects)
			continue;
		mount = &own->spec->mount[item->index];
		if (source_mounts(m, mount))
			continue;
		if (!m->in->strict)
			return gs_err_set(err, EEXIST,
					  "the container itself selects cards (mount %s), which "
					  "can't be joined with those of its sources",
					  mount->to);
		js_array_drop(&m->rw->mounts, item->index);
	}
	return 0;
}

/* A maker of whom no source has a card. */
static void refuse_vendor(struct env_merge *m, const struct gs_vendor *vendor)
{
	if (!gs_vendor_next_runtime(vendor, m->in->next))
		return;
	(void)merge_own_mounts(m, vendor, NULL); /* strict: it only drops */
	for (size_t i = 0; i < vendor->n_envs; i++)
		if (vendor->envs[i].selects)
			deselect(m, vendor, vendor->envs[i].name);
}

static int merge_vendor(struct env_merge *m, const struct gs_vendor *vendor, struct gs_err *err)
{
	bool given = false;
	int r;

	for (size_t i = 0; i < m->in->n_sources; i++)
		given = given || inject_gives(m->in, &m->in->sources[i], vendor);
	if (!given) {
		if (m->in->strict)
			refuse_vendor(m, vendor);
		return 0;
	}
	r = check_one_way(m, vendor, err);
	if (r == 0)
		r = merge_own_mounts(m, vendor, err);
	for (size_t i = 0; i < vendor->n_envs && r == 0; i++) {
		if (gs_strv_has(&m->done, vendor->envs[i].name))
			continue;
		gs_strv_add(&m->done, vendor->envs[i].name);
		r = merge_env(m, vendor, &vendor->envs[i], err);
	}
	return r;
}

int inject_env(struct rewrite *rw, const struct inject *in, struct gs_err *err)
{
	struct env_merge m = { rw, in, { 0 } };
	int r = 0;

	for (size_t i = 0; i < in->cat->n && r == 0; i++)
		r = merge_vendor(&m, &in->cat->v[i], err);
	gs_strv_free(&m.done);
	return r;
}
