// SPDX-License-Identifier: Apache-2.0
/* The edits of one config.json: where new members go, and that every other byte stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/rewrite.h"
#include "tests/unit/specs.h"

static void env(struct rewrite *rw)
{
	js_array_append(&rw->env, "\"N=1\"");
}

static void everything(struct rewrite *rw)
{
	env(rw);
	js_array_append(&rw->mounts, "{\"m\":1}");
	js_array_append(&rw->devices, "{\"d\":1}");
	js_array_append(&rw->rules, "{\"r\":1}");
	js_array_append(&rw->hooks[STAGE_PRESTART], "{\"p\":1}");
	js_array_append(&rw->hooks[STAGE_POSTSTOP], "{\"p\":2}");
	rewrite_limit(rw, "cpu", "quota", 5000);
	rewrite_limit(rw, "memory", "limit", 9007199254740993);
	rewrite_limit(rw, "cpu", "period", 100000);
}

static void rules(struct rewrite *rw)
{
	js_array_append(&rw->rules, "{\"r\":1}");
}

static void cpu(struct rewrite *rw)
{
	rewrite_limit(rw, "cpu", "quota", 5000);
	rewrite_limit(rw, "cpu", "shares", 2);
}

static void two_hooks(struct rewrite *rw)
{
	js_array_append(&rw->hooks[STAGE_CREATE_RUNTIME], "{\"h\":1}");
	js_array_append(&rw->hooks[STAGE_PRESTART], "{\"h\":2}");
}

static void places(void **state)
{
	static const struct {
		void (*what)(struct rewrite *rw);
		const char *before, *after;
	} rows[] = {
		{ env, "{\"process\":{},\"linux\":{}}",
		  "{\"process\":{\"env\":[\"N=1\"]},\"linux\":{}}" },
		{ env, "{\"process\":{\"env\":null,\"x\":1},\"linux\":{}}",
		  "{\"process\":{\"env\":[\"N=1\"],\"x\":1},\"linux\":{}}" },
		{ env, "{\"process\":{\"env\":[ \"A=1\" ]},\"linux\":{}}",
		  "{\"process\":{\"env\":[ \"A=1\", \"N=1\" ]},\"linux\":{}}" },
		{ everything, "{\"process\":{},\"linux\":{}}",
		  "{\"process\":{\"env\":[\"N=1\"]},\"linux\":{\"devices\":[{\"d\":1}],"
		  "\"resources\":{\"devices\":[{\"r\":1}],\"cpu\":{\"quota\":5000,"
		  "\"period\":100000},"
		  "\"memory\":{\"limit\":9007199254740993}}},\"mounts\":[{\"m\":1}],"
		  "\"hooks\":{\"prestart\":[{\"p\":1}],\"poststop\":[{\"p\":2}]}}" },
		{ everything,
		  "{\"process\":{},\"mounts\":null,\"hooks\":null,\"linux\":{\"devices\":null,"
		  "\"resources\":null}}",
		  "{\"process\":{\"env\":[\"N=1\"]},\"mounts\":[{\"m\":1}],"
		  "\"hooks\":{\"prestart\":[{\"p\":1}],\"poststop\":[{\"p\":2}]},"
		  "\"linux\":{\"devices\":[{\"d\":1}],\"resources\":{\"devices\":[{\"r\":1}],"
		  "\"cpu\":{\"quota\":5000,"
		  "\"period\":100000},"
		  "\"memory\":{\"limit\":9007199254740993}}}}" },
		{ everything,
		  "{\"hooks\":{},\"linux\":{\"resources\":{}},\"mounts\":[],"
		  "\"process\":{\"env\":[]},\"z\":18446744073709551616}",
		  "{\"hooks\":{\"prestart\":[{\"p\":1}],\"poststop\":[{\"p\":2}]},\"linux\":{"
		  "\"resources\":{\"devices\":[{\"r\":1}],\"cpu\":{\"quota\":5000,"
		  "\"period\":100000},"
		  "\"memory\":{\"limit\":9007199254740993}},\"devices\":[{\"d\":1}]},"
		  "\"mounts\":[{\"m\":1}],\"process\":{\"env\":[\"N=1\"]},"
		  "\"z\":18446744073709551616}" },
		{ rules, "{\"process\":{},\"linux\":{\"resources\":{\"devices\":[{\"k\":1}]}}}",
		  "{\"process\":{},\"linux\":{\"resources\":{\"devices\":["
		  "{\"k\":1},{\"r\":1}]}}}" },
		{ rules, "{\"process\":{},\"linux\":{\"resources\":{\"memory\":{}}}}",
		  "{\"process\":{},\"linux\":{\"resources\":{\"memory\":{},"
		  "\"devices\":[{\"r\":1}]}}}" },
		{ cpu,
		  "{\"process\":{},\"linux\":{\"resources\":{\"cpu\":{\"quota\":-1 ,"
		  "\"cpus\":\"0\"}}}}",
		  "{\"process\":{},\"linux\":{\"resources\":{\"cpu\":{\"quota\":5000 ,"
		  "\"cpus\":\"0\",\"shares\":2}}}}" },
		{ cpu, "{\"process\":{},\"linux\":{\"resources\":{\"cpu\":null}}}",
		  "{\"process\":{},\"linux\":{\"resources\":{\"cpu\":{\"quota\":5000,"
		  "\"shares\":2}}}}" },
		{ cpu, "{\"process\":{},\"linux\":{\"resources\":{\"cpu\":{\"quota\":null}}}}",
		  "{\"process\":{},\"linux\":{\"resources\":{\"cpu\":{\"quota\":5000,"
		  "\"shares\":2}}}}" },
		{ cpu, "{\"linux\":{\"resources\":{\"cpu\":{}}}}",
		  "{\"linux\":{\"resources\":{\"cpu\":{\"quota\":5000,\"shares\":2}}}}" },
		{ two_hooks,
		  "{\"hooks\":{\"prestart\":[{\"path\":\"/k\"}],\"createRuntime\":null}}",
		  "{\"hooks\":{\"prestart\":[{\"path\":\"/k\"},{\"h\":2}],"
		  "\"createRuntime\":[{\"h\":1}]}}" },
		{ two_hooks, "{\n  \"hooks\": {\n    \"prestart\": []\n  }\n}\n",
		  "{\n  \"hooks\": {\n    \"prestart\": [{\"h\":2}],\n    \"createRuntime\": "
		  "[{\"h\":1}]\n  }\n}\n" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_spec struct spec spec;
		cleanup_rewrite struct rewrite rw;
		cleanup_free char *text = NULL;

		spec_make(&spec, rows[i].before);
		rewrite_begin(&rw, &spec);
		assert_false(rewrite_changes(&rw));
		rows[i].what(&rw);
		assert_true(rewrite_changes(&rw));
		text = rewrite_make(&rw);
		if (strcmp(text, rows[i].after) != 0)
			fail_msg("%s became %s, not %s", rows[i].before, text, rows[i].after);
	}
}

/* Without an edit the text is the same, whatever odd things stand in it. */
static void no_edit(void **state)
{
	static const char *const texts[] = {
		"{}",
		" { \"process\" : { \"env\" : [ \"A=1\" , \"\\u0042=\\/\" ] } , "
		"\"linux\" : null }\n",
		"{\"a\":1e400,\"b\":[[[]]],\"mounts\":[],\"mountS2\":0.10,"
		"\"\xf0\x9f\x98\x80\":\"\"}",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		cleanup_spec struct spec spec;
		cleanup_rewrite struct rewrite rw;
		cleanup_free char *text = NULL;

		spec_make(&spec, texts[i]);
		rewrite_begin(&rw, &spec);
		text = rewrite_make(&rw);
		assert_string_equal(text, texts[i]);
		assert_false(rewrite_changes(&rw));
	}
}

