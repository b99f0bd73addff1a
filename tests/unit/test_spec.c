// SPDX-License-Identifier: Apache-2.0
/* Reading config.json: what is taken for what, and what is refused with which words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/spec.h"
#include "tests/unit/specs.h"

static void empty_specs(void **state)
{
	static const char *const texts[] = {
		"{}",
		" {\n} ",
		"{\"process\":null,\"mounts\":null,\"hooks\":null,\"annotations\":null,"
		"\"linux\":null}",
		"{\"process\":{},\"mounts\":[],\"hooks\":{},\"annotations\":{},\"linux\":{}}",
		"{\"process\":{\"env\":null},\"hooks\":{\"prestart\":null},\"linux\":{\"devices\":"
		"null,\"resources\":null,\"namespaces\":null,\"cgroupsPath\":null}}",
		"{\"process\":{\"env\":[]},\"linux\":{\"devices\":[],\"resources\":{\"devices\":"
		"null}}}",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		cleanup_spec struct spec spec;
		cleanup_free char *ours = NULL;

		spec_make(&spec, texts[i]);
		assert_int_equal(spec.n_devices + spec.n_rules + spec.n_mounts + spec.n_envs +
					 spec.n_hooks,
				 0);
		assert_string_equal(spec.cgroups_path, "");
		assert_false(spec_is_annotated(&spec));
		ours = spec_our_annotations(&spec);
		assert_string_equal(ours, "{}");
		assert_null(spec_env_value(&spec, "PATH"));
		assert_int_equal(spec_rules_access(&spec, 'c', 1, 3), 0);
		assert_false(spec_allows_all(&spec));
		assert_string_equal(spec.text, texts[i]);
	}
}

static void devices(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec, "{\"linux\":{\"devices\":[\n"
			 "{\"path\":\"/dev/a\",\"type\":\"c\",\"major\":195,\"minor\":0},\n"
			 "{\"type\":\"u\",\"path\":\"/dev/\\u0062\",\"minor\":2,\"major\":1,"
			 "\"fileMode\":438,\"x\":1e9},\n"
			 "{\"path\":\"/dev/c\",\"type\":\"b\",\"major\":null},\n"
			 "{\"path\":\"/dev/d\",\"type\":\"p\"}]}}");
	assert_int_equal(spec.n_devices, 4);
	assert_string_equal(spec.device[0].path, "/dev/a");
	assert_int_equal(spec.device[0].type, 'c');
	assert_true(spec.device[0].major == 195 && spec.device[0].minor == 0);
	assert_string_equal(spec.device[1].path, "/dev/b");
	assert_int_equal(spec.device[1].type, 'c'); /* u is mknod(1)'s other name of it */
	assert_true(spec.device[1].major == 1 && spec.device[1].minor == 2);
	assert_memory_equal(spec.device[1].raw.p, "{\"type\":\"u\"", 11);
	assert_int_equal(spec.device[1].raw.p[spec.device[1].raw.n - 1], '}');
	assert_int_equal(spec.device[2].type, 'b');
	assert_true(spec.device[2].major == 0);
	assert_int_equal(spec.device[3].type, 'p');
}

