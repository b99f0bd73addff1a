// SPDX-License-Identifier: Apache-2.0
/* The JSON view: what is JSON, where mistakes are, and the walk over what was checked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/js.h"
#include "common/xalloc.h"

static struct js parse(const char *text)
{
	struct gs_err err = { 0 };
	struct js v = { 0 };

	if (js_parse(text, strlen(text), &v, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return v;
}

static void accepts_json(void **state)
{
	static const struct {
		const char *text;
		enum js_type type;
	} rows[] = {
		{ "{}", JS_OBJECT },
		{ " [ ] \n\r\t", JS_ARRAY },
		{ "null", JS_NULL },
		{ "true", JS_BOOL },
		{ "false", JS_BOOL },
		{ "\"\"", JS_STRING },
		{ "0", JS_NUMBER },
		{ "-0", JS_NUMBER },
		{ "-12.50e+3", JS_NUMBER },
		{ "1E-9", JS_NUMBER },
		{ "18446744073709551615", JS_NUMBER },
		{ "1234567890123456789012345678901234567890123456789012345678901234567890",
		  JS_NUMBER },
		{ "1e99999", JS_NUMBER },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFfFf\"", JS_STRING },
		{ "\"\\ud83d\\ude00\\uDBFF\\uDFFF\"", JS_STRING },
		{ "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"
		  "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
		  JS_STRING },
		{ "{\"a\":[{},[],{\"b\":null}],\"a\":1,\"\":{}}", JS_OBJECT },
		{ "{ \"a\" : 1 , \"b\" : [ 1 , 2 ] }", JS_OBJECT },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++)
		assert_int_equal(js_type(parse(rows[i].text)), rows[i].type);
	assert_int_equal(js_type((struct js){ 0 }), JS_NONE);
}

/* The value is the place in the text, without the white space around it. */
static void gives_the_place(void **state)
{
	const char *text = " \n [1, 2] \t";
	struct js v = parse(text);

	assert_ptr_equal(v.p, text + 3);
	assert_int_equal(v.n, 6);
}

static void refuses_what_is_none(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "", "line 1, column 1: the text ends" },
		{ " \n ", "line 2, column 2" },
		{ "{", "column 2" },
		{ "[", "column 2" },
		{ "[1", "ends inside" },
		{ "{\"a\"", "':'" },
		{ "{\"a\":", "ends where a value" },
		{ "{\"a\":1", "ends inside" },
		{ "[1,]", "column 4: expected a value" },
		{ "{\"a\":1,}", "column 8" },
		{ "{,}", "column 2" },
		{ "[,1]", "column 2" },
		{ "{1:2}", "column 2" },
		{ "{\"a\" 1}", "':'" },
		{ "{\"a\":1 \"b\":2}", "expected ',' or '}'" },
		{ "[1 2]", "expected ',' or ']'" },
		{ "[1}", "expected ',' or ']'" },
		{ "{\"a\":1]", "expected ',' or '}'" },
		{ "{}{}", "column 3: something follows" },
		{ "1 2", "something follows" },
		{ "{} x", "something follows" },
		{ "\xef\xbb\xbf{}", "column 1" },
		{ "01", "something follows" },
		{ "-", "malformed number" },
		{ "+1", "expected a value" },
		{ ".5", "expected a value" },
		{ "1.", "malformed number" },
		{ "1.e3", "malformed number" },
		{ "1e", "malformed number" },
		{ "1e+", "malformed number" },
		{ "0x10", "something follows" },
		{ "NaN", "expected a value" },
		{ "Infinity", "expected a value" },
		{ "nul", "expected a value" },
		{ "True", "expected a value" },
		{ "truex", "something follows" },
		{ "'a'", "expected a value" },
		{ "\"a", "unfinished" },
		{ "\"a\\", "unfinished" },
		{ "\"\\\"", "unfinished" },
		{ "\"\\x41\"", "unknown escape" },
		{ "\"\\u12\"", "four hex digits" },
		{ "\"\\u12g4\"", "four hex digits" },
		{ "\"\\u123", "four hex digits" },
		{ "\"\\ud800\"", "lone surrogate" },
		{ "\"\\ud800x\"", "lone surrogate" },
		{ "\"\\ud800\\n\"", "lone surrogate" },
		{ "\"\\ud800\\ud800\"", "lone surrogate" },
		{ "\"\\udc00\"", "lone surrogate" },
		{ "\"a\nb\"", "control character" },
		{ "\"\x01\"", "control character" },
		{ "\"\x1f\"", "control character" },
		{ "\"\xff\"", "invalid UTF-8" },
		{ "\"\x80\"", "invalid UTF-8" },
		{ "\"\xc0\xaf\"", "invalid UTF-8" }, /* overlong '/' */
		{ "\"\xc1\xbf\"", "invalid UTF-8" }, /* overlong */
		{ "\"\xe0\x9f\xbf\"", "invalid UTF-8" }, /* overlong */
		{ "\"\xf0\x8f\xbf\xbf\"", "invalid UTF-8" }, /* overlong */
		{ "\"\xed\xa0\x80\"", "invalid UTF-8" }, /* a surrogate */
		{ "\"\xf4\x90\x80\x80\"", "invalid UTF-8" }, /* beyond U+10FFFF */
		{ "\"\xf5\x80\x80\x80\"", "invalid UTF-8" },
		{ "\"\xc3\"", "invalid UTF-8" },
		{ "\"\xe2\x82\"", "invalid UTF-8" },
		{ "\"\xe2\x82", "invalid UTF-8" },
		{ "/**/{}", "column 1" },
		{ "{\n\t\"a\": tru\n}", "line 2, column 7" },
		{ "\f{}", "column 1" },
		{ "\xc2\xa0{}", "column 1" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct gs_err err = { 0 };
		struct js v = { "mark", 1 };
		int r = js_parse(rows[i].text, strlen(rows[i].text), &v, &err);

		if (r != -EINVAL || !strstr(err.msg, rows[i].words))
			fail_msg("row %zu (%s): %d, \"%s\" does not say \"%s\"", i, rows[i].text, r,
				 err.msg, rows[i].words);
		assert_string_equal(v.p, "mark");
	}
}

