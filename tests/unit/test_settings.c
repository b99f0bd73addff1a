// SPDX-License-Identifier: Apache-2.0
/* agent/settings.c: the section "agent" of the configuration, and every mistake with its place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/settings.h"
#include "common/cleanup.h"
#include "tests/unit/tmpdir.h"

static int setup(void **state)
{
	*state = tmpdir_make();
	return 0;
}

static int teardown(void **state)
{
	tmpdir_remove(*state);
	return 0;
}

static int load(const char *dir, const char *text, struct settings *ret, struct gs_err *err)
{
	if (text)
		tmpdir_write(dir, "config.json", text);
	settings_init(ret);
	return settings_load(ret, tmpdir_path(dir, "config.json"), err);
}

static void assert_defaults(const struct settings *s)
{
	assert_false(s->lend);
	assert_false(s->lend_shared);
	assert_true(s->kernel_kill);
	assert_int_equal(s->lend_after_ms, 600000);
	assert_int_equal(s->lend_min_free, 50);
	assert_int_equal(s->hold_max_ms, 30000);
	assert_int_equal(s->load_period_ms, 2000);
	assert_int_equal(s->sample_ms, 0);
	assert_int_equal(s->http_port, 9479);
	assert_string_equal(s->http_address, "127.0.0.1");
	assert_int_equal(s->exempt.n, 0);
	assert_null(s->kube.server);
	assert_false(s->sale.enabled);
	assert_int_equal(s->sale.cpu_ratio, 100);
	assert_int_equal(s->sale.memory_ratio, 100);
	assert_int_equal(s->sale.cpu_floor + s->sale.memory_floor, 0);
	assert_true(s->plugins);
	assert_true(s->view);
	assert_null(s->view_namespace);
	assert_int_equal(s->share, 2);
	assert_string_equal(s->kubelet, "/var/lib/kubelet");
}

static void defaults(void **state)
{
	static const char *const texts[] = { NULL, "{}", "{\"agent\":{}}", "{\"cri\":\"none\"}",
					     "{\"agent\":null}" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		struct gs_err err = { 0 };
		struct settings s;

		assert_int_equal(load(*state, texts[i], &s, &err), 0);
		assert_defaults(&s);
		settings_free(&s);
	}
}

static void every_key(void **state)
{
	struct gs_err err = { 0 };
	struct settings s;

	assert_int_equal(
		load(*state,
		     "{\"agent\":{\"lend\":true,\"lend_shared\":true,\"kernel_kill\":false,"
		     "\"lend_after\":\"1h30m\",\"lend_min_free\":10,\"hold_max\":\"5s\","
		     "\"load_period\":\"500ms\",\"sample_period\":\"1m\","
		     "\"exempt\":[\"mon/*/dcgm\"],"
		     "\"exempt_cgroups\":[\"/system.slice/dcgm.service\"],\"probe\":\"/p\","
		     "\"http\":{\"address\":\"::1\",\"port\":0},"
		     "\"kubernetes\":{\"server\":\"https://k:6443\",\"ca_file\":\"/ca\","
		     "\"token_file\":\"/t\",\"node\":\"n1\"},"
		     "\"device_plugins\":{\"enabled\":false,\"share\":4,"
		     "\"kubelet_dir\":\"/k\"},"
		     "\"oversale\":{\"enabled\":true,\"cpu_ratio\":150,\"memory_ratio\":90,"
		     "\"cpu_floor\":\"500m\",\"memory_floor\":\"2Gi\"},"
		     "\"cluster_view\":{\"enabled\":false,\"namespace\":\"ns\"}}}",
		     &s, &err),
		0);
	assert_true(s.lend && s.lend_shared && !s.kernel_kill);
	assert_int_equal(s.lend_after_ms, 5400000);
	assert_int_equal(s.lend_min_free, 10);
	assert_int_equal(s.hold_max_ms, 5000);
	assert_int_equal(s.load_period_ms, 500);
	assert_int_equal(s.sample_ms, 60000);
	assert_string_equal(s.exempt.v[0], "mon/*/dcgm");
	assert_string_equal(s.exempt_cgroups.v[0], "/system.slice/dcgm.service");
	assert_string_equal(s.probe, "/p");
	assert_string_equal(s.http_address, "::1");
	assert_int_equal(s.http_port, 0);
	assert_string_equal(s.kube.server, "https://k:6443");
	assert_string_equal(s.kube.ca_file, "/ca");
	assert_string_equal(s.kube.token_file, "/t");
	assert_string_equal(s.kube.node, "n1");
	assert_true(s.sale.enabled);
	assert_int_equal(s.sale.cpu_ratio, 150);
	assert_int_equal(s.sale.memory_ratio, 90);
	assert_int_equal(s.sale.cpu_floor, 500);
	assert_int_equal(s.sale.memory_floor, 2048);
	assert_false(s.plugins);
	assert_false(s.view);
	assert_string_equal(s.view_namespace, "ns");
	assert_int_equal(s.share, 4);
	assert_string_equal(s.kubelet, "/k");
	settings_free(&s);
}

