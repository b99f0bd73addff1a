// SPDX-License-Identifier: Apache-2.0
/* The configuration file: defaults, every key, profiles, and every mistake with its place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "tests/unit/tmpdir.h"

static int setup(void **state)
{
	*state = tmpdir_make();
	(void)setenv(GS_CONFIG_ENV, tmpdir_path(*state, "config.json"), 1);
	return 0;
}

static int teardown(void **state)
{
	tmpdir_remove(*state);
	(void)unsetenv(GS_CONFIG_ENV);
	return 0;
}

static int load(struct gs_config *config, const char *profile, struct gs_err *err)
{
	gs_config_init(config);
	return gs_config_load(config, profile, err);
}

static void assert_list(const struct gs_strv *list, const char *a, const char *b, const char *c)
{
	const char *const want[] = { a, b, c, NULL };
	size_t n;

	for (n = 0; want[n]; n++) {
		assert_true(n < list->n);
		assert_string_equal(list->v[n], want[n]);
	}
	assert_int_equal(list->n, n);
}

static void assert_defaults(const struct gs_config *config)
{
	assert_list(&config->next, "nvidia-container-runtime", "runc", "crun");
	assert_int_equal(config->cri, GS_CRI_CONTAINERD);
	assert_string_equal(config->run_dir, GPUSHARE_RUNSTATEDIR "/gpushare");
	assert_string_equal(config->lib_dir, GPUSHARE_LOCALSTATEDIR "/lib/gpushare");
	assert_string_equal(config->hook, GPUSHARE_LIBEXECDIR "/gpushare-hook");
	assert_list(&config->vendor_dirs, GPUSHARE_DATADIR "/vendors.d",
		    GPUSHARE_SYSCONFDIR "/gpushare/vendors.d", NULL);
	assert_int_equal(config->cross_pod, GS_CROSS_POD_GRANT);
	assert_true(config->fence_privileged);
	assert_list(&config->state_dirs, "/run/containerd/io.containerd.runtime.v2.task/k8s.io",
		    NULL, NULL);
	assert_int_equal(config->create_wait_ms, 15000);
	assert_int_equal(config->log_level, GS_LOG_INFO);
	assert_null(config->log_file);
}

static void test_no_file_is_the_defaults(void **state)
{
	cleanup_config struct gs_config config;
	struct gs_err err = { 0 };

	assert_int_equal(load(&config, NULL, &err), 0);
	assert_int_equal(err.code, 0);
	assert_defaults(&config);
	assert_string_equal(config.path, tmpdir_path(*state, "config.json"));
}

static void test_empty_object_is_the_defaults(void **state)
{
	cleanup_config struct gs_config config;
	struct gs_err err = { 0 };

	tmpdir_write(*state, "config.json", "{}");
	assert_int_equal(load(&config, "gpushare-runtime", &err), 0);
	assert_defaults(&config);
}

static void test_path_without_the_variable(void **state)
{
	cleanup_config struct gs_config config = { 0 }, empty = { 0 };

	(void)unsetenv(GS_CONFIG_ENV);
	gs_config_init(&config);
	assert_string_equal(config.path, GPUSHARE_SYSCONFDIR "/gpushare/config.json");
	(void)setenv(GS_CONFIG_ENV, "", 1);
	gs_config_init(&empty);
	assert_string_equal(empty.path, GPUSHARE_SYSCONFDIR "/gpushare/config.json");
}

static void test_every_key(void **state)
{
	cleanup_config struct gs_config config;
	struct gs_err err = { 0 };

	tmpdir_write(
		*state, "config.json",
		"{\"next\": [\"/opt/runc\", \"crun\"],\n"
		" \"profiles\": {\"gpushare-nvidia\": {\"next\": [\"nv\"]}},\n"
		" \"cri\": \"cri-o\", \"run_dir\": \"/r\", \"lib_dir\": \"/l\",\n"
		" \"hook\": \"/h\", \"vendor_dirs\": [\"/v\"], \"cross_pod\": \"annotation\",\n"
		" \"fence_privileged\": false, \"refuse_unconfirmed\": true,\n"
		" \"state_dirs\": [\"/s\", \"/t\"], \"create_wait_ms\": 0,\n"
		" \"log\": {\"level\": \"debug\", \"file\": \"/var/log/g\"},\n"
		" \"agent\": {\"anything\": [1]}, \"controller\": {}}\n");
	if (load(&config, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	assert_list(&config.next, "/opt/runc", "crun", NULL);
	assert_int_equal(config.cri, GS_CRI_CRIO);
	assert_string_equal(config.run_dir, "/r");
	assert_string_equal(config.lib_dir, "/l");
	assert_string_equal(config.hook, "/h");
	assert_list(&config.vendor_dirs, "/v", NULL, NULL);
	assert_int_equal(config.cross_pod, GS_CROSS_POD_ANNOTATION);
	assert_false(config.fence_privileged);
	assert_list(&config.state_dirs, "/s", "/t", NULL);
	assert_int_equal(config.create_wait_ms, 0);
	assert_int_equal(config.log_level, GS_LOG_DEBUG);
	assert_string_equal(config.log_file, "/var/log/g");
}

static void test_example_of_the_manual(void **state)
{
	cleanup_config struct gs_config config;
	struct gs_err err = { 0 };

	tmpdir_write(*state, "config.json",
		     "{\"cri\": \"none\", \"log\": {\"level\": \"info\", \"file\": null}}");
	assert_int_equal(load(&config, NULL, &err), 0);
	assert_int_equal(config.cri, GS_CRI_NONE);
	assert_null(config.log_file);
}

static void test_profile_replaces_next_under_its_name_only(void **state)
{
	cleanup_config struct gs_config mine, other, none;
	struct gs_err err = { 0 };

	tmpdir_write(*state, "config.json",
		     "{\"profiles\": {\"a\": {\"next\": [\"x\"]}, \"gpushare-nv\": {\"next\": "
		     "[\"y\", \"z\"]}}, \"next\": [\"runc\"]}");
	assert_int_equal(load(&mine, "gpushare-nv", &err), 0);
	assert_list(&mine.next, "y", "z", NULL);
	assert_int_equal(load(&other, "gpushare-runtime", &err), 0);
	assert_list(&other.next, "runc", NULL, NULL);
	assert_int_equal(load(&none, NULL, &err), 0);
	assert_list(&none.next, "runc", NULL, NULL);
}

static void test_mistakes_have_line_column_and_key(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", ": line 1, column 1: " },
		{ "{\n\"cri\": \"none\",\n}", ": line 3, column 1: expected a string" },
		{ "[]", ":1:1: must be a JSON object" },
		{ "{\n \"nxet\": []}", ":2:2: unknown key \"nxet\"" },
		{ "{\"cri\":\"none\",\n\"cri\":\"none\"}", ":2:1: key \"cri\" stands twice" },
		{ "{\"next\": \"runc\"}", ":1:10: next must be a list" },
		{ "{\"next\": []}", ":1:10: next must name at least one" },
		{ "{\"next\": [\"runc\", 1]}", ":1:19: next must be a list of strings" },
		{ "{\"next\": [\"\"]}", "next must hold names or absolute paths" },
		{ "{\"next\": [\"bin/runc\"]}", "not \"bin/runc\"" },
		{ "{\"profiles\": []}", ":1:14: profiles must be an object" },
		{ "{\"profiles\": {\"a\": []}}", ":1:20: a profile must be an object" },
		{ "{\"profiles\": {\"a\": {}}}", "key \"next\" is missing in a profile" },
		{ "{\"profiles\": {\"a\": {\"next\": [\"r\"], \"x\": 1}}}", "unknown key \"x\"" },
		{ "{\"profiles\": {\"p\": {\"next\": [\"r\"]}, \"p\": {\"next\": [\"s\"]}}}",
		  ":1:37: profile \"p\" stands twice" },
		{ "{\"profiles\": {\"q\": {\"next\": [\"r\"]}, \"q\": {\"next\": [\"s\"]}}}",
		  "profile \"q\" stands twice" },
		{ "{\"cri\": \"docker\"}",
		  ":1:9: cri must be \"containerd\", \"cri-o\" or \"none\"" },
		{ "{\"cri\": true}", ":1:9: cri must be a string" },
		{ "{\"run_dir\": \"run\"}", "run_dir must be an absolute path, not \"run\"" },
		{ "{\"lib_dir\": 1}", "lib_dir must be a string" },
		{ "{\"lib_dir\": \"a\\u0000b\"}", "lib_dir must be a string without U+0000" },
		{ "{\"hook\": \"\"}", "hook must be an absolute path" },
		{ "{\"vendor_dirs\": [\"/a\", \"b\"]}", "vendor_dirs must be an absolute path" },
		{ "{\"cross_pod\": \"yes\"}", "cross_pod must be \"grant\" or \"annotation\"" },
		{ "{\"fence_privileged\": 1}", "fence_privileged must be true or false" },
		{ "{\"refuse_unconfirmed\": \"no\"}", "refuse_unconfirmed must be true or false" },
		{ "{\"state_dirs\": {}}", "state_dirs must be a list" },
		{ "{\"create_wait_ms\": -1}", "create_wait_ms must be a whole number from 0" },
		{ "{\"create_wait_ms\": 1.0}", "create_wait_ms must be a whole number from 0" },
		{ "{\"create_wait_ms\": 15001}", "create_wait_ms must be at most 15000" },
		{ "{\"log\": []}", "log must be an object" },
		{ "{\"log\": {\"level\": \"loud\"}}",
		  "level must be \"error\", \"warn\", \"info\" or \"debug\"" },
		{ "{\"log\": {\"file\": \"x\"}}", "file must be an absolute path" },
		{ "{\"log\": {\"path\": \"/x\"}}", ":1:10: unknown key \"path\" in log" },
		{ "{\"agent\": []}", "agent must be an object" },
		{ "{\"controller\": 1}", "controller must be an object" },
		/* a mistake late in the file must not leave the first half in force */
		{ "{\"next\": [\"evil\"], \"run_dir\": \"/evil\", \"log\": {\"level\": 1}}",
		  "level must be a string" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_config struct gs_config config;
		struct gs_err err = { 0 };

		tmpdir_write(*state, "config.json", rows[i].text);
		if (load(&config, "p", &err) != -EINVAL)
			fail_msg("accepted: %s", rows[i].text);
		if (strncmp(err.msg, config.path, strlen(config.path)) != 0 ||
		    !strstr(err.msg, rows[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.msg,
				 rows[i].want);
		assert_defaults(&config);
	}
}

static void test_file_that_cannot_be_read(void **state)
{
	cleanup_config struct gs_config dir, file, relative;
	struct gs_err err = { 0 };

	assert_int_equal(mkdir(tmpdir_path(*state, "config.json"), 0700), 0);
	assert_int_equal(load(&dir, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "config.json is not a regular file"));
	assert_defaults(&dir);

	tmpdir_write(*state, "plain", "");
	(void)setenv(GS_CONFIG_ENV, tmpdir_path(*state, "plain/config.json"), 1);
	assert_int_equal(load(&file, NULL, &err), -ENOTDIR);

	/* the working directory is often the bundle */
	(void)setenv(GS_CONFIG_ENV, "config.json", 1);
	assert_int_equal(load(&relative, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.msg, GS_CONFIG_ENV " must be an absolute path"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_no_file_is_the_defaults),
		T(test_empty_object_is_the_defaults),
		T(test_path_without_the_variable),
		T(test_every_key),
		T(test_example_of_the_manual),
		T(test_profile_replaces_next_under_its_name_only),
		T(test_mistakes_have_line_column_and_key),
		T(test_file_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
