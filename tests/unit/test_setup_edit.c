// SPDX-License-Identifier: Apache-2.0
/* gpusharectl setup's edits of texts, how they are taken back, and the differences it shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/diff.h"
#include "ctl/setup.h"

static struct setup_plan plan_with(const char *text)
{
	struct setup_plan plan = { 0 };

	plan.files = gs_calloc(1, sizeof(*plan.files));
	plan.n = 1;
	plan.files[0].path = gs_strdup("/f");
	plan.files[0].before = gs_strdup(text);
	plan.files[0].after = gs_strdup(text);
	return plan;
}

/* The file is what is expected, and what it was once the edits are taken back. */
static void expect(const struct setup_file *file, const char *after)
{
	cleanup_free char *back = setup_unedit(file->after, &file->old, &file->new);

	assert_string_equal(file->after, after);
	assert_non_null(back);
	assert_string_equal(back, file->before);
}

static void keys_are_set(void **state)
{
	static const char begin[] = SETUP_BEGIN, end[] = SETUP_END;
	static const struct {
		const char *before, *head, *key, *tail; /* marks stand around the key, or not */
		bool marked;
	} cases[] = {
		{ "[a]  # c\n  k = 'x' # d\nz = 1\n", "[a]  # c\n  k = ", "\"v\"", " # d\nz = 1\n",
		  false },
		{ "[a]\nz = 1\n", "[a]\n", "k = \"v\"\n", "z = 1\n", true },
		{ "y = 1", "y = 1\n", "[a]\nk = \"v\"\n", "", true },
		{ "[a.b]\n", "[a.b]\n", "[a]\nk = \"v\"\n", "", true },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_plan struct setup_plan plan = plan_with(cases[i].before);
		cleanup_free char *after = gs_asprintf("%s%s%s%s%s", cases[i].head,
						       cases[i].marked ? begin : "", cases[i].key,
						       cases[i].marked ? end : "", cases[i].tail);
		struct gs_err err = { 0 };

		if (setup_set(plan.files, "a", "k", "\"v\"", &err) < 0)
			fail_msg("%s", err.msg);
		expect(plan.files, after);
	}
}

static void a_key_that_is_so_already(void **state)
{
	cleanup_plan struct setup_plan plan = plan_with("[a]\nk = \"v\"\n");

	assert_int_equal(setup_set(plan.files, "a", "k", "\"v\"", NULL), 0);
	assert_string_equal(plan.files->after, plan.files->before);
	assert_int_equal(plan.files->new.n, 0);
}

static void inline_tables_are_not_edited(void **state)
{
	cleanup_plan struct setup_plan plan = plan_with("a = { k = 'x' }\n");
	struct gs_err err = { 0 };

	assert_true(setup_set(plan.files, "a", "k", "\"v\"", &err) < 0);
	assert_non_null(strstr(err.msg, "inline table"));
}

static void a_replaced_text_is_edited_where_it_differs(void **state)
{
	static const struct {
		const char *before, *after, *old, *new;
	} cases[] = {
		{ "a\nb\nc\n", "a\nx\nc\n", "b\n", "x\n" },
		{ "a\nc\n", "a\nb\nc\n", "", "b\n" },
		{ "a\na\n", "a\na\na\n", "", "a\n" },
		{ "{}", "{ 1 }", "{}", "{ 1 }" },
		{ "x\n", "y", "x\n", "y" },
		{ "\n", "x\n", "", "x" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_plan struct setup_plan plan = plan_with(cases[i].before);

		setup_replace(plan.files, cases[i].after);
		assert_string_equal(plan.files->after, cases[i].after);
		assert_string_equal(plan.files->old.v[0], cases[i].old);
		assert_string_equal(plan.files->new.v[0], cases[i].new);
	}
}

static void edits_are_taken_back_around_others(void **state)
{
	cleanup_plan struct setup_plan plan = plan_with("a\nb\n");
	struct setup_file *file = plan.files;
	cleanup_free char *text = NULL, *back = NULL, *twice = NULL;

	setup_edit(file, 2, 2, "one\n");
	setup_append(file, "two\n");
	assert_string_equal(file->after, "a\none\nb\ntwo\n");
	text = gs_asprintf("new\n%stail\n", file->after);
	back = setup_unedit(text, &file->old, &file->new);
	assert_string_equal(back, "new\na\nb\ntail\n");
	assert_null(setup_unedit("a\none\nb\n", &file->old, &file->new));
	twice = gs_asprintf("%stwo\n", file->after);
	assert_null(setup_unedit(twice, &file->old, &file->new));
	assert_null(setup_unedit("a\n", &(struct gs_strv){ 0 }, &(struct gs_strv){ 0 }));
}

static void differences(void **state)
{
	static const struct {
		const char *old, *new, *diff;
	} cases[] = {
		{ "a\n", "a\n", "" },
		{ NULL, "a\nb\n", "--- /dev/null\n+++ /f\n@@ -0,0 +1,2 @@\n+a\n+b\n" },
		{ "a\n", NULL, "--- /f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n" },
		{ "1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\nx\n",
		  "--- /f\n+++ /f\n@@ -3,3 +3,4 @@\n 3\n 4\n 5\n+x\n" },
		{ "a", "a\nb\n",
		  "--- /f\n+++ /f\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
		  "--- /f\n+++ /f\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n"
		  "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n", "x\n2\n3\n4\n5\n6\n7\ny\n",
		  "--- /f\n+++ /f\n@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_buf struct gs_buf out = { 0 };

		ctl_diff("/f", cases[i].old, cases[i].new, &out);
		assert_string_equal(out.data ? out.data : "", cases[i].diff);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_set),
		cmocka_unit_test(a_key_that_is_so_already),
		cmocka_unit_test(inline_tables_are_not_edited),
		cmocka_unit_test(a_replaced_text_is_edited_where_it_differs),
		cmocka_unit_test(edits_are_taken_back_around_others),
		cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
