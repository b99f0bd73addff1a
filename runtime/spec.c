// SPDX-License-Identifier: Apache-2.0
/* Reads the parts of config.json that we look at. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/identity.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "runtime/spec.h"

const char *const spec_stage_names[STAGE_COUNT] = {
	[STAGE_PRESTART] = "prestart",
	[STAGE_CREATE_RUNTIME] = "createRuntime",
	[STAGE_CREATE_CONTAINER] = "createContainer",
	[STAGE_START_CONTAINER] = "startContainer",
	[STAGE_POSTSTART] = "poststart",
	[STAGE_POSTSTOP] = "poststop",
};

void spec_free(struct spec *spec)
{
	for (size_t i = 0; i < spec->n_devices; i++)
		free(spec->device[i].path);
	for (size_t i = 0; i < spec->n_mounts; i++) {
		free(spec->mount[i].to);
		free(spec->mount[i].from);
	}
	for (size_t i = 0; i < spec->n_envs; i++)
		free(spec->envs[i].text);
	for (size_t i = 0; i < spec->n_hooks; i++)
		free(spec->hook[i].path);
	free(spec->device);
	free(spec->rule);
	free(spec->mount);
	free(spec->envs);
	free(spec->hook);
	free(spec->cgroups_path);
	free(spec->text);
	*spec = (struct spec){ 0 };
}

/* Members that an object may have. */
struct want {
	const char *key;
	enum js_type type;
};
#define WANT_MAX 8

/* All of them in one walk; null is as good as absent. */
static int get(struct js obj, const struct want *want, size_t n, struct js *ret, struct gs_err *err)
{
	static const char *const names[] = { "",	 "null",     "a boolean", "a number",
					     "a string", "an array", "an object" };
	const char *keys[WANT_MAX];
	int r;

	for (size_t i = 0; i < n; i++)
		keys[i] = want[i].key;
	r = js_members(obj, keys, n, ret, err);
	for (size_t i = 0; i < n && r == 0; i++)
		if (!js_absent(ret[i]) && !js_is(ret[i], want[i].type))
			r = gs_err_set(err, EINVAL, "\"%s\" is not %s", want[i].key,
				       names[want[i].type]);
	return r;
}

/* The value of a string member; @absent (may be NULL) is what it is worth where it is absent. */
static int take_string(struct js v, const char *key, const char *absent, char **ret,
		       struct gs_err *err)
{
	if (js_absent(v)) {
		if (!absent)
			return gs_err_set(err, EINVAL, "\"%s\" is missing", key);
		*ret = gs_strdup(absent);
		return 0;
	}
	*ret = js_string(v);
	if (!*ret)
		return gs_err_set(err, EINVAL, "\"%s\" holds a NUL character", key);
	return 0;
}

static int take_int(struct js v, const char *key, int64_t absent, int64_t *ret, struct gs_err *err)
{
	*ret = absent;
	if (!js_absent(v) && !js_int64(v, ret))
		return gs_err_set(err, EINVAL, "\"%s\" is not a whole number: %.*s", key,
				  v.n > 40 ? 40 : (int)v.n, v.p);
	return 0;
}

/* The string's only letter if it is in @letters, 'u' read as 'c', its other name; else 0. */
static char one_letter(struct js v, const char *letters)
{
	cleanup_free char *s = js_string(v);

	if (!s || !s[0] || s[1] || !strchr(letters, s[0]))
		return 0;
	return s[0] == 'u' ? 'c' : s[0];
}

static int read_device(struct spec *spec, struct js raw, struct gs_err *err)
{
	static const struct want want[] = {
		{ "path", JS_STRING },
		{ "type", JS_STRING },
		{ "major", JS_NUMBER },
		{ "minor", JS_NUMBER },
	};
	struct js v[GS_ARRAY_SIZE(want)] = { { NULL, 0 } };
	struct spec_device *d;
	int r;

	spec->device = gs_grow(spec->device, spec->n_devices, sizeof(*d));
	d = &spec->device[spec->n_devices];
	*d = (struct spec_device){ .raw = raw };
	r = get(raw, want, GS_ARRAY_SIZE(want), v, err);
	if (r == 0)
		r = take_string(v[0], "path", NULL, &d->path, err);
	if (r < 0)
		return r;
	spec->n_devices++;
	d->type = one_letter(v[1], "cbup");
	if (!d->type)
		return gs_err_set(err, EINVAL, "type of %s is none of c, b, u, p", d->path);
	r = take_int(v[2], "major", 0, &d->major, err);
	if (r == 0)
		r = take_int(v[3], "minor", 0, &d->minor, err);
	return r;
}