/* crun 1.8 takes a rule without access, runc 1.1 does not; both know wildcards. */
static void rules(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec,
		  "{\"linux\":{\"resources\":{\"devices\":["
		  "{\"allow\":false,\"access\":\"rwm\"},"
		  "{\"allow\":true,\"type\":\"c\",\"major\":195,\"minor\":0},"
		  "{\"type\":\"b\",\"major\":8,\"access\":\"r\"},"
		  "{\"allow\":true,\"type\":\"a\",\"access\":\"\"},"
		  "{\"allow\":true,\"type\":\"\",\"major\":-1,\"minor\":null,\"access\":\"mr\"},"
		  "{\"allow\":null,\"type\":\"u\",\"minor\":3,\"access\":null}]}}}");
	assert_int_equal(spec.n_rules, 6);
	assert_false(spec.rule[0].allow);
	assert_int_equal(spec.rule[0].type, 'a');
	assert_true(spec.rule[0].major == RULE_ANY && spec.rule[0].minor == RULE_ANY);
	assert_true(spec.rule[1].allow && spec.rule[1].type == 'c');
	assert_true(spec.rule[1].major == 195 && spec.rule[1].minor == 0);
	assert_int_equal(spec.rule[1].access, ACCESS_ALL);
	assert_false(spec.rule[2].allow); /* absent: false, as in Go */
	assert_int_equal(spec.rule[2].access, ACCESS_R);
	assert_true(spec.rule[2].minor == RULE_ANY);
	assert_int_equal(spec.rule[3].access, ACCESS_ALL);
	assert_int_equal(spec.rule[4].type, 'a');
	assert_int_equal(spec.rule[4].access, ACCESS_M | ACCESS_R);
	assert_int_equal(spec.rule[5].type, 'c');
	assert_true(spec.rule[5].major == RULE_ANY && spec.rule[5].minor == 3);
	assert_int_equal(spec.rule[5].access, ACCESS_ALL);
}

/* What several rules grant together: in order, starting with nothing. */
static void rules_are_applied_in_order(void **state)
{
#define ALLOW(rest) "{\"allow\":true," rest "}"
#define DENY(rest) "{\"allow\":false," rest "}"
	static const struct {
		const char *rules;
		unsigned int c195_0, c195_9, b8_0;
		bool all;
	} rows[] = {
		{ "", 0, 0, 0, false },
		{ ALLOW("\"access\":\"rwm\""), 7, 7, 7, true },
		{ ALLOW("\"type\":\"a\",\"major\":1,\"minor\":1,\"access\":\"rwm\""), 7, 7, 7,
		  true },
		{ DENY("\"access\":\"rwm\""), 0, 0, 0, false },
		{ DENY("\"access\":\"rwm\"") "," ALLOW("\"type\":\"c\",\"major\":195,\"minor\":0,"
						       "\"access\":\"rw\""),
		  3, 0, 0, false },
		{ ALLOW("\"type\":\"c\",\"major\":195,\"minor\":0,\"access\":\"rw\"") "," DENY(
			  "\"access\":\"rwm\""),
		  0, 0, 0, false },
		{ ALLOW("\"type\":\"c\",\"major\":195,\"access\":\"r\"") "," ALLOW(
			  "\"type\":\"c\",\"minor\":0,\"access\":\"w\""),
		  3, 1, 0, false },
		{ ALLOW("\"access\":\"rwm\"") "," DENY(
			  "\"type\":\"c\",\"major\":195,\"access\":\"wm\""),
		  1, 1, 7, true },
		{ ALLOW("\"type\":\"b\",\"access\":\"rwm\""), 0, 0, 7, false },
		{ ALLOW("\"type\":\"c\",\"access\":\"rwm\""), 7, 7, 0, true },
		/* docker's and podman's default: nodes may be made, not opened */
		{ ALLOW("\"type\":\"c\",\"access\":\"m\"") "," ALLOW(
			  "\"type\":\"b\",\"access\":\"m\""),
		  4, 4, 4, false },
		{ ALLOW("\"access\":\"rwm\"") "," DENY("\"access\":\"rw\""), 4, 4, 4, false },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *text = gs_asprintf(
			"{\"linux\":{\"resources\":{\"devices\":[%s]}}}", rows[i].rules);
		cleanup_spec struct spec spec;

		spec_make(&spec, text);
		if (spec_rules_access(&spec, 'c', 195, 0) != rows[i].c195_0 ||
		    spec_rules_access(&spec, 'c', 195, 9) != rows[i].c195_9 ||
		    spec_rules_access(&spec, 'b', 8, 0) != rows[i].b8_0 ||
		    spec_allows_all(&spec) != rows[i].all)
			fail_msg("%s: %u %u %u %d", rows[i].rules,
				 spec_rules_access(&spec, 'c', 195, 0),
				 spec_rules_access(&spec, 'c', 195, 9),
				 spec_rules_access(&spec, 'b', 8, 0), spec_allows_all(&spec));
	}
#undef ALLOW
#undef DENY
}

