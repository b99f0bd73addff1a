// SPDX-License-Identifier: Apache-2.0
/* Path patterns, compared with the C library's where both speak the same language. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/glob.h"

struct row {
	const char *glob, *s;
	bool matches;
};

static void test_patterns(void **state)
{
	static const struct row rows[] = {
		{ "/dev/nvidia[0-9]*", "/dev/nvidia0", true },
		{ "/dev/nvidia[0-9]*", "/dev/nvidia10", true },
		{ "/dev/nvidia[0-9]*", "/dev/nvidiactl", false },
		{ "/dev/nvidia[0-9]*", "/dev/nvidia", false },
		{ "/dev/nvidia[0-9]*", "/dev/nvidia0/x", false },
		{ "/dev/nvidia-uvm{,-tools}", "/dev/nvidia-uvm", true },
		{ "/dev/nvidia-uvm{,-tools}", "/dev/nvidia-uvm-tools", true },
		{ "/dev/nvidia-uvm{,-tools}", "/dev/nvidia-uvm-x", false },
		{ "/dev/dri/{card,renderD}*", "/dev/dri/renderD128", true },
		{ "/dev/dri/{card,renderD}*", "/dev/dri/by-path/card0", false },
		{ "/{usr/,}lib{,64}/x", "/usr/lib64/x", true },
		{ "/{usr/,}lib{,64}/x", "/lib/x", true },
		{ "/{usr/,}lib{,64}/x", "/usr/x", false },
		{ "/{a,b{c,d{e,}}}z", "/bdez", true },
		{ "/{a,b{c,d{e,}}}z", "/bdz", true },
		{ "/{a,b{c,d{e,}}}z", "/bz", false },
		{ "/{a*,ab}c", "/abc", true },
		{ "/{a,ab}{c,bc}d", "/abbcd", true },
		{ "/{*,x/y}/z", "/x/y/z", true },
		{ "/{*,x/y}/z", "/q/z", true },
		{ "/{*,x/y}/z", "/q/y/z", false },
		{ "/[{,}]x", "/{x", true },
		{ "/{[,],[}]}x", "/}x", true },
		{ "/a\\{b", "/a{b", true },
		{ "/a\\*", "/a*", true },
		{ "/a\\*", "/ab", false },
		{ "/[!a]", "/b", true },
		{ "/[^a]", "/a", false },
		{ "/[!a]x", "//x", false },
		{ "/[]a]", "/]", true },
		{ "/[a-]", "/-", true },
		{ "/?", "//", false },
		{ "/a*", "/a", true },
		{ "/a**b", "/ab", true },
		{ "/a", "/a\n", false },
		{ "", "", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_null(gs_glob_mistake(rows[i].glob));
		if (gs_glob_match(rows[i].glob, rows[i].s) != rows[i].matches)
			fail_msg("%s and %s: not %d", rows[i].glob, rows[i].s, rows[i].matches);
	}
}

static void test_across_folders(void **state)
{
	assert_true(gs_glob_match_across("*/nvidia-ctk", "/usr/local/bin/nvidia-ctk"));
	assert_true(gs_glob_match_across("/a?b[!x]c", "/a/b/c"));
	assert_false(gs_glob_match_across("*/nvidia-ctk", "/usr/bin/nvidia-ctk-evil"));
	assert_false(gs_glob_match_across("*/nvidia-ctk", "nvidia-ctk"));
	assert_false(gs_glob_match("*/nvidia-ctk", "/usr/bin/nvidia-ctk"));
}

/* What random patterns and strings are made of. */
static const char *const pieces[] = { "a",    "b",     "/",   "*",   "?",    "[ab]",
				      "[!a]", "[a-c]", "\\*", "\\a", "[]b]", "*/" };
static const char *const letters[] = { "a", "b", "c", "/", "*", "]", "-" };

static const char *pick(unsigned int *seed, const char *const *of, size_t n)
{
	return of[(size_t)rand_r(seed) % n];
}

static void test_same_as_fnmatch_without_braces(void **state)
{
	unsigned int seed = 20260101, matches = 0;

	for (int i = 0; i < 200000; i++) {
		char glob[64] = "", s[16] = "";
		bool want;

		for (int k = rand_r(&seed) % 6; k >= 0; k--)
			(void)strcat(glob, pick(&seed, pieces, sizeof(pieces) / sizeof(*pieces)));
		for (int k = rand_r(&seed) % 6; k >= 0; k--)
			(void)strcat(s, pick(&seed, letters, sizeof(letters) / sizeof(*letters)));
		assert_null(gs_glob_mistake(glob));
		want = fnmatch(glob, s, FNM_PATHNAME) == 0;
		if (gs_glob_match(glob, s) != want)
			fail_msg("%s and %s: fnmatch says %d", glob, s, want);
		matches += want;
		want = fnmatch(glob, s, 0) == 0;
		if (gs_glob_match_across(glob, s) != want)
			fail_msg("across: %s and %s: fnmatch says %d", glob, s, want);
	}
	assert_true(matches > 1000);
}