/* Absent or empty: all. crun reads it so; runc 1.1 refuses it, which is its own affair. */
static int take_access(struct js v, unsigned int *ret, struct gs_err *err)
{
	cleanup_free char *s = js_string(v);
	unsigned int access = 0;

	for (const char *p = s ? s : ""; *p; p++) {
		if (*p == 'r')
			access |= ACCESS_R;
		else if (*p == 'w')
			access |= ACCESS_W;
		else if (*p == 'm')
			access |= ACCESS_M;
		else
			return gs_err_set(err, EINVAL, "access holds other letters than r, w, m");
	}
	*ret = access ? access : ACCESS_ALL;
	return 0;
}

static int read_rule(struct spec *spec, struct js raw, struct gs_err *err)
{
	static const struct want want[] = {
		{ "allow", JS_BOOL },	{ "type", JS_STRING },	 { "major", JS_NUMBER },
		{ "minor", JS_NUMBER }, { "access", JS_STRING },
	};
	struct spec_rule rule = { .type = 'a', .access = ACCESS_ALL, .raw = raw };
	struct js v[GS_ARRAY_SIZE(want)] = { { NULL, 0 } };
	int r;

	r = get(raw, want, GS_ARRAY_SIZE(want), v, err);
	if (r < 0)
		return r;
	(void)js_bool(v[0], &rule.allow); /* absent: false, as in Go */
	if (!js_absent(v[1]) && !js_string_is(v[1], ""))
		rule.type = one_letter(v[1], "abcup");
	if (!rule.type)
		return gs_err_set(err, EINVAL, "type of a device rule is none of a, b, c");
	r = take_int(v[2], "major", RULE_ANY, &rule.major, err);
	if (r == 0)
		r = take_int(v[3], "minor", RULE_ANY, &rule.minor, err);
	if (r == 0)
		r = take_access(v[4], &rule.access, err);
	if (r < 0)
		return r;
	spec->rule = gs_grow(spec->rule, spec->n_rules, sizeof(rule));
	spec->rule[spec->n_rules++] = rule;
	return 0;
}

static int read_mount(struct spec *spec, struct js raw, struct gs_err *err)
{
	static const struct want want[] = {
		{ "destination", JS_STRING },
		{ "source", JS_STRING },
		{ "type", JS_STRING },
		{ "options", JS_ARRAY },
	};
	struct js v[GS_ARRAY_SIZE(want)] = { { NULL, 0 } }, o;
	struct spec_mount *m;
	struct js_iter it;
	int r;

	spec->mount = gs_grow(spec->mount, spec->n_mounts, sizeof(*m));
	m = &spec->mount[spec->n_mounts];
	*m = (struct spec_mount){ .raw = raw };
	r = get(raw, want, GS_ARRAY_SIZE(want), v, err);
	if (r == 0)
		r = take_string(v[0], "destination", NULL, &m->to, err);
	if (r < 0)
		return r;
	spec->n_mounts++;
	r = take_string(v[1], "source", "", &m->from, err);
	if (r < 0)
		return r;
	m->bind = js_string_is(v[2], "bind");
	it = js_iter(v[3]);
	while (js_next_element(&it, &o))
		if (js_string_is(o, "bind") || js_string_is(o, "rbind"))
			m->bind = true;
	return 0;
}

static int read_env(struct spec *spec, struct js raw, struct gs_err *err)
{
	struct spec_env *e;
	char *text, *eq;

	text = js_string(raw);
	if (!text)
		return gs_err_set(err, EINVAL, "an entry is no string, or holds a NUL character");
	spec->envs = gs_grow(spec->envs, spec->n_envs, sizeof(*e));
	e = &spec->envs[spec->n_envs++];
	eq = strchr(text, '=');
	*e = (struct spec_env){ text, eq ? (size_t)(eq - text) : strlen(text), eq ? eq + 1 : "" };
	return 0;
}

