// SPDX-License-Identifier: Apache-2.0
/* The vendor slice: exactly what the catalogue names, with exactly the rights that it had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/slice.h"
#include "tests/unit/specs.h"
#include "tests/unit/tmpdir.h"

static struct gs_catalogue cat;

static int setup(void **state)
{
	*state = tmpdir_make();
	catalogue_make(&cat, *state);
	return 0;
}

static int teardown(void **state)
{
	gs_catalogue_free(&cat);
	tmpdir_remove(*state);
	return 0;
}

static char *slice_of(const char *json)
{
	cleanup_slice struct slice slice = { 0 };
	cleanup_spec struct spec spec;
	struct gs_buf out = { 0 };

	spec_make(&spec, json);
	slice_find(&spec, &cat, &slice);
	slice_text(&slice, &out);
	return gs_buf_steal(&out);
}

/* The slice of the slice is the slice. */
static void expect_slice(const char *json, const char *want)
{
	cleanup_free char *got = slice_of(json);
	cleanup_free char *again = slice_of(got);

	assert_string_equal(got, want);
	assert_string_equal(again, want);
}

#define SLICE(env, mounts, create_container, devices, rules)                               \
	"{\"process\":{\"env\":[" env "]},\"mounts\":[" mounts "],\"hooks\":{\"prestart\"" \
	":[],\"createRuntime\":[],\"createContainer\":[" create_container                  \
	"],\"startContainer\":[],\"poststart\":[],\"poststop\":[]},\"linux\":"             \
	"{\"devices\":[" devices "],\"resources\":{\"devices\":[" rules "]}}}"

#define ZERO "{\"path\":\"/dev/zero\",\"type\":\"c\",\"major\":1,\"minor\":5"

static void nothing_of_a_vendor(void **state)
{
	expect_slice("{}", SLICE("", "", "", "", ""));
	expect_slice("{\"process\":{\"env\":[\"PATH=/bin\",\"SECRET=1\",\"ACME_VISIBLE_X=1\"]},"
		     "\"mounts\":[{\"destination\":\"/data\",\"type\":\"bind\",\"source\":\"/x\"},"
		     "{\"destination\":\"/usr/lib/libacme.so\",\"type\":\"bind\","
		     "\"source\":\"/home/evil.so\"},"
		     "{\"destination\":\"/usr/lib/libacme.so\",\"type\":\"tmpfs\","
		     "\"source\":\"/usr/lib/libacme.so\"}],"
		     "\"hooks\":{\"createContainer\":[{\"path\":\"/bin/sh\"}]},"
		     "\"linux\":{\"devices\":[{\"path\":\"/dev/null\",\"type\":\"c\",\"major\":1,"
		     "\"minor\":3},{\"path\":\"/dev/../dev/zero\",\"type\":\"c\",\"major\":1,"
		     "\"minor\":5}],\"resources\":{\"devices\":[{\"allow\":true,\"type\":\"c\","
		     "\"major\":1,\"minor\":3,\"access\":\"rw\"}]}}}",
		     SLICE("", "", "", "", ""));
}