/* Each single kind of change counts as one. */
static void every_change_counts(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec, "{\"process\":{\"env\":[\"A=1\"]},\"mounts\":[{\"destination\":\"/a\"}],"
			 "\"hooks\":{\"poststop\":[{\"path\":\"/a\"}]},\"linux\":{\"devices\":["
			 "{\"path\":\"/dev/a\",\"type\":\"c\"}],\"resources\":{\"devices\":["
			 "{\"access\":\"r\"}]}}}");
	for (int i = 0; i < 6; i++) {
		cleanup_rewrite struct rewrite rw;
		cleanup_free char *text = NULL;
		struct js_array *const arrays[] = { &rw.env, &rw.mounts, &rw.devices, &rw.rules,
						    &rw.hooks[STAGE_POSTSTOP] };

		rewrite_begin(&rw, &spec);
		if (i < 5)
			js_array_drop(arrays[i], 0);
		else
			rewrite_limit(&rw, "memory", "limit", 1);
		assert_true(rewrite_changes(&rw));
		text = rewrite_make(&rw);
		assert_string_not_equal(text, spec.text);
	}
}

/* Four limits are all that there are; one more is left out and breaks nothing. */
static void limits_are_bounded(void **state)
{
	cleanup_spec struct spec spec;
	cleanup_rewrite struct rewrite rw;
	cleanup_free char *text = NULL;
	cleanup_free char *beyond = gs_asprintf(":%d", REWRITE_LIMITS_MAX);

	spec_make(&spec, "{\"linux\":{}}");
	rewrite_begin(&rw, &spec);
	for (int i = 0; i < REWRITE_LIMITS_MAX + 3; i++)
		rewrite_limit(&rw, "cpu", "quota", i);
	assert_int_equal(rw.n_limits, REWRITE_LIMITS_MAX);
	text = rewrite_make(&rw);
	assert_null(strstr(text, beyond));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(no_edit),
		cmocka_unit_test(every_change_counts),
		cmocka_unit_test(limits_are_bounded),
	};

	return cmocka_run_group_tests_name("rewrite", tests, NULL, NULL);
}
