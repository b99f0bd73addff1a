// SPDX-License-Identifier: Apache-2.0
/* Container names: what is accepted, what is refused with which words, and the hash of a name. */
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
#include "common/identity.h"

/* The strings of an identity are its own, so not const. */
#define NAME(n, p, c)                                        \
	{                                                    \
		(char[]){ n }, (char[]){ p }, (char[]){ c }, \
	}

static const struct gs_identity here = NAME("team-a", "devpod", "main");

static void expect_name(const char *text, const struct gs_identity *base, const char *ns,
			const char *pod, const char *container)
{
	cleanup_identity struct gs_identity id = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(gs_identity_parse(text, strlen(text), base, &id, &err), 0);
	assert_string_equal(id.ns, ns);
	assert_string_equal(id.pod, pod);
	assert_string_equal(id.container, container);
}

static void expect_bad(const char *text, size_t len, const struct gs_identity *base,
		       const char *words)
{
	struct gs_identity id = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(gs_identity_parse(text, len, base, &id, &err), -EINVAL);
	assert_null(id.ns);
	if (!strstr(err.msg, words))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
	assert_int_equal(gs_identity_parse(text, len, base, &id, NULL), -EINVAL);
}

static void accepts_three_names(void **state)
{
	expect_name("ns/pod/main", NULL, "ns", "pod", "main");
	expect_name("a/b/c", &here, "a", "b", "c");
	expect_name("0-1/web-0.db.example/c-9", NULL, "0-1", "web-0.db.example", "c-9");
	/* Only @len bytes are the name. */
	{
		cleanup_identity struct gs_identity id = { 0 };

		assert_int_equal(gs_identity_parse("a/b/cc,d/e/f", 6, NULL, &id, NULL), 0);
		assert_string_equal(id.container, "cc");
	}
}

static void underscore_is_here(void **state)
{
	static const struct gs_identity unset = { 0 };

	expect_name("_/_/dind", &here, "team-a", "devpod", "dind");
	expect_name("_/other/x", &here, "team-a", "other", "x");
	expect_name("other/_/x", &here, "other", "devpod", "x");
	expect_bad("_/_/x", 5, NULL, "no meaning");
	expect_bad("a/_/x", 5, &unset, "no meaning");
	expect_bad("_/_/_", 5, &here, "container");
	expect_bad("__/_/x", 6, &here, "namespace");
	expect_bad("_/_a/x", 6, &here, "pod");
}

static void refuses_what_is_no_name(void **state)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "", "empty" },
		{ "a", "fewer than three" },
		{ "a/b", "fewer than three" },
		{ "a/b/c/d", "more than three" },
		{ "../../etc/x/y", "more than three" },
		{ "/b/c", "namespace" },
		{ "a//c", "pod" },
		{ "a/b/", "container" },
		{ "../b/c", "namespace" },
		{ "a/../c", "pod" },
		{ "a/b/..", "container" },
		{ "A/b/c", "namespace" },
		{ "a/B/c", "pod" },
		{ "a/b/C", "container" },
		{ "a/b/c ", "container" },
		{ " a/b/c", "namespace" },
		{ "a/b/c\n", "container" },
		{ "a/b/c\r\n", "container" },
		{ "-a/b/c", "namespace" },
		{ "a-/b/c", "namespace" },
		{ "a/-b/c", "pod" },
		{ "a/b./c", "pod" },
		{ "a/.b/c", "pod" },
		{ "a/b..d/c", "pod" },
		{ "a/b-.d/c", "pod" },
		{ "a.b/b/c", "namespace" },
		{ "a/b/c.d", "container" },
		{ "a/b/c_d", "container" },
		{ "a/b/\xc3\xa9", "container" },
		{ "*/b/c", "namespace" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_bad(bad[i].text, strlen(bad[i].text), NULL, bad[i].words);
	/* A NUL inside is no end. */
	expect_bad("a/b/c\0d", 7, NULL, "container");
	expect_bad("a\0/b/c", 6, NULL, "namespace");
}

static void bounds_lengths(void **state)
{
	char text[600], c63[64], c64[65], sub[300];

	memset(c63, 'a', 63);
	c63[63] = '\0';
	memset(c64, 'a', 64);
	c64[64] = '\0';
	(void)snprintf(text, sizeof(text), "%s/p/%s", c63, c63);
	expect_name(text, NULL, c63, "p", c63);
	(void)snprintf(text, sizeof(text), "%s/p/c", c64);
	expect_bad(text, strlen(text), NULL, "namespace");
	(void)snprintf(text, sizeof(text), "n/p/%s", c64);
	expect_bad(text, strlen(text), NULL, "container");
	memset(sub, 'b', 253);
	sub[100] = '.';
	sub[253] = '\0';
	(void)snprintf(text, sizeof(text), "n/%s/c", sub);
	expect_name(text, NULL, "n", sub, "c");
	(void)snprintf(text, sizeof(text), "n/%sb/c", sub);
	expect_bad(text, strlen(text), NULL, "pod");
}