static int read_each(struct spec *spec, struct js array, const char *where,
		     int (*read)(struct spec *, struct js, struct gs_err *), struct gs_err *err)
{
	struct js_iter it = js_iter(array);
	struct js v;
	int r;

	for (size_t i = 0; js_next_element(&it, &v); i++) {
		r = read(spec, v, err);
		if (r < 0)
			return gs_err_prefix(err, "%s[%zu]", where, i);
	}
	return 0;
}

static int read_hook(struct spec *spec, enum spec_stage stage, struct js raw, struct gs_err *err)
{
	static const struct want want[] = { { "path", JS_STRING }, { "args", JS_ARRAY } };
	struct js v[GS_ARRAY_SIZE(want)] = { { NULL, 0 } };
	struct spec_hook *h;
	int r;

	spec->hook = gs_grow(spec->hook, spec->n_hooks, sizeof(*h));
	h = &spec->hook[spec->n_hooks];
	r = get(raw, want, GS_ARRAY_SIZE(want), v, err);
	*h = (struct spec_hook){ .stage = stage, .raw = raw, .args = v[1] };
	if (r == 0)
		r = take_string(v[0], "path", NULL, &h->path, err);
	if (r == 0)
		spec->n_hooks++;
	return r;
}

static int read_hooks(struct spec *spec, struct gs_err *err)
{
	struct want want[STAGE_COUNT];
	int r;

	for (int i = 0; i < STAGE_COUNT; i++)
		want[i] = (struct want){ spec_stage_names[i], JS_ARRAY };
	r = get(spec->hooks, want, STAGE_COUNT, spec->stages, err);
	for (int i = 0; i < STAGE_COUNT && r == 0; i++) {
		struct js_iter it = js_iter(spec->stages[i]);
		struct js v;

		while (r == 0 && js_next_element(&it, &v))
			r = read_hook(spec, (enum spec_stage)i, v, err);
		if (r < 0)
			return gs_err_prefix(err, "hooks.%s", spec_stage_names[i]);
	}
	return r;
}

static int read_places(struct spec *spec, struct gs_err *err)
{
	static const struct want in_root[] = {
		{ "process", JS_OBJECT },     { "mounts", JS_ARRAY }, { "hooks", JS_OBJECT },
		{ "annotations", JS_OBJECT }, { "linux", JS_OBJECT },
	};
	static const struct want in_linux[] = {
		{ "devices", JS_ARRAY },
		{ "namespaces", JS_ARRAY },
		{ "resources", JS_OBJECT },
		{ "cgroupsPath", JS_STRING },
	};
	static const struct want in_process[] = { { "env", JS_ARRAY } };
	static const struct want in_resources[] = { { "devices", JS_ARRAY } };
	struct js root[GS_ARRAY_SIZE(in_root)] = { { NULL, 0 } };
	struct js linux_obj[GS_ARRAY_SIZE(in_linux)] = { { NULL, 0 } };
	int r;

	r = get(spec->root, in_root, GS_ARRAY_SIZE(in_root), root, err);
	if (r < 0)
		return r;
	spec->process = root[0];
	spec->mounts = root[1];
	spec->hooks = root[2];
	spec->annotations = root[3];
	spec->linux_obj = root[4];
	r = get(spec->process, in_process, 1, &spec->env, err);
	if (r == 0)
		r = get(spec->linux_obj, in_linux, GS_ARRAY_SIZE(in_linux), linux_obj, err);
	if (r < 0)
		return r;
	spec->devices = linux_obj[0];
	spec->namespaces = linux_obj[1];
	spec->resources = linux_obj[2];
	r = get(spec->resources, in_resources, 1, &spec->rules, err);
	if (r == 0)
		r = take_string(linux_obj[3], "cgroupsPath", "", &spec->cgroups_path, err);
	return r;
}

