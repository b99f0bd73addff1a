// SPDX-License-Identifier: Apache-2.0
/* TOML: what stands in a text and where, what is refused, and what hostile texts cost. */
#include <errno.h>
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
#include "ctl/toml.h"

static struct toml parse(const char *text)
{
	struct gs_err err = { 0 };
	struct toml doc = { 0 };

	if (toml_parse(text, strlen(text), &doc, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return doc;
}

static void every_kind_of_key_and_string(void **state)
{
	static const struct {
		const char *text, *path, *value;
	} cases[] = {
		{ "a = \"b\"", "a", "b" },
		{ "[x]\na = 'b\\n'", "x.a", "b\\n" },
		{ "[ x . 'y.z' ] # c\n\ta=\"\\u00e4\\t\\U0001F600\"\r\n", "x.\"y.z\".a",
		  "\xc3\xa4\t\xf0\x9f\x98\x80" },
		{ "[plugins.\"io.containerd.grpc.v1.cri\"]\nb.'c' = \"\"",
		  "plugins.\"io.containerd.grpc.v1.cri\".b.c", "" },
		{ "a = \"\"\"\nx\\\n   y\"\"\"\"\"", "a", "xy\"\"" },
		{ "a = '''\nx'y''\n'''", "a", "x'y''\n" },
		{ "a = { b = 1, c.d = 'e' }", "a.c.d", "e" },
		{ "[[a]]\nb = 'x'\n[[a]]\nb = 'y'\n[a.c]\nd = 'z'", "a[1].c.d", "z" },
		{ "\"q\\\"\" = 'x'", "\"q\\\"\"", "x" },
		{ "a = 1\n[t.u]\n[t]\nb = 'c'", "t.b", "c" },
		{ "a = [ 1, # one\n  'x',\n]\nb = 'c'", "b", "c" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_toml struct toml doc = parse(cases[i].text);
		const char *value = toml_string(&doc, cases[i].path);

		if (!value || strcmp(value, cases[i].value) != 0)
			fail_msg("%s: %s is %s", cases[i].text, cases[i].path, value);
	}
}

static void scalars_are_passed_over(void **state)
{
	static const char *const values[] = { "1",
					      "-17",
					      "+0x1f",
					      "1_000",
					      "3.14e-2",
					      "inf",
					      "-nan",
					      "true",
					      "false",
					      "07:32:00",
					      "[]",
					      "{}",
					      "[[1], ['a', {}]]",
					      "1979-05-27 07:32:00.5+01:00",
					      "1979-05-27T07:32:00Z" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(values); i++) {
		cleanup_free char *text = gs_asprintf("a = %s # x\nb = 'y'\n", values[i]);
		cleanup_toml struct toml doc = parse(text);

		if (!toml_is(&doc, "a", values[i]) || !toml_string(&doc, "b"))
			fail_msg("%s", text);
	}
}

static void places(void **state)
{
	static const char text[] = "# c\n[a]  # d\n  k = [\n'x', \"y\" ] # e\n[b]\n";
	cleanup_toml struct toml doc = parse(text);
	const struct toml_item *k = toml_find(&doc, "a.k"), *a = toml_find(&doc, "a");
	cleanup_strv struct gs_strv list = { 0 };

	assert_int_equal(a->line, 4);
	assert_int_equal(a->end, strstr(text, "  k") - text);
	assert_int_equal(k->line, strstr(text, "  k") - text);
	assert_int_equal(k->from, strchr(text + 8, '[') - text);
	assert_int_equal(k->end, strstr(text, "[b]") - text);
	assert_true(toml_strings(&doc, k, &list));
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[1], "y");
	assert_non_null(toml_below(&doc, "b"));
	assert_null(toml_below(&doc, "c"));
	assert_null(toml_find(&doc, "a.k[2]"));
}

static void strings_among_others(void **state)
{
	cleanup_toml struct toml doc = parse("a = ['x', 1, ['y'], 'z']");
	cleanup_strv struct gs_strv list = { 0 };

	assert_false(toml_strings(&doc, toml_find(&doc, "a"), &list));
	assert_int_equal(list.n, 2);
}

static void no_toml(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "a", "line 1, column 2: '=' should stand here" },
		{ "x = 1\n a = ", "line 2, column 6: a value should stand here" },
		{ "= 1", "column 1: a key should" },
		{ "a = 1 b = 2", "the line should end" },
		{ "a = \"x", "no end" },
		{ "a = 'x\n'", "a control character" },
		{ "a = '''x", "no end" },
		{ "a = \"\\q\"", "no such escape" },
		{ "a = \"\\uD800\"", "no such character" },
		{ "a = \"\\u12G4\"", "no hexadecimal digit" },
		{ "a = \"\\u0000\"", "no such character" },
		{ "[a", "']' should" },
		{ "[[a]\n", "']' should" },
		{ "[]", "a key should" },
		{ "[a.]", "a key should" },
		{ "[a] b = 1", "the line should end" },
		{ "a = [1 2]", "',' or ']'" },
		{ "a = [1,", "no end" },
		{ "a = {b = 1", "',' or '}'" },
		{ "a = {b = 1,}", "a key should" },
		{ "a = {b = 1\n}", "',' or '}'" },
		{ "a = yes", "a value should" },
		{ "# \x01", "a control character" },
		{ "a = \"\xff\"", "no UTF-8" },
		{ "a = 1\na = 2", "line 2, column 5: this was defined before" },
		{ "[a]\n[b]\n[a]", "line 3, column 1: this was defined before" },
		{ "a = 1\n[a]", "defined before" },
		{ "a = 1\n[a.b]", "defined before" },
		{ "a = 1\na.b = 1", "defined before" },
		{ "a = {b = 1}\n[a.c]", "defined before" },
		{ "a = {b = 1, b = 2}", "defined before" },
		{ "[t]\na.b = 1\n[t.a]", "defined before" },
		{ "[[a]]\n[a]", "defined before" },
		{ "a.b = 1\n[a.c]\n[a]", "defined before" },
		{ "{{ template \"base\" . }}", "a key should" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		struct gs_err err = { 0 };
		struct toml doc = { 0 };

		if (toml_parse(cases[i].text, strlen(cases[i].text), &doc, &err) == 0)
			fail_msg("%s was taken", cases[i].text);
		if (!strstr(err.msg, cases[i].message))
			fail_msg("%s: %s, not %s", cases[i].text, err.msg, cases[i].message);
	}
}

/* A megabyte of each comes back at once, as an error or not, and is freed. */
static void hostile(void **state)
{
	static const char *const units[] = { "[[a]]\n",	  "[a.b.c]\n", "a.",	    "[",
					     "a=[[",	  "x = 1\n",   "a = {b = ", "'",
					     "\"\\u0041", "1,",	       "\n",	    "a.b=1\n" };
	static char text[TOML_SIZE_MAX + 2];

	for (size_t i = 0; i < GS_ARRAY_SIZE(units); i++) {
		size_t n = strlen(units[i]), len = 0;
		struct toml doc = { 0 };

		while (len + n <= TOML_SIZE_MAX) {
			memcpy(text + len, units[i], n);
			len += n;
		}
		text[len] = 0;
		if (toml_parse(text, len, &doc, NULL) == 0)
			toml_free(&doc);
	}
	memset(text, '\n', TOML_SIZE_MAX + 1);
	text[TOML_SIZE_MAX + 1] = 0;
	assert_int_equal(toml_parse(text, TOML_SIZE_MAX + 1, &(struct toml){ 0 }, NULL), -EINVAL);
	assert_int_equal(toml_parse("a\0b", 3, &(struct toml){ 0 }, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_key_and_string),
		cmocka_unit_test(scalars_are_passed_over),
		cmocka_unit_test(places),
		cmocka_unit_test(strings_among_others),
		cmocka_unit_test(no_toml),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
