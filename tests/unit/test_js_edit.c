// SPDX-License-Identifier: Apache-2.0
/* Edits of a JSON text: what changes, how it is laid out, and that nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/js_edit.h"
#include "common/xalloc.h"

/* One edit of one text; @what does it to the value. */
struct edit_case {
	const char *before, *after;
	void (*what)(struct js_edit *edit, struct js root);
};

static struct js parse(const char *text)
{
	struct gs_err err = { 0 };
	struct js v = { 0 };

	if (js_parse(text, strlen(text), &v, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return v;
}

static struct js at(struct js root, const char *key)
{
	struct js v;

	assert_int_equal(js_member(root, key, &v, NULL), 0);
	return v;
}

static void expect_edits(const struct edit_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct js_edit edit = { .text = cases[i].before, .len = strlen(cases[i].before) };
		cleanup_buf struct gs_buf out = { 0 };

		cases[i].what(&edit, parse(cases[i].before));
		gs_buf_adds(&out, "head ");
		js_edit_apply(&edit, &out);
		if (strcmp(out.data + 5, cases[i].after) != 0)
			fail_msg("%s became %s, not %s", cases[i].before, out.data + 5,
				 cases[i].after);
		(void)parse(out.data + 5);
		js_edit_free(&edit);
	}
}

static void nothing(struct js_edit *edit, struct js root)
{
}

static void replace_a(struct js_edit *edit, struct js root)
{
	js_edit_replace(edit, at(root, "a"), "[\"new\"]");
}

static void replace_b_then_a(struct js_edit *edit, struct js root)
{
	js_edit_replace(edit, at(root, "b"), "2222");
	js_edit_replace(edit, at(root, "a"), "1");
}

static void add_x(struct js_edit *edit, struct js root)
{
	js_edit_add_member(edit, root, "x", "1");
}

static void add_x_y_z(struct js_edit *edit, struct js root)
{
	js_edit_add_member(edit, root, "x", "1");
	js_edit_add_member(edit, root, "y", "[]");
	js_edit_add_member(edit, root, "z", "\"\"");
}

static void add_in_both(struct js_edit *edit, struct js root)
{
	js_edit_add_member(edit, root, "y", "2");
	js_edit_add_member(edit, at(root, "a"), "x", "1");
}

static void replace_last_and_add(struct js_edit *edit, struct js root)
{
	js_edit_add_member(edit, root, "x", "1");
	js_edit_replace(edit, at(root, "b"), "22");
}

static void edits(void **state)
{
	static const struct edit_case cases[] = {
		{ " {\"a\" : 1e3 }\n", " {\"a\" : 1e3 }\n", nothing },
		{ "{\"a\":null}", "{\"a\":[\"new\"]}", replace_a },
		{ "{ \"a\" : {\"k\" : 1} ,\"z\":18446744073709551616}\n",
		  "{ \"a\" : [\"new\"] ,\"z\":18446744073709551616}\n", replace_a },
		{ "{\"a\":0,\"b\":0}", "{\"a\":1,\"b\":2222}", replace_b_then_a },
		{ "{}", "{\"x\":1}", add_x },
		{ " { } ", " {\"x\":1 } ", add_x },
		{ "{\"k\":2}", "{\"k\":2,\"x\":1}", add_x },
		{ "{ \"k\": 2 }", "{ \"k\": 2, \"x\": 1 }", add_x },
		{ "{\n\t\"k\": [\n\t\t1\n\t]\n}\n", "{\n\t\"k\": [\n\t\t1\n\t],\n\t\"x\": 1\n}\n",
		  add_x },
		{ "{}", "{\"x\":1,\"y\":[],\"z\":\"\"}", add_x_y_z },
		{ "{\"k\":2}", "{\"k\":2,\"x\":1,\"y\":[],\"z\":\"\"}", add_x_y_z },
		{ "{\"a\":{}}", "{\"a\":{\"x\":1},\"y\":2}", add_in_both },
		{ "{\"a\":{\"k\":1}}", "{\"a\":{\"k\":1,\"x\":1},\"y\":2}", add_in_both },
		{ "{\"a\":{\"k\":1},\"b\":0}", "{\"a\":{\"k\":1,\"x\":1},\"b\":0,\"y\":2}",
		  add_in_both },
		{ "{\"a\":1,\"b\":0}", "{\"a\":1,\"b\":22,\"x\":1}", replace_last_and_add },
	};

	expect_edits(cases, GS_ARRAY_SIZE(cases));
}

/* What is done to an array: one letter an element (k keep, d drop, r replace), then n added. */
struct array_case {
	const char *before, *ops;
	int added;
	const char *after;
};

static void do_array(struct js_array *array, const struct array_case *c)
{
	static const char *const fresh[] = { "\"n0\"", "{\"n\":1}", "null" };

	js_array_begin(array, c->before ? parse(c->before) : (struct js){ 0 });
	for (size_t i = 0; c->ops[i]; i++) {
		if (c->ops[i] == 'd')
			js_array_drop(array, i);
		else if (c->ops[i] == 'r')
			js_array_replace(array, i, "\"R\"");
	}
	for (int i = 0; i < c->added; i++)
		js_array_append(array, fresh[i]);
}

static void arrays(void **state)
{
	static const struct array_case cases[] = {
		{ NULL, "", 0, "[]" },
		{ NULL, "", 2, "[\"n0\",{\"n\":1}]" },
		{ "null", "", 1, "[\"n0\"]" },
		{ "[]", "", 2, "[\"n0\",{\"n\":1}]" },
		{ "[ ]", "", 1, "[\"n0\" ]" },
		{ "[1,2,3]", "kkk", 0, "[1,2,3]" },
		{ "[ 1 ,2, 3 ]", "kkk", 0, "[ 1 ,2, 3 ]" },
		{ "[ 1 ,2 , 3 ]", "kdk", 1, "[ 1, 3, \"n0\" ]" },
		{ "[1,2,3]", "dkk", 0, "[2,3]" },
		{ "[1,2,3]", "kdk", 0, "[1,3]" },
		{ "[1,2,3]", "kkd", 0, "[1,2]" },
		{ "[1,2,3]", "ddd", 0, "[]" },
		{ "[1,2,3]", "ddd", 2, "[\"n0\",{\"n\":1}]" },
		{ "[1,2,3]", "rkr", 1, "[\"R\",2,\"R\",\"n0\"]" },
		{ "[1,2]", "rd", 0, "[\"R\"]" },
		{ "[\"a,b\",[1,[2]],{\"c\":\",\"}]", "kdk", 1, "[\"a,b\",{\"c\":\",\"},\"n0\"]" },
		{ "[\n\t1,\n\t2\n]", "kk", 2, "[\n\t1,\n\t2,\n\t\"n0\",\n\t{\"n\":1}\n]" },
		{ "[\n\t1,\n\t2\n]", "dk", 1, "[\n\t2,\n\t\"n0\"\n]" },
		{ "[\n\t1\n]", "d", 1, "[\n\t\"n0\"\n]" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_js_array struct js_array array;
		cleanup_free char *text = NULL;

		do_array(&array, &cases[i]);
		assert_int_equal(array.n_old, strlen(cases[i].ops));
		text = js_array_text(&array);
		if (strcmp(text, cases[i].after) != 0)
			fail_msg("%s %s+%d became %s, not %s", cases[i].before, cases[i].ops,
				 cases[i].added, text, cases[i].after);
		(void)parse(text);
	}
}

/* Without a change no byte is edited, whatever the array's layout. */
static void unchanged_arrays_are_no_edit(void **state)
{
	static const char *const texts[] = { "{\"a\":[ 1 , 2 ]}", "{\"a\":[]}", "{\"a\":null}",
					     "{}" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		cleanup_js_edit struct js_edit edit = { .text = texts[i], .len = strlen(texts[i]) };
		cleanup_js_array struct js_array array;
		struct js root = parse(texts[i]);
		cleanup_buf struct gs_buf out = { 0 };

		js_array_begin(&array, at(root, "a"));
		assert_false(array.changed);
		js_edit_array(&edit, &array, root, "a");
		js_edit_apply(&edit, &out);
		assert_string_equal(out.data, texts[i]);
	}
}

static void changed_arrays(void **state)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{ "{\"a\":[1],\"b\":2}", "{\"a\":[1,9],\"b\":2}" },
		{ "{\"a\":null,\"b\":2}", "{\"a\":[9],\"b\":2}" },
		{ "{ \"b\": 2 }", "{ \"b\": 2, \"a\": [9] }" },
		{ "{}", "{\"a\":[9]}" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_js_edit struct js_edit edit = { .text = rows[i].before,
							.len = strlen(rows[i].before) };
		cleanup_js_array struct js_array array;
		struct js root = parse(rows[i].before);
		cleanup_buf struct gs_buf out = { 0 };

		js_array_begin(&array, at(root, "a"));
		js_array_append(&array, "9");
		assert_true(array.changed);
		js_edit_array(&edit, &array, root, "a");
		js_edit_apply(&edit, &out);
		assert_string_equal(out.data, rows[i].after);
	}
}

static void cleared_arrays(void **state)
{
	static const char *const before[] = { "[1, 2]", "[]", NULL };

	for (size_t i = 0; i < GS_ARRAY_SIZE(before); i++) {
		cleanup_js_array struct js_array array;
		char *text;

		js_array_begin(&array, before[i] ? parse(before[i]) : (struct js){ 0 });
		if (array.n_old)
			js_array_replace(&array, 1, "7");
		js_array_append(&array, "8");
		js_array_clear(&array);
		assert_int_equal(array.changed, i == 0);
		text = js_array_text(&array);
		assert_string_equal(text, "[]");
		free(text);
		js_array_append(&array, "9");
		assert_true(array.changed);
		text = js_array_text(&array);
		assert_string_equal(text, "[9]");
		free(text);
	}
}

/* Many edits at once, collected backwards, land where they belong. */
static void many_edits(void **state)
{
	cleanup_buf struct gs_buf before = { 0 };
	cleanup_buf struct gs_buf after = { 0 };
	cleanup_buf struct gs_buf out = { 0 };
	cleanup_js_edit struct js_edit edit = { 0 };
	struct js_iter it;
	struct js v[300];

	gs_buf_addc(&before, '[');
	gs_buf_addc(&after, '[');
	for (int i = 0; i < 300; i++) {
		gs_buf_addf(&before, "%s{ \"i\":%d}", i ? "," : "", i);
		gs_buf_addf(&after, "%s\"%d\"", i ? "," : "", i);
	}
	gs_buf_addc(&before, ']');
	gs_buf_addc(&after, ']');
	edit.text = before.data;
	edit.len = before.len;
	it = js_iter(parse(before.data));
	for (int i = 0; i < 300; i++)
		assert_true(js_next_element(&it, &v[i]));
	for (int i = 299; i >= 0; i--) {
		char text[16];

		(void)snprintf(text, sizeof(text), "\"%d\"", i);
		js_edit_replace(&edit, v[i], text);
	}
	js_edit_apply(&edit, &out);
	assert_string_equal(out.data, after.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits),
		cmocka_unit_test(arrays),
		cmocka_unit_test(unchanged_arrays_are_no_edit),
		cmocka_unit_test(changed_arrays),
		cmocka_unit_test(cleared_arrays),
		cmocka_unit_test(many_edits),
	};

	return cmocka_run_group_tests_name("js_edit", tests, NULL, NULL);
}