/* A NUL byte is white space nowhere, and a string may hold none. */
static void nul_bytes(void **state)
{
	struct gs_err err = { 0 };
	struct js v;

	assert_int_equal(js_parse("{}\0", 3, &v, &err), -EINVAL);
	assert_int_equal(js_parse("\"a\0b\"", 5, &v, &err), -EINVAL);
	assert_int_equal(js_parse("\"\\\0\"", 4, &v, &err), -EINVAL);
	assert_int_equal(js_parse("\0", 1, &v, &err), -EINVAL);
}

/* Every beginning of a text is read within its bounds (the sanitizers look). */
static void cut_texts(void **state)
{
	static const char text[] =
		"{\"a\\u00e9\\ud83d\\ude00\":[1.5e+3,true,null,\"\xf0\x9f\x98\x80"
		"\\n\"],\"b\":{\"c\":-0}}";

	for (size_t n = 0; n + 1 < sizeof(text); n++) {
		char *copy = gs_malloc(n);
		struct js v;

		memcpy(copy, text, n);
		assert_int_equal(js_parse(copy, n, &v, NULL), -EINVAL);
		free(copy);
	}
}

static char *nested(size_t depth, const char *open, const char *inner, const char *close)
{
	struct gs_buf out = { 0 };

	for (size_t i = 0; i < depth; i++)
		gs_buf_adds(&out, open);
	gs_buf_adds(&out, inner);
	for (size_t i = 0; i < depth; i++)
		gs_buf_adds(&out, close);
	return gs_buf_steal(&out);
}

static void depth_is_bounded(void **state)
{
	cleanup_free char *deepest = nested(JS_DEPTH_MAX, "[", "", "]");
	cleanup_free char *objects = nested(JS_DEPTH_MAX, "{\"a\":", "1", "}");
	cleanup_free char *mixed = nested(JS_DEPTH_MAX / 2, "[{\"a\":", "1", "}]");
	cleanup_free char *deeper = nested(JS_DEPTH_MAX + 1, "[", "", "]");
	cleanup_free char *open = nested(200000, "[", "", "");
	cleanup_free char *wrong = nested(JS_DEPTH_MAX / 2, "[{\"a\":", "1", "]}");
	struct gs_err err = { 0 };
	struct js_iter it;
	struct js v;

	v = parse(deepest);
	it = js_iter(v);
	assert_true(js_next_element(&it, &v));
	assert_int_equal(v.n, strlen(deepest) - 2);
	(void)parse(objects);
	(void)parse(mixed);
	assert_int_equal(js_parse(deeper, strlen(deeper), &v, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "10000"));
	assert_int_equal(js_parse_wrapped(deeper, strlen(deeper), &v, &err), 0);
	assert_int_equal(js_parse_wrapped(open, strlen(open), &v, &err), -E2BIG);
	assert_non_null(strstr(err.msg, "10008"));
	assert_int_equal(js_parse(open, strlen(open), &v, &err), -E2BIG);
	assert_int_equal(js_parse(wrong, strlen(wrong), &v, &err), -EINVAL);
}