int spec_read(struct spec *spec, char *text, size_t len, struct gs_err *err)
{
	int r;

	*spec = (struct spec){ .text = text, .len = len };
	r = js_parse(text, len, &spec->root, err);
	if (r == 0 && !js_is(spec->root, JS_OBJECT))
		r = gs_err_set(err, EINVAL, "line 1, column 1: not a JSON object");
	if (r == 0)
		r = read_places(spec, err);
	if (r == 0)
		r = read_each(spec, spec->env, "process.env", read_env, err);
	if (r == 0)
		r = read_each(spec, spec->mounts, "mounts", read_mount, err);
	if (r == 0)
		r = read_hooks(spec, err);
	if (r == 0)
		r = read_each(spec, spec->devices, "linux.devices", read_device, err);
	if (r == 0)
		r = read_each(spec, spec->rules, "linux.resources.devices", read_rule, err);
	if (r < 0)
		spec_free(spec);
	return r;
}

int spec_annotation(const struct spec *spec, const char *key, char **ret, struct gs_err *err)
{
	struct js v;
	int r;

	r = js_map_member(spec->annotations, key, &v, err);
	if (r < 0)
		return gs_err_prefix(err, "annotations");
	if (js_absent(v)) {
		*ret = NULL;
		return 0;
	}
	*ret = js_string(v);
	if (!*ret && js_is(v, JS_STRING)) /* it may be a grant's name: never quoted */
		return gs_err_set(err, EINVAL, "annotation %s: the value holds a NUL character",
				  key);
	if (!*ret) {
		cleanup_free char *quoted = gs_quote(v.p, v.n);

		return gs_err_set(err, EINVAL, "annotation %s: %s is not a string", key, quoted);
	}
	return 0;
}

static bool is_our_key(struct js key)
{
	cleanup_free char *text = js_string(key);

	return text && strncmp(text, GS_ANNOTATION_PREFIX, strlen(GS_ANNOTATION_PREFIX)) == 0;
}

bool spec_is_annotated(const struct spec *spec)
{
	struct js_iter it = js_iter(spec->annotations);
	struct js k, v;

	while (js_next_member(&it, &k, &v))
		if (is_our_key(k))
			return true;
	return false;
}

char *spec_our_annotations(const struct spec *spec)
{
	struct js_iter it = js_iter(spec->annotations);
	struct gs_buf out = { 0 };
	struct js k, v;

	gs_buf_addc(&out, '{');
	while (js_next_member(&it, &k, &v)) {
		if (!is_our_key(k))
			continue;
		if (out.len > 1)
			gs_buf_addc(&out, ',');
		gs_buf_add(&out, k.p, k.n);
		gs_buf_addc(&out, ':');
		gs_buf_add(&out, v.p, v.n);
	}
	gs_buf_addc(&out, '}');
	return gs_buf_steal(&out);
}

static unsigned int apply_rule(unsigned int access, const struct spec_rule *rule)
{
	return rule->allow ? access | rule->access : access & ~rule->access;
}

unsigned int spec_rules_access(const struct spec *spec, char type, int64_t major, int64_t minor)
{
	unsigned int access = 0;

	if (spec->n_rules == 0 && spec->no_rules_allow_all)
		return ACCESS_ALL;
	for (size_t i = 0; i < spec->n_rules; i++) {
		const struct spec_rule *rule = &spec->rule[i];

		/* type a means everything, whatever numbers stand beside it */
		if (rule->type != 'a' &&
		    (rule->type != type || (rule->major != RULE_ANY && rule->major != major) ||
		     (rule->minor != RULE_ANY && rule->minor != minor)))
			continue;
		access = apply_rule(access, rule);
	}
	return access;
}

unsigned int spec_default_access(const struct spec *spec, char type)
{
	/* no driver has these numbers: only rules that name none can grant them */
	return spec_rules_access(spec, type, INT64_MAX, INT64_MAX);
}

bool spec_allows_all(const struct spec *spec)
{
	/* m alone is docker's and podman's default for everybody: a node can be made, not opened */
	return spec_default_access(spec, 'c') & (ACCESS_R | ACCESS_W);
}

const char *spec_env_value(const struct spec *spec, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = spec->n_envs; i-- > 0;)
		if (spec->envs[i].name_len == len && memcmp(spec->envs[i].text, name, len) == 0)
			return spec->envs[i].value;
	return NULL;
}
