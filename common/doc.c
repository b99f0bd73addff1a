// SPDX-License-Identifier: Apache-2.0
/* JSON files that people write, read against a table of keys. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/doc.h"
#include "common/duration.h"
#include "common/quantity.h"
#include "common/xalloc.h"

int gs_doc_wrong(const struct gs_doc *doc, struct js at, struct gs_err *err, const char *fmt, ...)
{
	char msg[GS_ERR_MAX];
	size_t line, col;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	js_where(doc->text, at.p, &line, &col);
	return gs_err_set(err, EINVAL, "%s:%zu:%zu: %s", doc->name, line, col, msg);
}

int gs_doc_parse(const struct gs_doc *doc, size_t len, struct js *ret, struct gs_err *err)
{
	struct js root;
	int r;

	r = js_parse(doc->text, len, &root, err);
	if (r < 0)
		return gs_err_prefix(err, "%s", doc->name);
	if (!js_is(root, JS_OBJECT))
		return gs_doc_wrong(doc, root, err, "must be a JSON object");
	*ret = root;
	return 0;
}

static bool has_type(struct js v, enum gs_doc_type type)
{
	int64_t n;

	switch (type) {
	case GS_DOC_STRING:
	case GS_DOC_PATH:
	case GS_DOC_DURATION:
	case GS_DOC_QUANTITY:
		return js_is(v, JS_STRING);
	case GS_DOC_BOOL:
		return js_is(v, JS_BOOL);
	case GS_DOC_UINT:
		return js_int64(v, &n) && n >= 0;
	case GS_DOC_LIST:
		return js_is(v, JS_ARRAY);
	case GS_DOC_OBJECT:
		return js_is(v, JS_OBJECT);
	}
	return false;
}

static const char *type_name(enum gs_doc_type type)
{
	static const char *const names[] = { "a string", "true or false", "a whole number from 0",
					     "a list",	 "an object",	  "a string",
					     "a string", "a string" };

	return names[type];
}

int gs_doc_members(const struct gs_doc *doc, struct js object, const char *what,
		   const struct gs_doc_key *keys, struct js *ret, struct gs_err *err)
{
	struct js_iter it = js_iter(object);
	uint32_t seen = 0;
	struct js k, v;
	size_t i;

	if (!js_is(object, JS_OBJECT))
		return gs_doc_wrong(doc, object, err, "%s must be an object", what);
	for (i = 0; keys[i].name; i++)
		ret[i] = (struct js){ 0 };
	while (js_next_member(&it, &k, &v)) {
		/* The first letter rules nearly every key out; an escaped one is never ours. */
		for (i = 0; keys[i].name; i++)
			if (keys[i].name[0] == k.p[1] && js_string_is(k, keys[i].name))
				break;
		if (!keys[i].name)
			return gs_doc_wrong(doc, k, err, "unknown key %.*s in %s", (int)k.n, k.p,
					    what);
		if (seen & (1U << i))
			return gs_doc_wrong(doc, k, err, "key \"%s\" stands twice", keys[i].name);
		seen |= 1U << i;
		if (js_absent(v))
			continue;
		if (!has_type(v, keys[i].type))
			return gs_doc_wrong(doc, v, err, "%s must be %s", keys[i].name,
					    type_name(keys[i].type));
		ret[i] = v;
	}
	for (i = 0; keys[i].name; i++)
		if (keys[i].required && !ret[i].n)
			return gs_doc_wrong(doc, object, err, "key \"%s\" is missing in %s",
					    keys[i].name, what);
	return 0;
}

int gs_doc_string(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		  struct gs_err *err)
{
	char *s;

	if (!v.n)
		return 0;
	s = js_string(v);
	if (!s)
		return gs_doc_wrong(doc, v, err, "%s must be a string without U+0000", key);
	free(*ret);
	*ret = s;
	return 0;
}

int gs_doc_absolute(const struct gs_doc *doc, struct js at, const char *key, const char *path,
		    struct gs_err *err)
{
	if (path[0] == '/')
		return 0;
	return gs_doc_wrong(doc, at, err, "%s must be an absolute path, not \"%s\"", key, path);
}

int gs_doc_path(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		struct gs_err *err)
{
	int r = gs_doc_string(doc, v, key, ret, err);

	return r < 0 || !v.n ? r : gs_doc_absolute(doc, v, key, *ret, err);
}

int gs_doc_strings(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
		   struct gs_err *err)
{
	cleanup_strv struct gs_strv list = { 0 };
	struct js_iter it = js_iter(v);
	struct js item;

	if (!v.n)
		return 0;
	while (js_next_element(&it, &item)) {
		char *s = js_string(item);

		if (!s)
			return gs_doc_wrong(doc, item, err, "%s must be a list of strings", key);
		gs_strv_take(&list, s);
	}
	gs_strv_free(ret);
	*ret = list;
	list = (struct gs_strv){ 0 };
	return 0;
}

int gs_doc_uint(const struct gs_doc *doc, struct js v, const char *key, uint64_t max, uint64_t *ret,
		struct gs_err *err)
{
	int64_t n;

	if (!v.n)
		return 0;
	if (!js_int64(v, &n) || n < 0 || (uint64_t)n > max)
		return gs_doc_wrong(doc, v, err, "%s must be at most %llu", key,
				    (unsigned long long)max);
	*ret = (uint64_t)n;
	return 0;
}

void gs_doc_bool(struct js v, bool *ret)
{
	(void)js_bool(v, ret);
}

int gs_doc_enum(const struct gs_doc *doc, struct js v, const char *key, const char *const *names,
		int *ret, struct gs_err *err)
{
	cleanup_buf struct gs_buf all = { 0 };

	if (!v.n)
		return 0;
	for (int i = 0; names[i]; i++) {
		if (js_string_is(v, names[i])) {
			*ret = i;
			return 0;
		}
	}
	for (int i = 0; names[i]; i++)
		gs_buf_addf(&all, "%s\"%s\"", i == 0 ? "" : names[i + 1] ? ", " : " or ", names[i]);
	return gs_doc_wrong(doc, v, err, "%s must be %s", key, all.data);
}

int gs_doc_duration(const struct gs_doc *doc, struct js v, const char *key, unsigned int min,
		    unsigned int *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct gs_err why = { 0 };
	uint64_t ms;
	int r;

	if (!v.n)
		return 0;
	r = gs_doc_string(doc, v, key, &text, err);
	if (r < 0)
		return r;
	if (gs_duration_ms(text, GS_DOC_DURATION_MAX, &ms, &why) < 0)
		return gs_doc_wrong(doc, v, err, "%s: %s", key, why.msg);
	if (ms < min)
		return gs_doc_wrong(doc, v, err, "%s must be at least %ums", key, min);
	*ret = (unsigned int)ms;
	return 0;
}

int gs_doc_quantity(const struct gs_doc *doc, struct js v, const char *key, int64_t unit,
		    uint64_t *ret, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct gs_err why = { 0 };
	int64_t milli;
	int r;

	if (!v.n)
		return 0;
	r = gs_doc_string(doc, v, key, &text, err);
	if (r < 0)
		return r;
	if (gs_quantity_milli(text, &milli, &why) < 0)
		return gs_doc_wrong(doc, v, err, "%s: %s", key, why.msg);
	*ret = (uint64_t)(milli / unit);
	return 0;
}
