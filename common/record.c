// SPDX-License-Identifier: Apache-2.0
/*
 * Records as text. Read with js.h and written by hand: the slice in "spec" is raw text of a
 * config.json and may hold numbers that a JSON library refuses or changes.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/js.h"
#include "common/record.h"
#include "common/utf8.h"
#include "common/xalloc.h"
#include "gpushare/registry.h"

/* A member of a file and the place of its value in the struct. */
struct member {
	const char *key;
	size_t offset;
	bool required;
};

static const struct member record_strs[] = {
	{ "id", offsetof(struct gs_record, id), true },
	{ "bundle", offsetof(struct gs_record, bundle), true },
	{ "pid_file", offsetof(struct gs_record, pid_file), false },
	{ "sandbox_id", offsetof(struct gs_record, sandbox_id), false },
	{ "pod_uid", offsetof(struct gs_record, pod_uid), false },
	{ "next", offsetof(struct gs_record, next), false },
	{ "root", offsetof(struct gs_record, root), false },
	{ "cgroups_path", offsetof(struct gs_record, cgroups_path), false },
	{ "boot_id", offsetof(struct gs_record, boot_id), false },
	{ "grant", offsetof(struct gs_record, grant), false },
};

static const struct member record_uints[] = {
	{ "start_ticks", offsetof(struct gs_record, start_ticks), false },
	{ "deadline_ms", offsetof(struct gs_record, deadline_ms), false },
};

static const struct member identity_strs[] = {
	{ "namespace", offsetof(struct gs_identity, ns), true },
	{ "pod", offsetof(struct gs_identity, pod), true },
	{ "container", offsetof(struct gs_identity, container), true },
};

static const char *const role_names[] = { "holder", "target", "borrower" };

const char *gs_role_name(enum gs_record_role role)
{
	return role_names[role];
}

void gs_record_free(struct gs_record *record)
{
	free(record->id);
	free(record->bundle);
	free(record->pid_file);
	gs_identity_free(&record->identity);
	free(record->sandbox_id);
	free(record->pod_uid);
	free(record->annotations);
	free(record->next);
	free(record->root);
	free(record->cgroups_path);
	free(record->boot_id);
	free(record->grant);
	gs_strv_free(&record->sources);
	free(record->spec);
	*record = (struct gs_record){ 0 };
}

void gs_hook_record_free(struct gs_hook_record *record)
{
	free(record->cgroup);
	*record = (struct gs_hook_record){ 0 };
}

/* Writing: the brace is there already, so every member begins with its comma. */
static void add_str(struct gs_buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	gs_buf_addf(out, ",\"%s\":", key);
	gs_buf_add_json(out, value);
}

static void add_strs(struct gs_buf *out, const struct member *members, size_t n, const void *base)
{
	for (size_t i = 0; i < n; i++)
		add_str(out, members[i].key,
			*(char *const *)((const char *)base + members[i].offset));
}