static void mounts(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec,
		  "{\"mounts\":["
		  "{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		  "{\"destination\":\"/a\",\"type\":\"bind\",\"source\":\"/b\"},"
		  "{\"destination\":\"/c\",\"source\":\"/d\",\"options\":[\"ro\",\"rbind\"]},"
		  "{\"destination\":\"/e\",\"type\":\"none\",\"options\":[\"bind\"]},"
		  "{\"destination\":\"/f\",\"type\":null,\"options\":null,\"source\":null}]}");
	assert_int_equal(spec.n_mounts, 5);
	assert_string_equal(spec.mount[0].to, "/proc");
	assert_false(spec.mount[0].bind);
	assert_true(spec.mount[1].bind);
	assert_string_equal(spec.mount[1].from, "/b");
	assert_true(spec.mount[2].bind);
	assert_true(spec.mount[3].bind);
	assert_string_equal(spec.mount[3].from, "");
	assert_false(spec.mount[4].bind);
}

static void environment(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec, "{\"process\":{\"env\":[\"A=1\",\"B=x=y\",\"C\",\"A=2\",\"D=\",\"=E\","
			 "\"\",\"\\u0046=\\n\"]}}");
	assert_int_equal(spec.n_envs, 8);
	assert_int_equal(spec.envs[1].name_len, 1);
	assert_string_equal(spec.envs[1].value, "x=y");
	assert_int_equal(spec.envs[2].name_len, 1);
	assert_string_equal(spec.envs[2].value, "");
	assert_int_equal(spec.envs[5].name_len, 0);
	assert_string_equal(spec_env_value(&spec, "A"), "2"); /* runc keeps the last */
	assert_string_equal(spec_env_value(&spec, "B"), "x=y");
	assert_string_equal(spec_env_value(&spec, "C"), "");
	assert_string_equal(spec_env_value(&spec, "D"), "");
	assert_string_equal(spec_env_value(&spec, "F"), "\n");
	assert_null(spec_env_value(&spec, "AB"));
}

static void hooks(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec, "{\"hooks\":{\"poststop\":[{\"path\":\"/z\"}],\"prestart\":["
			 "{\"path\":\"/a\",\"args\":[\"a\",\"b\"],\"env\":[],\"timeout\":5},"
			 "{\"path\":\"/b\",\"args\":null}],\"createContainer\":[{\"path\":\"/c\"}],"
			 "\"unknownStage\":[7]}}");
	assert_int_equal(spec.n_hooks, 4);
	assert_int_equal(spec.hook[0].stage, STAGE_PRESTART);
	assert_string_equal(spec.hook[0].path, "/a");
	assert_memory_equal(spec.hook[0].args.p, "[\"a\",\"b\"]", 9);
	assert_string_equal(spec.hook[1].path, "/b");
	assert_int_equal(spec.hook[2].stage, STAGE_CREATE_CONTAINER);
	assert_int_equal(spec.hook[3].stage, STAGE_POSTSTOP);
	for (int i = 0; i < STAGE_COUNT; i++)
		assert_non_null(spec_stage_names[i]);
}