static void takes_what_is_named(void **state)
{
	expect_slice(
		"{\"process\":{\"env\":[\"A=1\",\"ACME_VISIBLE=card-1\",\"ACME_MODE=x\\ny\\u00e9\","
		"\"LD_PRELOAD=/evil\",\"ACME_CAPS\"]},\"mounts\":["
		"{\"destination\":\"/etc\",\"type\":\"bind\",\"source\":\"/etc\"},"
		"{\"destination\":\"/usr/lib/libacme.so\",\"source\":\"/usr/lib/libacme.so\","
		"\"options\":[\"ro\",\"rbind\"], \"x\":[1e400]}],"
		"\"hooks\":{\"createContainer\":["
		"{\"path\":\"/opt/acme-cdi-hook\",\"args\":[\"a\"]},"
		"{\"path\":\"/bin/sh\"}]},"
		"\"linux\":{\"devices\":[" ZERO ", \"fileMode\": 438},"
		"{\"path\":\"/dev/tty\",\"type\":\"c\",\"major\":5,\"minor\":0}],"
		"\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"},{\"allow\":true,"
		"\"type\":\"c\",\"major\":1,\"access\":\"rw\"},{\"allow\":true,\"type\":\"c\","
		"\"major\":5,\"minor\":0,\"access\":\"m\"}]}}}",
		SLICE("\"ACME_VISIBLE=card-1\",\"ACME_MODE=x\\u000ay\xc3\xa9\",\"ACME_CAPS\"",
		      "{\"destination\":\"/usr/lib/libacme.so\",\"source\":\"/usr/lib/libacme.so\","
		      "\"options\":[\"ro\",\"rbind\"], \"x\":[1e400]}",
		      "{\"path\":\"/opt/acme-cdi-hook\",\"args\":[\"a\"]}",
		      ZERO ", \"fileMode\": 438},{\"path\":\"/dev/tty\",\"type\":\"c\","
			   "\"major\":5,\"minor\":0}",
		      /* the wildcard is narrowed to what was listed */
		      "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":5,\"access\":\"rw\"},"
		      "{\"allow\":true,\"type\":\"c\",\"major\":5,\"minor\":0,\"access\":\"m\"}"));
}

static void rights(void **state)
{
#define WITH(rules) "{\"linux\":{\"devices\":[" ZERO "}],\"resources\":{\"devices\":[" rules "]}}}"
	/* no rule for the device: none in the slice */
	expect_slice(WITH(""), SLICE("", "", "", ZERO "}", ""));
	expect_slice(WITH("{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":6}"),
		     SLICE("", "", "", ZERO "}", ""));
	/* denied again later */
	expect_slice(
		WITH("{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":5,\"access\":"
		     "\"rwm\"},{\"allow\":false,\"type\":\"c\",\"major\":1,\"access\":\"wm\"}"),
		SLICE("", "", "", ZERO "}",
		      "{\"allow\":true,\"type\":\"c\",\"major\":1,\"minor\":5,\"access\":"
		      "\"r\"}"));
	/* privileged: whose cards they are can't be told, so the one rule is kept */
	expect_slice(WITH("{\"allow\":true,\"access\":\"rwm\"}"),
		     SLICE("", "", "", ZERO "}",
			   "{\"allow\":true,\"type\":\"c\",\"access\":\"rwm\"}"));
#undef WITH
}

/* Numbers that no driver has, and kinds that are no devices of ours. */
static void odd_devices(void **state)
{
	expect_slice("{\"linux\":{\"devices\":["
		     "{\"path\":\"/dev/zero\",\"type\":\"p\"},"
		     "{\"path\":\"/dev/zero\",\"type\":\"c\",\"major\":-1,\"minor\":5},"
		     "{\"path\":\"/dev/zero\",\"type\":\"c\",\"major\":1,\"minor\":4294967296},"
		     "{\"path\":\"/dev/zero\",\"type\":\"c\",\"major\":9223372036854775807,"
		     "\"minor\":9223372036854775807}]}}",
		     SLICE("", "", "", "", ""));
}

struct expect_cards {
	const char *json;
	bool cards, selects, acme_selects, zeta_cards;
};