static void walks_elements(void **state)
{
	static const char *const want[] = { "1",    "\"a,]\\\"\"", "[2,[3]]", "{\"b\":[4]}",
					    "null", "-1.5e3",	   "{}",      "[]" };
	struct js v = parse("[1 , \"a,]\\\"\",[2,[3]],\n{\"b\":[4]},null,-1.5e3,{}, [] ]");
	struct js_iter it = js_iter(v);
	struct js e;

	for (size_t i = 0; i < GS_ARRAY_SIZE(want); i++) {
		assert_true(js_next_element(&it, &e));
		assert_int_equal(e.n, strlen(want[i]));
		assert_memory_equal(e.p, want[i], e.n);
	}
	assert_false(js_next_element(&it, &e));
	assert_false(js_next_element(&it, &e));
	it = js_iter(parse("[ ]"));
	assert_false(js_next_element(&it, &e));
	it = js_iter(parse("7"));
	assert_false(js_next_element(&it, &e));
	it = js_iter((struct js){ 0 });
	assert_false(js_next_element(&it, &e));
}

static void walks_members(void **state)
{
	struct js v = parse("{ \"a\" :1,\"b:\\\"}\" : {\"x\":[1,{}]} ,\"\":\"\"}");
	struct js_iter it = js_iter(v);
	struct js k, m;

	assert_true(js_next_member(&it, &k, &m));
	assert_true(js_string_is(k, "a"));
	assert_memory_equal(m.p, "1", m.n);
	assert_true(js_next_member(&it, &k, &m));
	assert_true(js_string_is(k, "b:\"}"));
	assert_int_equal(m.n, strlen("{\"x\":[1,{}]}"));
	assert_true(js_next_member(&it, &k, &m));
	assert_true(js_string_is(k, ""));
	assert_true(js_string_is(m, ""));
	assert_false(js_next_member(&it, &k, &m));
}

static void finds_members(void **state)
{
	struct js v = parse("{\"a\":1,\"\\u0062\":2,\"c\":null,\"D\":4}");
	struct gs_err err = { 0 };
	struct js m;
	int64_t n;

	assert_int_equal(js_member(v, "a", &m, &err), 0);
	assert_true(js_int64(m, &n) && n == 1);
	assert_int_equal(js_member(v, "b", &m, &err), 0);
	assert_true(js_int64(m, &n) && n == 2);
	assert_int_equal(js_member(v, "c", &m, &err), 0);
	assert_true(js_absent(m) && m.n == 4);
	assert_int_equal(js_member(v, "e", &m, &err), 0);
	assert_true(js_absent(m) && m.n == 0);
	/* no object: nothing in it */
	assert_int_equal(js_member(parse("[1]"), "a", &m, &err), 0);
	assert_int_equal(m.n, 0);
	assert_int_equal(js_member((struct js){ 0 }, "a", &m, &err), 0);
	assert_int_equal(m.n, 0);
}

/* What Go's decoder would take for the same member may not hide a second meaning. */
static void members_that_go_confuses(void **state)
{
	static const struct {
		const char *text, *key;
	} twice[] = {
		{ "{\"linux\":1,\"linux\":2}", "linux" },
		{ "{\"linux\":1,\"Linux\":2}", "linux" },
		{ "{\"LINUX\":1}", "linux" },
		{ "{\"\\u004cinux\":1}", "linux" },
		{ "{\"linu\\u0078\":1,\"linux\":2}", "linux" },
		{ "{\"hook\xc5\xbf\":1}", "hooks" }, /* U+017F folds to s */
		{ "{\"\xc5\xbftages\":1}", "stages" },
		{ "{\"hoo\xe2\x84\xaas\":1}", "hooks" }, /* U+212A folds to k */
		{ "{\"hoo\\u212as\":1}", "hooks" },
		{ "{\"cgroupspath\":1}", "cgroupsPath" },
		{ "{\"cgroupsPath\":1,\"CgroupsPath\":1}", "cgroupsPath" },
	};
	static const struct {
		const char *text, *key;
	} once[] = {
		{ "{\"linux\":1,\"linux2\":2,\"linu\":3,\"\":4}", "linux" },
		{ "{\"\xc3\xa9\":1,\"linux\":1}", "linux" },
		{ "{\"l\\u0000nux\":1,\"linux\":1}", "linux" },
		{ "{\"lin\xc5\xbf\":1,\"linux\":1}", "linux" },
	};
	struct gs_err err = { 0 };
	struct js m;

	for (size_t i = 0; i < GS_ARRAY_SIZE(twice); i++)
		if (js_member(parse(twice[i].text), twice[i].key, &m, &err) != -EEXIST)
			fail_msg("%s", twice[i].text);
	for (size_t i = 0; i < GS_ARRAY_SIZE(once); i++)
		if (js_member(parse(once[i].text), once[i].key, &m, &err) != 0 || m.n != 1)
			fail_msg("%s", once[i].text);
}