static void annotations(void **state)
{
	cleanup_spec struct spec spec;
	cleanup_free char *ours = NULL, *value = NULL;
	struct gs_err err = { 0 };

	spec_make(&spec, "{\"annotations\":{\"a\":\"1\",\"gpushare.k8s.io/x\":\"v\\n\","
			 "\"gpushare.k8s.io.evil/y\":\"2\",\"Gpushare.k8s.io/z\":\"3\","
			 "\"gpushare.k8s.io\\/w\" : \"\",\"gpushare.k8s.io/n\":null,"
			 "\"gpushare.k8s.io/u\":\"\\u0000\",\"gpushare.k8s.io/7\":7,"
			 "\"gpushare.k8s.io/d\":\"1\",\"gpushare.k8s.io/d\":\"2\"}}");
	assert_true(spec_is_annotated(&spec));
	ours = spec_our_annotations(&spec);
	assert_string_equal(ours, "{\"gpushare.k8s.io/x\":\"v\\n\",\"gpushare.k8s.io\\/w\":\"\","
				  "\"gpushare.k8s.io/n\":null,\"gpushare.k8s.io/u\":\"\\u0000\","
				  "\"gpushare.k8s.io/7\":7,\"gpushare.k8s.io/d\":\"1\","
				  "\"gpushare.k8s.io/d\":\"2\"}");
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/x", &value, &err), 0);
	assert_string_equal(value, "v\n");
	free(value);
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/w", &value, &err), 0);
	assert_string_equal(value, "");
	free(value);
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/n", &value, &err), 0);
	assert_null(value);
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/absent", &value, &err), 0);
	assert_null(value);
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/u", &value, &err), -EINVAL);
	expect_words(&err, "gpushare.k8s.io/u", NULL);
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/7", &value, &err), -EINVAL);
	expect_words(&err, "gpushare.k8s.io/7", NULL);
	assert_int_equal(spec_annotation(&spec, "gpushare.k8s.io/d", &value, &err), -EEXIST);
	expect_words(&err, "gpushare.k8s.io/d", "twice", NULL);
}

static void only_our_keys_make_it_annotated(void **state)
{
	static const char *const not [] = {
		"{\"annotations\":{\"x\":\"gpushare.k8s.io/a\"}}",
		"{\"annotations\":{\"gpushare.k8s.io\":\"\",\"xgpushare.k8s.io/a\":\"\"}}",
		"{\"process\":{\"args\":[\"gpushare.k8s.io/a\"]},\"gpushare.k8s.io/a\":1}",
	};
	cleanup_spec struct spec hidden;

	for (size_t i = 0; i < GS_ARRAY_SIZE(not ); i++) {
		cleanup_spec struct spec spec;

		spec_make(&spec, not [i]);
		assert_false(spec_is_annotated(&spec));
	}
	spec_make(&hidden, "{\"annotations\":{\"\\u0067pushare.k8s.io/a\":\"\"}}");
	assert_true(spec_is_annotated(&hidden));
}