/* Braces mean the same as all their expansions. */
static void test_braces_are_alternatives(void **state)
{
	unsigned int seed = 7, matches = 0;

	for (int i = 0; i < 100000; i++) {
		char head[32] = "", tail[32] = "", s[16] = "", glob[256], one[128];
		const char *alt[3];
		bool want = false;

		for (int k = rand_r(&seed) % 2; k > 0; k--)
			(void)strcat(head, pick(&seed, pieces, sizeof(pieces) / sizeof(*pieces)));
		for (int k = rand_r(&seed) % 3; k > 0; k--)
			(void)strcat(tail, pick(&seed, pieces, sizeof(pieces) / sizeof(*pieces)));
		for (int k = rand_r(&seed) % 5; k >= 0; k--)
			(void)strcat(s, pick(&seed, letters, sizeof(letters) / sizeof(*letters)));
		for (int k = 0; k < 3; k++)
			alt[k] = rand_r(&seed) % 4 ?
					 pick(&seed, pieces, sizeof(pieces) / sizeof(*pieces)) :
					 "";
		(void)snprintf(glob, sizeof(glob), "%s{%s,%s,%s}%s", head, alt[0], alt[1], alt[2],
			       tail);
		for (int k = 0; k < 3; k++) {
			(void)snprintf(one, sizeof(one), "%s%s%s", head, alt[k], tail);
			want = want || gs_glob_match(one, s);
		}
		assert_null(gs_glob_mistake(glob));
		if (gs_glob_match(glob, s) != want)
			fail_msg("%s and %s: not %d", glob, s, want);
		matches += want;
	}
	assert_true(matches > 1000);
}

static void test_mistakes_are_told(void **state)
{
	assert_string_equal(gs_glob_mistake("/a["), "a '[' without its ']'");
	assert_string_equal(gs_glob_mistake("/a[]"), "a '[' without its ']'");
	assert_string_equal(gs_glob_mistake("/a[!"), "a '[' without its ']'");
	assert_string_equal(gs_glob_mistake("/a[\\"), "a '[' without its ']'");
	assert_string_equal(gs_glob_mistake("/a\\"), "a '\\' at the end");
	assert_string_equal(gs_glob_mistake("/{a"), "a '{' without its '}'");
	assert_string_equal(gs_glob_mistake("/a}"), "a '}' without its '{'");
	assert_string_equal(gs_glob_mistake("/{a}}{"), "a '}' without its '{'");
	assert_string_equal(gs_glob_mistake("{{{{{{{{{a}}}}}}}}}"),
			    "too many '{' inside each other");
	assert_null(gs_glob_mistake("/a[[]b]{c,[}]}\\{"));
}

/* A pod's author chooses the string, never the pattern: its length must not cost much. */
static void test_long_hostile_string_takes_no_time(void **state)
{
	cleanup_buf struct gs_buf s = { 0 };

	for (int i = 0; i < 2000; i++)
		gs_buf_adds(&s, "/lib");
	(void)alarm(20);
	assert_false(gs_glob_match("/{usr/,}lib{,32,64}{,/*-linux-gnu}{,/nvidia/*}/lib*_nvidia.so*",
				   s.data));
	assert_false(gs_glob_match_across("*/nvidia-*/nvidia-ctk", s.data));
	(void)alarm(0);
}

/* What no kernel takes as a path is matched against nothing: its author sets its length. */
static void test_endless_paths_are_not_plain(void **state)
{
	cleanup_buf struct gs_buf name = { 0 }, path = { 0 };

	gs_buf_addc(&name, '/');
	for (int i = 0; i < 255; i++)
		gs_buf_addc(&name, 'a');
	assert_true(gs_path_plain(name.data));
	for (int i = 0; i < 15; i++)
		gs_buf_adds(&path, name.data);
	assert_true(gs_path_plain(path.data));
	gs_buf_adds(&path, name.data);
	assert_false(gs_path_plain(path.data));
	gs_buf_addc(&name, 'a');
	assert_false(gs_path_plain(name.data));
}

static void test_plain_paths(void **state)
{
	static const char *const plain[] = { "/a", "/a/b", "/a/..b", "/.a", "/a/...", "/a b" };
	static const char *const other[] = { "",       "/",	  "a",	   "a/b", "//a",
					     "/a//b",  "/a/",	  "/.",	   "/..", "/a/.",
					     "/a/./b", "/a/../b", "/a/..", "./a" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		assert_true(gs_path_plain(plain[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		if (gs_path_plain(other[i]))
			fail_msg("%s is not plain", other[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_across_folders),
		cmocka_unit_test(test_same_as_fnmatch_without_braces),
		cmocka_unit_test(test_braces_are_alternatives),
		cmocka_unit_test(test_mistakes_are_told),
		cmocka_unit_test(test_long_hostile_string_takes_no_time),
		cmocka_unit_test(test_plain_paths),
		cmocka_unit_test(test_endless_paths_are_not_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