static void messages_quote_and_cut(void **state)
{
	char text[5000];
	struct gs_identity id = { 0 };
	struct gs_err err = { 0 };

	memset(text, 'x', sizeof(text));
	text[3] = '\x1b';
	assert_int_equal(gs_identity_parse(text, sizeof(text), NULL, &id, &err), -EINVAL);
	assert_true(strlen(err.msg) < 250);
	assert_non_null(strstr(err.msg, "\"xxx?xxx"));
	assert_non_null(strstr(err.msg, "xxx...\""));
}

static void quotes(void **state)
{
	cleanup_free char *a = gs_quote("", 0), *b = gs_quote("a\tb\x7f\xff", 5), *c = NULL;
	char exact[GS_QUOTE_MAX];

	assert_string_equal(a, "\"\"");
	assert_string_equal(b, "\"a?b??\"");
	memset(exact, 'y', sizeof(exact));
	c = gs_quote(exact, sizeof(exact));
	assert_int_equal(strlen(c), GS_QUOTE_MAX + 2);
}

static void equality(void **state)
{
	const struct gs_identity a = NAME("n", "p", "c"), a2 = NAME("n", "p", "c"),
				 b = NAME("n", "p", "d"), c = NAME("n", "q", "c"),
				 d = NAME("m", "p", "c"), none = { 0 };

	assert_true(gs_identity_equal(&a, &a2));
	assert_false(gs_identity_equal(&a, &b));
	assert_false(gs_identity_equal(&a, &c));
	assert_false(gs_identity_equal(&a, &d));
	assert_false(gs_identity_equal(&a, &none));
	assert_false(gs_identity_equal(&none, &a));
	assert_true(gs_identity_equal(&none, &none));
}

static void copies_are_their_own(void **state)
{
	struct gs_identity none = { 0 };
	cleanup_identity struct gs_identity copy = gs_identity_copy(&here);

	assert_true(gs_identity_equal(&copy, &here));
	assert_ptr_not_equal(copy.ns, here.ns);
	assert_ptr_not_equal(copy.pod, here.pod);
	assert_ptr_not_equal(copy.container, here.container);
	none = gs_identity_copy(&none);
	assert_null(none.ns);
	assert_null(none.pod);
	assert_null(none.container);
}

static void text_and_hash(void **state)
{
	/* The value comes from another implementation, checked with "foobar": 85944171f73967e8. */
	const struct gs_identity x = NAME("a", "b", "c");
	cleanup_free char *text = gs_identity_text(&here);

	assert_string_equal(text, "team-a/devpod/main");
	assert_true(gs_identity_hash(&x) == UINT64_C(0x9ef3e9bc4337feeb));
	assert_true(gs_identity_hash(&here) != gs_identity_hash(&x));
}

static void container_ids(void **state)
{
	static const char *const good[] = { "a",
					    "0",
					    "A-b_c+d.e",
					    "x.hooks",
					    "hook",
					    "a.hook.b",
					    "871ef789849141f22e350fada29e14ce" };
	static const char *const bad[] = { "",	 ".",	     "..",   "../a",   "a/b",
					   ".a", "a b",	     "a\n",  "a,b",    "a:b",
					   "a*", "\xc3\xa9", "a\\b", "a.hook", "a\x01" };
	char id[202];

	for (size_t i = 0; i < GS_ARRAY_SIZE(good); i++)
		if (!gs_id_valid(good[i]))
			fail_msg("%s is refused", good[i]);
	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++)
		if (gs_id_valid(bad[i]))
			fail_msg("%s is accepted", bad[i]);
	memset(id, 'i', sizeof(id));
	id[200] = '\0';
	assert_true(gs_id_valid(id));
	id[200] = 'i';
	id[201] = '\0';
	assert_false(gs_id_valid(id));
}

static void labels(void **state)
{
	assert_true(gs_dns_label("a", 1));
	assert_true(gs_dns_label("abc", 2));
	assert_true(gs_dns_label("9a-b", 4));
	assert_false(gs_dns_label("", 0));
	assert_false(gs_dns_label("a.b", 3));
	assert_false(gs_dns_label("a-", 2));
	assert_false(gs_dns_label("_", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_three_names),
		cmocka_unit_test(underscore_is_here),
		cmocka_unit_test(refuses_what_is_no_name),
		cmocka_unit_test(bounds_lengths),
		cmocka_unit_test(messages_quote_and_cut),
		cmocka_unit_test(quotes),
		cmocka_unit_test(equality),
		cmocka_unit_test(copies_are_their_own),
		cmocka_unit_test(text_and_hash),
		cmocka_unit_test(container_ids),
		cmocka_unit_test(labels),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
