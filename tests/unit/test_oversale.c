// SPDX-License-Identifier: Apache-2.0
/* agent/oversale.c and node_use.c: what is for sale, and what is in use. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/node_use.h"
#include "agent/oversale.h"
#include "tests/unit/tmpdir.h"

static uint64_t sell(struct oversale *sale, uint64_t used, uint64_t jobs, bool *news)
{
	const struct oversale_view view = {
		.allocatable = 64000,
		.ratio = 90,
		.floor = 1000,
		.used = used,
		.jobs = jobs,
	};

	return oversale_sell(sale, &view, 100, news);
}

static void the_formula(void **state)
{
	struct oversale sale = { 0 };
	bool news;

	(void)state;
	/* 64000 * 0.9 - 1000 - 10000, in whole hundreds */
	assert_int_equal(sell(&sale, 10050, 0, &news), 46500);
	assert_true(news);
	/* What jobs use was sold to them, and stays so. */
	assert_int_equal(sell(&sale, 40050, 30000, &news), 46500);
	assert_false(news);
	/* Two readings of different moments. */
	assert_int_equal(sell(&sale, 1000, 2000, &news), 46500);
	assert_true(sale.others < 10050);
}

static void more_counts_at_once_less_by_and_by(void **state)
{
	struct oversale sale = { 0 };
	bool news;
	uint64_t now;

	(void)state;
	assert_int_equal(sell(&sale, 0, 0, &news), 56600);
	assert_int_equal(sell(&sale, 50000, 0, &news), 6600);
	assert_true(news);
	now = sell(&sale, 0, 0, &news);
	assert_int_equal(now, 11600);
	for (int i = 0; i < 6; i++)
		now = sell(&sale, 0, 0, &news);
	assert_true(now > 25000 && now < 35000);
	for (int i = 0; i < 100; i++)
		now = sell(&sale, 0, 0, &news);
	assert_true(now > 53000);
}

static void little_is_no_news(void **state)
{
	struct oversale sale = { 0 };
	bool news;

	(void)state;
	(void)sell(&sale, 10000, 0, &news);
	assert_int_equal(sell(&sale, 12000, 0, &news), 46600);
	assert_false(news);
	assert_int_equal(sell(&sale, 12500, 0, &news), 44100);
	assert_true(news);
	/* To nothing, and from there. */
	assert_int_equal(sell(&sale, 60000, 0, &news), 0);
	assert_true(news);
	assert_int_equal(sell(&sale, 60000, 0, &news), 0);
	assert_false(news);
	assert_true(sell(&sale, 0, 0, &news) > 0);
	assert_true(news);
}

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

static void what_the_node_uses(void **state)
{
	struct node_use use = { 0 };
	struct gs_err err = { 0 };

	tmpdir_write(*state, "stat", "cpu  100 20 30 9999 888 4 5 6 7 8\ncpu0 1 1 1 1\n");
	tmpdir_write(*state, "meminfo",
		     "MemTotal:       16384000 kB\nMemFree:        1 kB\n"
		     "MemAvailable:    4096000 kB\n");
	assert_int_equal(node_use_all(*state, &use, &err), 0);
	assert_int_equal(use.cpu_us, 165 * 10000);
	assert_int_equal(use.memory_mib, 12000);
	tmpdir_write(*state, "meminfo", "MemTotal:       16384000 kB\n");
	assert_int_equal(node_use_all(*state, &use, &err), -EINVAL);
	tmpdir_write(*state, "stat", "cpu\n");
	assert_int_equal(node_use_all(*state, &use, &err), -EINVAL);
}

static void pod(const char *root, const char *dir, const char *usage)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/cpu.stat", dir);
	tmpdir_write(root, path, usage);
	(void)snprintf(path, sizeof(path), "%s/memory.current", dir);
	tmpdir_write(root, path, "314572800\n");
	(void)snprintf(path, sizeof(path), "%s/memory.stat", dir);
	tmpdir_write(root, path, "anon 5\ninactive_file 104857600\n");
}

static void what_a_pod_uses(void **state)
{
	struct node_use use = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(node_use_pod(*state, "a-b", &use, &err), -ENOENT);
	pod(*state, "kubepods/besteffort/poda-b", "usage_usec 77\nuser_usec 1\n");
	assert_int_equal(node_use_pod(*state, "a-b", &use, &err), 0);
	assert_int_equal(use.cpu_us, 77);
	assert_int_equal(use.memory_mib, 200);
	pod(*state, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podc_d.slice",
	    "usage_usec 78\n");
	assert_int_equal(node_use_pod(*state, "c-d", &use, &err), 0);
	assert_int_equal(use.cpu_us, 78);
	pod(*state, "kubepods.slice/kubepods-pode_f.slice", "nothing\n");
	assert_int_equal(node_use_pod(*state, "e-f", &use, &err), -EINVAL);
	/* A UID is no path. */
	assert_int_equal(node_use_pod(*state, "../besteffort/poda-b", &use, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_formula),
		cmocka_unit_test(more_counts_at_once_less_by_and_by),
		cmocka_unit_test(little_is_no_news),
		cmocka_unit_test_setup_teardown(what_the_node_uses, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_pod_uses, setup, teardown),
	};

	return cmocka_run_group_tests_name("oversale", tests, NULL, NULL);
}