static void refuses_what_it_cannot_understand(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *words;
	} rows[] = {
		{ "", EINVAL, "line 1" },
		{ "[]", EINVAL, "not a JSON object" },
		{ "\"x\"", EINVAL, "not a JSON object" },
		{ "{}{}", EINVAL, "something follows" },
		{ "{\"process\":[]}", EINVAL, "\"process\" is not an object" },
		{ "{\"process\":{\"env\":{}}}", EINVAL, "\"env\" is not an array" },
		{ "{\"process\":{\"env\":[\"a=b\",7]}}", EINVAL, "process.env[1]" },
		{ "{\"process\":{\"env\":[null]}}", EINVAL, "process.env[0]" },
		{ "{\"process\":{\"env\":[\"a=\\u0000\"]}}", EINVAL, "NUL" },
		{ "{\"mounts\":{}}", EINVAL, "\"mounts\"" },
		{ "{\"mounts\":[{}]}", EINVAL, "mounts[0]: \"destination\" is missing" },
		{ "{\"mounts\":[{\"destination\":7}]}", EINVAL, "\"destination\" is not a string" },
		{ "{\"mounts\":[{\"destination\":\"/a\",\"options\":\"bind\"}]}", EINVAL,
		  "\"options\" is not an array" },
		{ "{\"mounts\":[7]}", EINVAL, "mounts[0]" },
		{ "{\"hooks\":[]}", EINVAL, "\"hooks\"" },
		{ "{\"hooks\":{\"prestart\":{}}}", EINVAL, "\"prestart\" is not an array" },
		{ "{\"hooks\":{\"poststart\":[{}]}}", EINVAL, "hooks.poststart: \"path\"" },
		{ "{\"hooks\":{\"poststart\":[{\"path\":\"/a\",\"args\":\"x\"}]}}", EINVAL,
		  "\"args\"" },
		{ "{\"annotations\":[]}", EINVAL, "\"annotations\"" },
		{ "{\"linux\":\"\"}", EINVAL, "\"linux\"" },
		{ "{\"linux\":{\"cgroupsPath\":7}}", EINVAL, "\"cgroupsPath\"" },
		{ "{\"linux\":{\"devices\":[{\"type\":\"c\"}]}}", EINVAL,
		  "linux.devices[0]: \"path\" is missing" },
		{ "{\"linux\":{\"devices\":[{\"path\":\"/dev/a\"}]}}", EINVAL, "type of /dev/a" },
		{ "{\"linux\":{\"devices\":[{\"path\":\"/dev/a\",\"type\":\"cc\"}]}}", EINVAL,
		  "type of /dev/a" },
		{ "{\"linux\":{\"devices\":[{\"path\":\"/dev/a\",\"type\":\"a\"}]}}", EINVAL,
		  "type of /dev/a" },
		{ "{\"linux\":{\"devices\":[{\"path\":\"/dev/a\",\"type\":\"c\",\"major\":1.0}]}}",
		  EINVAL, "\"major\" is not a whole number: 1.0" },
		{ "{\"linux\":{\"devices\":[{\"path\":\"/dev/a\",\"type\":\"c\",\"minor\":"
		  "18446744073709551616}]}}",
		  EINVAL, "\"minor\"" },
		{ "{\"linux\":{\"resources\":[]}}", EINVAL, "\"resources\"" },
		{ "{\"linux\":{\"resources\":{\"devices\":[{\"type\":\"x\"}]}}}", EINVAL,
		  "linux.resources.devices[0]: type" },
		{ "{\"linux\":{\"resources\":{\"devices\":[{\"access\":\"rx\"}]}}}", EINVAL,
		  "access" },
		{ "{\"linux\":{\"resources\":{\"devices\":[{\"allow\":\"yes\"}]}}}", EINVAL,
		  "\"allow\" is not a boolean" },
		{ "{\"linux\":{},\"linux\":{}}", EEXIST, "\"linux\" stands twice" },
		{ "{\"linux\":{},\"LINUX\":{}}", EEXIST, "case" },
		{ "{\"linux\":{\"Devices\":[]}}", EEXIST, "case" },
		{ "{\"process\":{\"env\":[],\"ENV\":[]}}", EEXIST, "case" },
		{ "{\"mounts\":[{\"destination\":\"/a\",\"Destination\":\"/b\"}]}", EEXIST,
		  "mounts[0]" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct gs_err err = { 0 };
		struct spec spec;
		int r = spec_read(&spec, gs_strdup(rows[i].text), strlen(rows[i].text), &err);

		if (r != -rows[i].code || !strstr(err.msg, rows[i].words))
			fail_msg("%s: %d, \"%s\"", rows[i].text, r, err.msg);
		assert_null(spec.text); /* nothing is left to free */
		r = spec_read(&spec, gs_strdup(rows[i].text), strlen(rows[i].text), NULL);
		assert_true(r < 0);
	}
}

/* Numbers that no C type holds are nobody's affair where we do not read them. */
static void leaves_other_numbers_alone(void **state)
{
	cleanup_spec struct spec spec;

	spec_make(&spec, "{\"process\":{\"rlimits\":[{\"type\":\"RLIMIT_MEMLOCK\",\"hard\":"
			 "18446744073709551615,\"soft\":1e999}],\"oomScoreAdj\":-998},"
			 "\"x\":123456789012345678901234567890123456789012345678901234567890.5e-7,"
			 "\"linux\":{\"resources\":{\"memory\":{\"limit\":9223372036854775808}}}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_specs),
		cmocka_unit_test(devices),
		cmocka_unit_test(rules),
		cmocka_unit_test(rules_are_applied_in_order),
		cmocka_unit_test(mounts),
		cmocka_unit_test(environment),
		cmocka_unit_test(hooks),
		cmocka_unit_test(annotations),
		cmocka_unit_test(only_our_keys_make_it_annotated),
		cmocka_unit_test(refuses_what_it_cannot_understand),
		cmocka_unit_test(leaves_other_numbers_alone),
	};

	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