/* Maps have keys of their own: only the same key twice is one too many. */
static void map_members(void **state)
{
	struct gs_err err = { 0 };
	struct js m;

	assert_int_equal(js_map_member(parse("{\"a/b\":1,\"A/B\":2}"), "a/b", &m, &err), 0);
	assert_memory_equal(m.p, "1", m.n);
	assert_int_equal(js_map_member(parse("{\"a/b\":1,\"a\\/b\":2}"), "a/b", &m, &err), -EEXIST);
	assert_int_equal(js_map_member(parse("{\"c\":1}"), "a", &m, &err), 0);
	assert_int_equal(m.n, 0);
	assert_int_equal(js_map_member((struct js){ 0 }, "a", &m, &err), 0);
	assert_int_equal(m.n, 0);
}

static void paths(void **state)
{
	struct js v = parse("{\"a\":{\"b\":{\"c\":5}},\"d\":[],\"e\":{\"f\":1,\"F\":2}}");
	struct gs_err err = { 0 };
	struct js m;

	assert_int_equal(js_path(v, &m, &err, "a", "b", "c", NULL), 0);
	assert_memory_equal(m.p, "5", m.n);
	assert_int_equal(js_path(v, &m, &err, "a", "x", "c", NULL), 0);
	assert_int_equal(m.n, 0);
	assert_int_equal(js_path(v, &m, &err, "d", "x", NULL), 0);
	assert_int_equal(m.n, 0);
	assert_int_equal(js_path(v, &m, &err, "e", "f", NULL), -EEXIST);
}

static void strings(void **state)
{
	static const struct {
		const char *json, *value; /* NULL: none */
	} rows[] = {
		{ "\"\"", "" },
		{ "\"a b\"", "a b" },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
		{ "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac" },
		{ "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
		{ "\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf" },
		{ "\"x\\u0001\"", "x\x01" },
		{ "\"a\\u0000b\"", NULL },
		{ "1", NULL },
		{ "null", NULL },
		{ "[]", NULL },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct js v = parse(rows[i].json);
		cleanup_free char *s = js_string(v);

		if (!rows[i].value) {
			assert_null(s);
			assert_false(js_string_is(v, "a"));
			continue;
		}
		assert_non_null(s);
		assert_string_equal(s, rows[i].value);
		assert_true(js_string_is(v, rows[i].value));
		assert_false(js_string_is(v, "other"));
	}
	assert_null(js_string((struct js){ 0 }));
	assert_false(js_string_is(parse("\"abc\""), "ab"));
	assert_false(js_string_is(parse("\"ab\""), "abc"));
}

static void whole_numbers(void **state)
{
	static const struct {
		const char *json;
		int64_t value;
	} good[] = {
		{ "0", 0 },
		{ "-0", 0 },
		{ "7", 7 },
		{ "-1", -1 },
		{ "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN },
	};
	static const char *const bad[] = { "9223372036854775808",
					   "-9223372036854775809",
					   "18446744073709551615",
					   "18446744073709551616",
					   "99999999999999999999999999",
					   "1.0",
					   "1e3",
					   "1E0",
					   "-0.5",
					   "\"1\"",
					   "true",
					   "null",
					   "[]" };
	int64_t n;

	for (size_t i = 0; i < GS_ARRAY_SIZE(good); i++) {
		assert_true(js_int64(parse(good[i].json), &n));
		assert_true(n == good[i].value);
	}
	n = 4711;
	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++)
		if (js_int64(parse(bad[i]), &n) || n != 4711)
			fail_msg("%s", bad[i]);
	assert_false(js_int64((struct js){ 0 }, &n));
}

static void booleans(void **state)
{
	bool b = false;

	assert_true(js_bool(parse("true"), &b) && b);
	assert_true(js_bool(parse("false"), &b) && !b);
	b = true;
	assert_false(js_bool(parse("0"), &b));
	assert_false(js_bool(parse("\"true\""), &b));
	assert_false(js_bool(parse("null"), &b));
	assert_false(js_bool((struct js){ 0 }, &b));
	assert_true(b);
}

static void places(void **state)
{
	const char *text = "a\nbc\n\nd";
	size_t line, col;

	js_where(text, text, &line, &col);
	assert_true(line == 1 && col == 1);
	js_where(text, text + 3, &line, &col);
	assert_true(line == 2 && col == 2);
	js_where(text, text + 6, &line, &col);
	assert_true(line == 4 && col == 1);
	js_where(text, text + 7, &line, &col);
	assert_true(line == 4 && col == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_json),
		cmocka_unit_test(gives_the_place),
		cmocka_unit_test(refuses_what_is_none),
		cmocka_unit_test(nul_bytes),
		cmocka_unit_test(cut_texts),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(walks_elements),
		cmocka_unit_test(walks_members),
		cmocka_unit_test(finds_members),
		cmocka_unit_test(members_that_go_confuses),
		cmocka_unit_test(map_members),
		cmocka_unit_test(paths),
		cmocka_unit_test(strings),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(booleans),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests_name("js", tests, NULL, NULL);
}