static void add_uint(struct gs_buf *out, const char *key, uint64_t value)
{
	gs_buf_addf(out, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void add_identity(struct gs_buf *out, const struct gs_identity *id)
{
	if (!gs_identity_is_set(id))
		return;
	gs_buf_adds(out, ",\"identity\":{\"namespace\":");
	gs_buf_add_json(out, id->ns);
	add_strs(out, identity_strs + 1, GS_ARRAY_SIZE(identity_strs) - 1, id);
	gs_buf_addc(out, '}');
}

static void add_strv(struct gs_buf *out, const char *key, const struct gs_strv *list)
{
	if (list->n == 0)
		return;
	gs_buf_addf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < list->n; i++) {
		if (i > 0)
			gs_buf_addc(out, ',');
		gs_buf_add_json(out, list->v[i]);
	}
	gs_buf_addc(out, ']');
}

static int add_object(struct gs_buf *out, const char *key, const char *text, size_t len,
		      struct gs_err *err)
{
	struct js v;
	int r = js_parse(text, len, &v, err);

	if (r < 0)
		return gs_err_prefix(err, "%s", key);
	if (!js_is(v, JS_OBJECT))
		return gs_err_set(err, EINVAL, "%s must be an object", key);
	gs_buf_addf(out, ",\"%s\":", key);
	gs_buf_add(out, v.p, v.n);
	return 0;
}

static int format(const struct gs_record *record, struct gs_buf *out, struct gs_err *err)
{
	int r = 0;

	gs_buf_addf(out, "{\"v\":%d", GS_REGISTRY_VERSION);
	add_strs(out, record_strs, GS_ARRAY_SIZE(record_strs), record);
	add_str(out, "role", gs_role_name(record->role));
	add_identity(out, &record->identity);
	for (size_t i = 0; i < GS_ARRAY_SIZE(record_uints); i++) {
		uint64_t value = *(const uint64_t *)((const char *)record + record_uints[i].offset);

		if (value)
			add_uint(out, record_uints[i].key, value);
	}
	add_strv(out, "sources", &record->sources);
	if (record->shared_pid)
		gs_buf_adds(out, ",\"shared_pid\":true");
	if (record->annotations)
		r = add_object(out, "annotations", record->annotations, strlen(record->annotations),
			       err);
	if (r == 0)
		r = add_object(out, "spec", record->spec, record->spec_len, err);
	gs_buf_adds(out, "}\n");
	return r;
}

/* A path that is no UTF-8 would be another path when it is read back. */
static int check_strs(const struct member *members, size_t n, const void *base, struct gs_err *err)
{
	for (size_t i = 0; i < n; i++) {
		const char *s = *(char *const *)((const char *)base + members[i].offset);

		if (!s && members[i].required)
			return gs_err_set(err, EINVAL, "%s is missing", members[i].key);
		if (s && !gs_utf8_valid(s))
			return gs_err_set(err, EINVAL, "%s is not UTF-8", members[i].key);
	}
	return 0;
}

/* Could the record be read back? */
static int check(const struct gs_record *record, struct gs_err *err)
{
	int r = check_strs(record_strs, GS_ARRAY_SIZE(record_strs), record, err);

	if (r == 0 && gs_identity_is_set(&record->identity))
		r = check_strs(identity_strs, GS_ARRAY_SIZE(identity_strs), &record->identity, err);
	if (r == 0 && !record->spec)
		r = gs_err_set(err, EINVAL, "spec is missing");
	for (size_t i = 0; r == 0 && i < record->sources.n; i++)
		if (!gs_id_valid(record->sources.v[i]))
			r = gs_err_set(err, EINVAL, "sources holds no container id");
	return r;
}

int gs_record_format(const struct gs_record *record, struct gs_buf *out, struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	int r;

	if (!record->id || !gs_id_valid(record->id))
		return gs_err_set(err, EINVAL, "the record has no usable container id");
	r = check(record, err);
	if (r == 0)
		r = format(record, &text, err);
	if (r < 0)
		return gs_err_prefix(err, "the record of %s", record->id);
	gs_buf_add(out, text.data, text.len);
	return 0;
}

int gs_hook_record_format(const char *id, const struct gs_hook_record *hook, struct gs_buf *out,
			  struct gs_err *err)
{
	if (!gs_id_valid(id))
		return gs_err_set(err, EINVAL, "the hook's record has no usable container id");
	if (hook->cgroup && !gs_utf8_valid(hook->cgroup))
		return gs_err_set(err, EINVAL, "the hook's record of %s: cgroup is not UTF-8", id);
	gs_buf_addf(out, "{\"v\":%d", GS_REGISTRY_VERSION);
	add_str(out, "id", id);
	add_uint(out, "pid", (uint64_t)hook->pid);
	add_uint(out, "start_ticks", hook->start_ticks);
	add_uint(out, "pid_ns", hook->pid_ns);
	add_str(out, "cgroup", hook->cgroup);
	gs_buf_adds(out, "}\n");
	return 0;
}

/* Reading: one object and its name, so that every message can tell where. */
struct reader {
	const char *name;
	struct js object;
	struct gs_err *err;
};

static int wrong(const struct reader *rd, const char *key, const char *must)
{
	return gs_err_set(rd->err, EINVAL, "%s: %s must be %s", rd->name, key, must);
}

/* Puts the file's name before what js.h said: whatever that was, the file is damaged. */
static int unreadable(const struct reader *rd)
{
	rd->err->code = EINVAL;
	return gs_err_prefix(rd->err, "%s", rd->name);
}

/* The member @key ({0} where it is absent or null). */
static int get(const struct reader *rd, const char *key, bool required, struct js *ret)
{
	int r = js_member(rd->object, key, ret, rd->err);

	if (r < 0)
		return unreadable(rd);
	if (js_absent(*ret)) {
		*ret = (struct js){ 0 };
		if (required)
			return gs_err_set(rd->err, EINVAL, "%s: %s is missing", rd->name, key);
	}
	return 0;
}

static int get_str(const struct reader *rd, const char *key, bool required, char **ret)
{
	struct js v;
	int r = get(rd, key, required, &v);

	if (r < 0 || !v.n)
		return r;
	*ret = js_string(v);
	return *ret ? 0 : wrong(rd, key, "a string");
}

static int get_strs(const struct reader *rd, const struct member *members, size_t n, void *base)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = get_str(rd, members[i].key, members[i].required,
			    (char **)((char *)base + members[i].offset));
	return r;
}

