// SPDX-License-Identifier: Apache-2.0
/* Our own JSON files: parsing, typed members, and what the messages say. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "tests/unit/tmpdir.h"

static json_t *parse(const char *text)
{
	struct gs_err err = { 0 };
	json_t *json = NULL;

	if (gs_json_parse("grant.json", text, strlen(text), &json, &err) < 0)
		fail_msg("%s", err.msg);
	return json;
}

static void expect_error(int r, const struct gs_err *err, const char *want)
{
	assert_int_equal(r, -EINVAL);
	assert_int_equal(err->code, EINVAL);
	if (!strstr(err->msg, want))
		fail_msg("\"%s\" does not say \"%s\"", err->msg, want);
}

static void test_parse_names_file_line_and_column(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "grant.json:1:0: " },
		{ "{\n  \"v\": 1,\n  oops\n}", "grant.json:3:" },
		{ "{\n\"a\": 1,\n\"a\": 2}", "grant.json:3:" },
		{ "{\"a\": 1,\n\"a\": 2}", "duplicate object key" },
		{ "[1]", "grant.json:1:1: must be a JSON object" },
		{ "17", "grant.json:1:1: must be a JSON object" },
		{ "{} {}", "grant.json:1:" },
		{ "{\"a\":\"\xff\"}", "grant.json:1:" },
		{ "{\"a\":18446744073709551616}", "too big integer" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct gs_err err = { 0 };
		json_t *json = NULL;
		int r = gs_json_parse("grant.json", rows[i].text, strlen(rows[i].text), &json,
				      &err);

		expect_error(r, &err, rows[i].want);
		assert_null(json);
	}
}

static void test_read_of_a_file(void **state)
{
	char *dir = tmpdir_make();
	struct gs_err err = { 0 };
	json_t *json = NULL;

	tmpdir_write(dir, "x.json", "{\"v\":1}");
	assert_int_equal(gs_json_read(AT_FDCWD, tmpdir_path(dir, "x.json"), 0, 7, &json, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(json, "v")), 1);
	json_decref(json);
	json = NULL;
	assert_int_equal(gs_json_read(AT_FDCWD, tmpdir_path(dir, "x.json"), 0, 6, &json, &err),
			 -EFBIG);
	assert_int_equal(gs_json_read(AT_FDCWD, tmpdir_path(dir, "y.json"), 0, 6, &json, &err),
			 -ENOENT);
	tmpdir_write(dir, "x.json", "{\"v\":");
	assert_int_equal(gs_json_read(AT_FDCWD, tmpdir_path(dir, "x.json"), 0, 100, &json, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, tmpdir_path(dir, "x.json:1:5")));
	assert_null(json);
	tmpdir_remove(dir);
}

static void test_strings(void **state)
{
	cleanup_json json_t *obj = parse("{\"s\":\"text\",\"n\":1,\"z\":null}");
	cleanup_free char *s = gs_strdup("before");
	struct gs_err err = { 0 };

	assert_int_equal(gs_json_str(obj, "f", "none", false, &s, &err), 0);
	assert_string_equal(s, "before");
	assert_int_equal(gs_json_str(obj, "f", "s", true, &s, &err), 0);
	assert_string_equal(s, "text");
	assert_int_equal(err.code, 0);
	expect_error(gs_json_str(obj, "f", "n", false, &s, &err), &err, "f: n must be a string");
	expect_error(gs_json_str(obj, "f", "z", false, &s, &err), &err, "f: z must be a string");
	expect_error(gs_json_str(obj, "f", "none", true, &s, &err), &err, "f: none is missing");
	assert_string_equal(s, "text");
}

static void test_numbers(void **state)
{
	cleanup_json json_t *obj =
		parse("{\"z\":0,\"big\":9223372036854775807,\"neg\":-1,\"r\":1.0,\"s\":\"1\"}");
	struct gs_err err = { 0 };
	uint64_t n = 7;

	assert_int_equal(gs_json_uint(obj, "f", "none", false, &n, &err), 0);
	assert_int_equal(n, 7);
	assert_int_equal(gs_json_uint(obj, "f", "z", true, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(gs_json_uint(obj, "f", "big", true, &n, &err), 0);
	assert_true(n == (uint64_t)INT64_MAX);
	expect_error(gs_json_uint(obj, "f", "neg", true, &n, &err), &err, "neg must be");
	expect_error(gs_json_uint(obj, "f", "r", true, &n, &err), &err, "r must be");
	expect_error(gs_json_uint(obj, "f", "s", true, &n, &err), &err, "s must be");
	expect_error(gs_json_uint(obj, "f", "none", true, &n, &err), &err, "none is missing");
	assert_true(n == (uint64_t)INT64_MAX);
}

static void test_lists(void **state)
{
	cleanup_json json_t *obj =
		parse("{\"l\":[\"a\",\"b\"],\"e\":[],\"m\":[\"a\",1],\"s\":\"a\"}");
	cleanup_strv struct gs_strv list = { 0 };
	struct gs_err err = { 0 };

	gs_strv_add(&list, "before");
	assert_int_equal(gs_json_strv(obj, "f", "none", false, &list, &err), 0);
	assert_int_equal(list.n, 1);
	expect_error(gs_json_strv(obj, "f", "m", false, &list, &err), &err,
		     "m must be a list of strings");
	expect_error(gs_json_strv(obj, "f", "s", false, &list, &err), &err,
		     "s must be a list of strings");
	expect_error(gs_json_strv(obj, "f", "none", true, &list, &err), &err, "none is missing");
	assert_string_equal(list.v[0], "before");
	assert_int_equal(gs_json_strv(obj, "f", "l", true, &list, &err), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[1], "b");
	assert_int_equal(gs_json_strv(obj, "f", "e", true, &list, &err), 0);
	assert_int_equal(list.n, 0);
}

static void test_names(void **state)
{
	static const char *const kinds[] = { "share", "spot", "other", NULL };
	cleanup_json json_t *obj = parse("{\"k\":\"spot\",\"w\":\"Spot\",\"n\":1}");
	struct gs_err err = { 0 };
	int kind = 5;

	assert_int_equal(gs_json_enum(obj, "f", "none", false, kinds, &kind, &err), 0);
	assert_int_equal(kind, 5);
	assert_int_equal(gs_json_enum(obj, "f", "k", true, kinds, &kind, &err), 0);
	assert_int_equal(kind, 1);
	expect_error(gs_json_enum(obj, "f", "w", true, kinds, &kind, &err), &err,
		     "f: w must be \"share\", \"spot\" or \"other\"");
	expect_error(gs_json_enum(obj, "f", "n", true, kinds, &kind, &err), &err, "n must be");
	expect_error(gs_json_enum(obj, "f", "none", true, kinds, &kind, &err), &err, "is missing");
	assert_int_equal(kind, 1);
}

static void test_unknown_keys(void **state)
{
	static const char *const known[] = { "a", "b", NULL };
	cleanup_json json_t *good = parse("{\"b\":1}"), *bad = parse("{\"a\":1,\"b\\n\":1}");
	struct gs_err err = { 0 };

	assert_int_equal(gs_json_known(good, "f", known, &err), 0);
	assert_int_equal(err.code, 0);
	expect_error(gs_json_known(bad, "f", known, &err), &err, "f: unknown key \"b?\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_names_file_line_and_column),
		cmocka_unit_test(test_read_of_a_file),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_unknown_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