static void who_has_cards(void **state)
{
#define ENV(e) "{\"process\":{\"env\":[" e "]}}"
	static const struct expect_cards rows[] = {
		{ "{}", false, false, false, false },
		{ ENV("\"ACME_VISIBLE=card\""), true, true, true, false },
		{ ENV("\"ACME_VISIBLE=void\""), false, false, false, false },
		{ ENV("\"ACME_VISIBLE=none\""), false, false, false, false },
		{ ENV("\"ACME_VISIBLE=\""), false, false, false, false },
		{ ENV("\"ACME_VISIBLE\""), false, false, false, false },
		{ ENV("\"ACME_CAPS=all\""), false, false, false, false },
		{ ENV("\"ZETA_VISIBLE=0\""), true, true, false, true },
		{ ENV("\"ZETA_VISIBLE=\""), false, false, false, false },
		{ ENV("\"ZETA_VISIBLE=none\""), true, true, false, true },
		{ "{\"linux\":{\"devices\":[" ZERO "}]}}", true, false, false, false },
		{ "{\"linux\":{\"devices\":[{\"path\":\"/dev/tty\",\"type\":\"c\",\"major\":5}]}}",
		  true, false, false, true },
		{ "{\"mounts\":[{\"destination\":\"/var/run/acme-devices/card-1\","
		  "\"type\":\"bind\","
		  "\"source\":\"/dev/null\"}]}",
		  true, true, true, false },
		{ "{\"mounts\":[{\"destination\":\"/usr/lib/libacme.so\",\"type\":\"bind\","
		  "\"source\":\"/usr/lib/libacme.so\"}]}",
		  false, false, false, false },
	};
	const struct gs_vendor *acme = &cat.v[0], *zeta = &cat.v[1];

	assert_string_equal(acme->name, "acme");
	assert_string_equal(zeta->name, "zeta");
	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_slice struct slice slice = { 0 };
		cleanup_spec struct spec spec;

		spec_make(&spec, rows[i].json);
		slice_find(&spec, &cat, &slice);
		if (slice_has_cards(&slice, NULL) != rows[i].cards ||
		    slice_selects(&slice, NULL) != rows[i].selects ||
		    slice_selects(&slice, acme) != rows[i].acme_selects ||
		    slice_has_cards(&slice, zeta) != rows[i].zeta_cards)
			fail_msg("%s: %d %d %d %d", rows[i].json, slice_has_cards(&slice, NULL),
				 slice_selects(&slice, NULL), slice_selects(&slice, acme),
				 slice_has_cards(&slice, zeta));
	}
#undef ENV
}

static void items_in_the_order_of_the_spec(void **state)
{
	cleanup_slice struct slice slice = { 0 };
	cleanup_spec struct spec spec;

	spec_make(&spec, "{\"process\":{\"env\":[\"ZETA_VISIBLE=1\",\"X=1\",\"ACME_MODE=1\"]},"
			 "\"linux\":{\"devices\":[{\"path\":\"/dev/random\",\"type\":\"c\"},"
			 "{\"path\":\"/dev/urandom\",\"type\":\"c\"}," ZERO "}]}}");
	slice_find(&spec, &cat, &slice);
	assert_int_equal(slice.n, 5);
	assert_int_equal(slice.items[0].kind, SLICE_DEVICE);
	assert_int_equal(slice.items[0].node->kind, GS_NODE_CONTROL);
	assert_int_equal(slice.items[1].node->kind, GS_NODE_SHARED);
	assert_int_equal(slice.items[2].node->kind, GS_NODE_CARD);
	assert_int_equal(slice.items[2].index, 2);
	assert_int_equal(slice.items[3].kind, SLICE_ENV);
	assert_string_equal(slice.items[3].vendor->name, "zeta");
	assert_true(slice_item_selects(&slice, &slice.items[3]));
	assert_int_equal(slice.items[4].index, 2);
	assert_int_equal(slice.items[4].env->merge, GS_ENV_REPLACE);
	assert_false(slice_item_selects(&slice, &slice.items[4]));
}

static void rules_are_spelled_out(void **state)
{
	cleanup_buf struct gs_buf out = { 0 };

	slice_add_rule(&out, 'c', 195, 0, ACCESS_R | ACCESS_W);
	slice_add_rule(&out, 'b', 8, RULE_ANY, ACCESS_ALL);
	slice_add_rule(&out, 'c', RULE_ANY, RULE_ANY, ACCESS_M);
	assert_string_equal(
		out.data,
		"{\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":0,\"access\":\"rw\"}"
		"{\"allow\":true,\"type\":\"b\",\"major\":8,\"access\":\"rwm\"}"
		"{\"allow\":true,\"type\":\"c\",\"access\":\"m\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_of_a_vendor),
		cmocka_unit_test(takes_what_is_named),
		cmocka_unit_test(rights),
		cmocka_unit_test(odd_devices),
		cmocka_unit_test(who_has_cards),
		cmocka_unit_test(items_in_the_order_of_the_spec),
		cmocka_unit_test(rules_are_spelled_out),
	};

	return cmocka_run_group_tests_name("slice", tests, setup, teardown);
}