static int get_uint(const struct reader *rd, const char *key, bool required, uint64_t *ret)
{
	struct js v;
	int64_t n;
	int r = get(rd, key, required, &v);

	if (r < 0 || !v.n)
		return r;
	if (!js_int64(v, &n) || n < 0)
		return wrong(rd, key, "a whole number, not negative");
	*ret = (uint64_t)n;
	return 0;
}

static int get_object(const struct reader *rd, const char *key, bool required, struct js *ret)
{
	int r = get(rd, key, required, ret);

	if (r < 0 || !ret->n)
		return r;
	return js_is(*ret, JS_OBJECT) ? 0 : wrong(rd, key, "an object");
}

static int get_identity(const struct reader *rd, struct gs_identity *ret)
{
	struct js v;
	int r = get_object(rd, "identity", false, &v);
	struct reader inner = { rd->name, v, rd->err };

	if (r < 0 || !v.n)
		return r;
	return get_strs(&inner, identity_strs, GS_ARRAY_SIZE(identity_strs), ret);
}

static int get_ids(const struct reader *rd, const char *key, struct gs_strv *ret)
{
	struct js v, item;
	struct js_iter it;
	int r = get(rd, key, false, &v);

	if (r < 0 || !v.n)
		return r;
	if (!js_is(v, JS_ARRAY))
		return wrong(rd, key, "a list of container ids");
	for (it = js_iter(v); js_next_element(&it, &item);) {
		char *id = js_string(item);

		if (!id || !gs_id_valid(id)) {
			free(id);
			return wrong(rd, key, "a list of container ids");
		}
		gs_strv_take(ret, id);
	}
	return 0;
}

static int get_role(const struct reader *rd, enum gs_record_role *ret)
{
	struct js v;
	int r = get(rd, "role", true, &v);

	if (r < 0)
		return r;
	for (size_t i = 0; i < GS_ARRAY_SIZE(role_names); i++) {
		if (js_string_is(v, role_names[i])) {
			*ret = (enum gs_record_role)i;
			return 0;
		}
	}
	return wrong(rd, "role", "\"holder\", \"target\" or \"borrower\"");
}

/* Parses the text and checks what both kinds of file begin with. */
static int begin(struct reader *rd, const char *name, const char *id, const char *text, size_t len,
		 struct gs_err *err)
{
	cleanup_free char *got = NULL;
	uint64_t v = 0;
	int r;

