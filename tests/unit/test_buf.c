// SPDX-License-Identifier: Apache-2.0
/* Buffers and lists of strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"

static void grows_and_ends_in_nul(void **state)
{
	cleanup_buf struct gs_buf buf = { 0 };

	for (int i = 0; i < 1000; i++) {
		gs_buf_addc(&buf, 'x');
		assert_int_equal(buf.len, i + 1);
		assert_int_equal(buf.data[buf.len], '\0');
	}
	gs_buf_adds(&buf, "yz");
	gs_buf_addf(&buf, "%s-%d", "word", 7);
	assert_int_equal(buf.len, 1008);
	assert_string_equal(buf.data + 998, "xxyzword-7");
}

static void keeps_nul_bytes(void **state)
{
	cleanup_buf struct gs_buf buf = { 0 };

	gs_buf_add(&buf, "a\0b", 3);
	gs_buf_add(&buf, NULL, 0);
	assert_int_equal(buf.len, 3);
	assert_memory_equal(buf.data, "a\0b", 4);
}

static void long_formats(void **state)
{
	cleanup_buf struct gs_buf buf = { 0 };
	char word[5000];

	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	gs_buf_addf(&buf, "<%s>", word);
	assert_int_equal(buf.len, sizeof(word) + 1);
	assert_int_equal(buf.data[0], '<');
	assert_int_equal(buf.data[buf.len - 1], '>');
}

static void steal_leaves_it_empty(void **state)
{
	struct gs_buf buf = { 0 };
	char *s;

	s = gs_buf_steal(&buf); /* never NULL */
	assert_string_equal(s, "");
	free(s);
	gs_buf_adds(&buf, "abc");
	s = gs_buf_steal(&buf);
	assert_string_equal(s, "abc");
	free(s);
	assert_null(buf.data);
	assert_int_equal(buf.len, 0);
	gs_buf_adds(&buf, "d");
	assert_string_equal(buf.data, "d");
	gs_buf_free(&buf);
	assert_null(buf.data);
}

static void json_strings(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\n\t\r\x01\x1f", "\"\\u000a\\u0009\\u000d\\u0001\\u001f\"" },
		{ "/\x7f", "\"/\x7f\"" },
		{ "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_buf struct gs_buf buf = { 0 };

		gs_buf_add_json(&buf, rows[i].in);
		assert_string_equal(buf.data, rows[i].out);
	}
}

static void lists(void **state)
{
	cleanup_strv struct gs_strv list = { 0 };
	char name[] = "n0";

	assert_false(gs_strv_has(&list, ""));
	for (int i = 0; i < 9; i++) {
		name[1] = (char)('0' + i);
		gs_strv_add(&list, name);
	}
	gs_strv_take(&list, strdup(""));
	assert_int_equal(list.n, 10);
	for (int i = 0; i < 9; i++) {
		name[1] = (char)('0' + i);
		assert_string_equal(list.v[i], name);
	}
	assert_true(gs_strv_has(&list, "n8"));
	assert_true(gs_strv_has(&list, ""));
	assert_false(gs_strv_has(&list, "n"));
	assert_false(gs_strv_has(&list, "n00"));
	gs_strv_free(&list);
	assert_int_equal(list.n, 0);
	assert_null(list.v);
}

static void sorted_and_joined(void **state)
{
	static const char *const words[] = { "b", "", "B", "a,c", "\xc3\xa9", "aa", "b" };
	cleanup_strv struct gs_strv list = { 0 };
	char *text;

	gs_strv_sort(&list);
	text = gs_strv_join(&list);
	assert_string_equal(text, "");
	free(text);
	for (size_t i = 0; i < GS_ARRAY_SIZE(words); i++)
		gs_strv_add(&list, words[i]);
	gs_strv_sort(&list);
	text = gs_strv_join(&list);
	assert_string_equal(text, ",B,a,c,aa,b,b,\xc3\xa9");
	free(text);
}

static void lists_as_sets(void **state)
{
	cleanup_strv struct gs_strv a = { 0 }, b = { 0 };

	(void)state;
	assert_false(gs_strv_intersect(&a, &b));
	gs_strv_add_once(&a, "x");
	gs_strv_add_once(&a, "x");
	gs_strv_add_once(&a, "y");
	assert_int_equal(a.n, 2);
	gs_strv_add(&b, "z");
	assert_false(gs_strv_intersect(&a, &b));
	gs_strv_merge(&b, &a);
	gs_strv_merge(&b, &a);
	assert_int_equal(b.n, 3);
	assert_true(gs_strv_intersect(&a, &b));
}

static void parts_between_commas(void **state)
{
	(void)state;
	assert_true(gs_commas_have("a,bc", 4, "bc"));
	assert_true(gs_commas_have("a", 1, "a"));
	assert_false(gs_commas_have("a,bc", 3, "bc"));
	assert_false(gs_commas_have("a,bc", 4, "b"));
	assert_false(gs_commas_have("", 0, "a"));
	assert_false(gs_commas_have("a,,b", 4, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_as_sets),	 cmocka_unit_test(parts_between_commas),
		cmocka_unit_test(grows_and_ends_in_nul), cmocka_unit_test(keeps_nul_bytes),
		cmocka_unit_test(long_formats),		 cmocka_unit_test(steal_leaves_it_empty),
		cmocka_unit_test(json_strings),		 cmocka_unit_test(lists),
		cmocka_unit_test(sorted_and_joined),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