static void mistakes(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "{\"agent\":{\"land\":true}}", ":1:11: unknown key \"land\" in agent" },
		{ "{\"agent\":{\"lend\":1}}", ":1:18: lend must be" },
		{ "{\"agent\":{\"lend_after\":\"soon\"}}", "lend_after" },
		{ "{\"agent\":{\"lend_after\":\"0\"}}", "lend_after must be at least 50ms" },
		{ "{\"agent\":{\"lend_after\":\"49ms\"}}", "lend_after must be at least 50ms" },
		{ "{\"agent\":{\"hold_max\":\"999ms\"}}", "hold_max must be at least 1000ms" },
		{ "{\"agent\":{\"load_period\":\"1ms\"}}", "load_period must be at least 100ms" },
		{ "{\"agent\":{\"sample_period\":\"0\"}}",
		  "sample_period must be at least 1000ms" },
		{ "{\"agent\":{\"lend_min_free\":101}}", "lend_min_free" },
		{ "{\"agent\":{\"probe\":\"p\"}}", "probe must be an absolute path" },
		{ "{\"agent\":{\"exempt\":\"x\"}}", "exempt must be" },
		{ "{\"agent\":{\"http\":{\"port\":65536}}}", "port" },
		{ "{\"agent\":{\"kubernetes\":{\"server\":\"https://k\"}}}", "node" },
		{ "{\"agent\":{\"kubernetes\":{\"node\":\"n\"}}}", "server" },
		{ "{\"agent\":{\"device_plugins\":{\"share\":0}}}", "share must be at least 1" },
		{ "{\"agent\":{\"device_plugins\":{\"share\":65}}}", "share" },
		{ "{\"agent\":{\"device_plugins\":{\"kubelet_dir\":\"k\"}}}",
		  "kubelet_dir must be an absolute path" },
		{ "{\"agent\":{\"device_plugins\":{\"enabled\":1}}}", "enabled must be" },
		{ "{\"agent\":{\"oversale\":{\"cpu_ratio\":1001}}}", "cpu_ratio" },
		{ "{\"agent\":{\"oversale\":{\"memory_floor\":\"much\"}}}", "memory_floor: " },
		{ "{\"agent\":{\"oversale\":{\"vcpu\":1}}}", "unknown key" },
		{ "{\"agent\":{\"cluster_view\":{\"namespace\":\"a/b\"}}}", "namespace is none" },
		{ "{\"agent\":{\"cluster_view\":{\"on\":true}}}", "unknown key" },
		{ "{\"agent\":[]}", "agent" },
		{ "{", "line 1" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		struct gs_err err = { 0 };
		struct settings s;

		assert_int_equal(load(*state, cases[i].text, &s, &err), -EINVAL);
		if (!strstr(err.msg, cases[i].want))
			fail_msg("%s: \"%s\" has no \"%s\"", cases[i].text, err.msg, cases[i].want);
		assert_non_null(strstr(err.msg, "config.json"));
		/* no half of a broken section is in force */
		assert_defaults(&s);
		settings_free(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(every_key, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