	*rd = (struct reader){ .name = name, .err = err };
	r = js_parse(text, len, &rd->object, err);
	if (r < 0)
		return unreadable(rd);
	if (!js_is(rd->object, JS_OBJECT))
		return gs_err_set(err, EINVAL, "%s: not a JSON object", name);
	r = get_uint(rd, "v", true, &v);
	if (r < 0)
		return r;
	if (v != GS_REGISTRY_VERSION)
		return gs_err_set(err, EINVAL, "%s: v is %llu, and this version reads %d", name,
				  (unsigned long long)v, GS_REGISTRY_VERSION);
	r = get_str(rd, "id", true, &got);
	if (r < 0)
		return r;
	return strcmp(got, id) == 0 ? 0 : wrong(rd, "id", "that of the file's name");
}

/* The members that are objects or of a type of their own. */
static int parse_rest(const struct reader *rd, struct gs_record *record)
{
	struct js annotations = { 0 }, spec = { 0 }, shared = { 0 };
	int r = get_object(rd, "annotations", false, &annotations);

	if (r == 0)
		r = get_object(rd, "spec", true, &spec);
	if (r == 0)
		r = get(rd, "shared_pid", false, &shared);
	if (r < 0)
		return r;
	if (shared.n && !js_bool(shared, &record->shared_pid))
		return wrong(rd, "shared_pid", "true or false");
	if (annotations.n)
		record->annotations = gs_strndup(annotations.p, annotations.n);
	record->spec = gs_strndup(spec.p, spec.n);
	record->spec_len = spec.n;
	return 0;
}

static int parse(const struct reader *rd, struct gs_record *record)
{
	int r = get_strs(rd, record_strs, GS_ARRAY_SIZE(record_strs), record);

	for (size_t i = 0; r == 0 && i < GS_ARRAY_SIZE(record_uints); i++)
		r = get_uint(rd, record_uints[i].key, record_uints[i].required,
			     (uint64_t *)((char *)record + record_uints[i].offset));
	if (r == 0)
		r = get_role(rd, &record->role);
	if (r == 0)
		r = get_identity(rd, &record->identity);
	if (r == 0)
		r = get_ids(rd, "sources", &record->sources);
	return r < 0 ? r : parse_rest(rd, record);
}

int gs_record_parse(const char *name, const char *id, const char *text, size_t len,
		    struct gs_record *ret, struct gs_err *err)
{
	cleanup_record struct gs_record record = { 0 };
	struct gs_err own;
	struct reader rd;
	int r = begin(&rd, name, id, text, len, err ? err : &own);

	if (r == 0)
		r = parse(&rd, &record);
	if (r < 0)
		return r;
	*ret = record;
	record = (struct gs_record){ 0 };
	return 0;
}

int gs_hook_record_parse(const char *name, const char *id, const char *text, size_t len,
			 struct gs_hook_record *ret, struct gs_err *err)
{
	cleanup_hook_record struct gs_hook_record hook = { 0 };
	struct gs_err own;
	struct reader rd;
	uint64_t pid = 0;
	int r = begin(&rd, name, id, text, len, err ? err : &own);

	if (r == 0)
		r = get_uint(&rd, "pid", true, &pid);
	if (r == 0)
		r = get_uint(&rd, "start_ticks", true, &hook.start_ticks);
	if (r == 0)
		r = get_uint(&rd, "pid_ns", false, &hook.pid_ns);
	if (r == 0)
		r = get_str(&rd, "cgroup", false, &hook.cgroup);
	if (r < 0)
		return r;
	if (pid == 0 || pid > INT_MAX)
		return wrong(&rd, "pid", "a process number");
	hook.pid = (pid_t)pid;
	*ret = hook;
	hook = (struct gs_hook_record){ 0 };
	return 0;
}
