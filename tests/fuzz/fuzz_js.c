// SPDX-License-Identifier: Apache-2.0
/*
 * The JSON view, beside jansson. What jansson takes for JSON we take for JSON, and the other way
 * round, except where the difference is meant:
 *
 *   - numbers beyond long long or double are "too big" to jansson, and text to us
 *   - jansson ends at 2048 levels, we at JS_DEPTH_MAX
 *   - jansson refuses U+0000 in keys, always
 *   - jansson passes over a NUL byte behind a number (its unget does not know one)
 *   - keys that stand twice: jansson keeps the last, we tell when we look for one
 *
 * Then the whole tree is walked in both.
 */
#include <errno.h>
#include <jansson.h>

#include "common/buf.h"
#include "common/js.h"
#include "tests/fuzz/fuzz.h"

static void compare(struct js v, const json_t *json);

static bool lies_in(struct js inner, struct js outer)
{
	return inner.p >= outer.p && inner.p + inner.n <= outer.p + outer.n;
}

static void compare_string(struct js v, const json_t *json)
{
	char *s = js_string(v);
	size_t len = json_string_length(json);

	CHECK(js_type(v) == JS_STRING);
	if (memchr(json_string_value(json), '\0', len)) {
		CHECK(!s); /* no C string */
		return;
	}
	CHECK(s && strlen(s) == len && memcmp(s, json_string_value(json), len) == 0);
	CHECK(js_string_is(v, s));
	free(s);
}

static void compare_object(struct js v, const json_t *json)
{
	struct js_iter it = js_iter(v);
	struct js k, m, found;
	size_t n = 0;

	CHECK(js_type(v) == JS_OBJECT);
	while (js_next_member(&it, &k, &m)) {
		char *key = js_string(k);
		int r;

		CHECK(lies_in(k, v) && lies_in(m, v) && key);
		n++;
		r = js_map_member(v, key, &found, NULL);
		CHECK(r == 0 || r == -EEXIST);
		if (r == 0) {
			CHECK(found.p == m.p && found.n == m.n);
			compare(m, json_object_get(json, key));
		}
		/* js_member() is stricter: it also minds the case; its keys are never empty */
		if (key[0] && js_member(v, key, &found, NULL) == 0)
			CHECK(r == 0 && found.p == m.p && found.n == m.n);
		free(key);
	}
	CHECK(n >= json_object_size(json));
}

static void compare_array(struct js v, const json_t *json)
{
	struct js_iter it = js_iter(v);
	size_t n = 0;
	struct js e;

	CHECK(js_type(v) == JS_ARRAY);
	while (js_next_element(&it, &e)) {
		CHECK(lies_in(e, v));
		compare(e, json_array_get(json, n++));
	}
	CHECK(n == json_array_size(json));
}

static void compare(struct js v, const json_t *json)
{
	bool b = false;
	int64_t n = 0;

	CHECK(json && v.n);
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		compare_object(v, json);
		break;
	case JSON_ARRAY:
		compare_array(v, json);
		break;
	case JSON_STRING:
		compare_string(v, json);
		break;
	case JSON_INTEGER:
		CHECK(js_type(v) == JS_NUMBER && js_int64(v, &n) && n == json_integer_value(json));
		break;
	case JSON_REAL:
		CHECK(js_type(v) == JS_NUMBER && !js_int64(v, &n));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		CHECK(js_bool(v, &b) && b == json_is_true(json));
		break;
	case JSON_NULL:
		CHECK(js_type(v) == JS_NULL && js_absent(v));
		break;
	}
}

/* Is it one of the differences that are meant? */
static bool is_meant(const json_error_t *error)
{
	switch (json_error_code(error)) {
	case json_error_numeric_overflow:
	case json_error_stack_overflow:
	case json_error_null_byte_in_key:
		return true;
	default:
		return false;
	}
}

/* Walks everything, also what jansson would not have: the sanitizers look. */
static size_t walk(struct js v, unsigned int depth)
{
	struct js_iter it = js_iter(v);
	size_t n = 1;
	struct js k, m;

	if (depth == 64)
		return n;
	if (js_is(v, JS_OBJECT))
		while (js_next_member(&it, &k, &m))
			n += walk(k, depth + 1) + walk(m, depth + 1);
	else
		while (js_next_element(&it, &m))
			n += walk(m, depth + 1);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = gs_malloc(size);
	struct gs_err err = { 0 };
	json_error_t error;
	size_t line, col;
	struct js v;
	json_t *json;
	int r;

	memcpy(text, data, size);
	r = js_parse(text, size, &v, &err);
	json = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (r < 0) {
		check_error(r, &err);
		CHECK(r == -EINVAL || r == -E2BIG);
		CHECK(!json || memchr(text, '\0', size));
	} else {
		CHECK(v.p >= text && v.n && v.p + v.n <= text + size);
		CHECK(json || is_meant(&error));
		if (json)
			compare(v, json);
		(void)walk(v, 0);
		js_where(text, v.p, &line, &col);
		CHECK(line >= 1 && col >= 1);
	}
	json_decref(json);
	free(text);
	return 0;
}
