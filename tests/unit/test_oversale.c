// SPDX-License-Identifier: Apache-2.0
/* agent/oversale.c, node_use.c, squeeze.c, ceiling.c: what is sold, used, limited, taken back. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/ceiling.h"
#include "agent/node_use.h"
#include "agent/oversale.h"
#include "agent/squeeze.h"
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

static void cpu_is_squeezed_by_what_is_left(void **state)
{
	(void)state;
	/* All is there: what was bought, and no more. */
	assert_int_equal(oversale_squeezed(500, 2000, 2000), 500);
	assert_int_equal(oversale_squeezed(500, 2000, 64000), 500);
	/* Each the same part. */
	assert_int_equal(oversale_squeezed(500, 2000, 1000), 250);
	assert_int_equal(oversale_squeezed(1500, 2000, 1000), 750);
	/* Never nothing, and nothing is no limit. */
	assert_int_equal(oversale_squeezed(500, 2000, 0), 10);
	assert_int_equal(oversale_squeezed(4, 2000, 0), 4);
	assert_int_equal(oversale_squeezed(0, 2000, 0), 0);
	assert_int_equal(oversale_squeezed(0, 0, 0), 0);
	/* As much as a cluster could write. */
	assert_int_equal(oversale_squeezed(1000000000, 4000000000000, 2000000000000), 500000000);
}

static uint64_t excess(unsigned int ratio, uint64_t floor, uint64_t used, uint64_t jobs)
{
	const struct oversale_view view = { 10000, ratio, floor, used, jobs };

	return oversale_excess(&view);
}

static void memory_beyond_what_there_is_comes_back(void **state)
{
	(void)state;
	assert_int_equal(excess(100, 0, 10000, 5000), 0);
	assert_int_equal(excess(100, 0, 10001, 5000), 1);
	assert_int_equal(excess(100, 1000, 10000, 5000), 1000);
	assert_int_equal(excess(50, 0, 6000, 5000), 1000);
	/* Nobody can use more than there is. */
	assert_int_equal(excess(300, 0, 12000, 5000), 2000);
	/* No more than jobs have. */
	assert_int_equal(excess(100, 0, 20000, 5000), 5000);
	assert_int_equal(excess(100, 20000, 1, 5000), 1);
	assert_int_equal(excess(100, 0, 20000, 0), 0);
}

static void the_cheapest_jobs_go(void **state)
{
	const struct oversale_job all[] = {
		{ .uid = "dear", .priority = 10, .since = "2026-01-09", .memory_used = 100 },
		{ .uid = "old", .priority = -5, .since = "2026-01-01", .memory_used = 100 },
		{ .uid = "young", .priority = -5, .since = "2026-01-02", .memory_used = 100 },
		{ .uid = "empty", .priority = -9, .since = "2026-01-03" },
		{ .uid = "going",
		  .priority = -9,
		  .since = "2026-01-03",
		  .memory_used = 50,
		  .going = true },
	};
	struct oversale_job jobs[5];

	(void)state;
	memcpy(jobs, all, sizeof(all));
	assert_int_equal(oversale_victims(jobs, 5, 0), 0);
	/* Who is going brings enough. */
	assert_int_equal(oversale_victims(jobs, 5, 50), 0);
	assert_int_equal(oversale_victims(jobs, 5, 51), 1);
	assert_string_equal(jobs[0].uid, "young");
	memcpy(jobs, all, sizeof(all));
	assert_int_equal(oversale_victims(jobs, 5, 151), 2);
	assert_string_equal(jobs[0].uid, "young");
	assert_string_equal(jobs[1].uid, "old");
	/* Who uses nothing brings nothing. */
	assert_int_equal(oversale_victims(jobs, 5, 5000), 3);
	assert_string_equal(jobs[2].uid, "dear");
	assert_int_equal(oversale_victims(NULL, 0, 5000), 0);
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
	struct node_use_all use = { 0 }, later;
	struct gs_err err = { 0 };
	uint64_t milli;

	tmpdir_write(*state, "stat",
		     "cpu  100 20 30 9000 888 4 5 6 7 8\ncpu0 1 1 1 1 1\ncpu3 1 1 1 1 1\nintr 5\n");
	tmpdir_write(*state, "meminfo",
		     "MemTotal:       16384000 kB\nMemFree:        1 kB\n"
		     "MemAvailable:    4096000 kB\n");
	assert_int_equal(node_use_all(*state, &use, &err), 0);
	assert_int_equal(use.processors, 2);
	assert_int_equal(use.idle_us, 9888 * 10000);
	assert_int_equal(use.memory_mib, 12000);
	/* Idle for half a second of two times two. */
	later = use;
	later.idle_us += 500000;
	assert_int_equal(node_use_between(&use, &later, 2000000, &milli), 0);
	assert_int_equal(milli, 1750);
	/* Two readings are never of the same moment. */
	assert_int_equal(node_use_between(&use, &later, 200000, &milli), 0);
	assert_int_equal(milli, 0);
	assert_int_equal(node_use_between(&later, &use, 1000000, &milli), 0);
	assert_int_equal(milli, 2000);
	assert_int_equal(node_use_between(&use, &later, 0, &milli), -EAGAIN);
	later.processors = 3;
	assert_int_equal(node_use_between(&use, &later, 2000000, &milli), -EAGAIN);
	tmpdir_write(*state, "meminfo", "MemTotal:       16384000 kB\n");
	assert_int_equal(node_use_all(*state, &use, &err), -EINVAL);
	tmpdir_write(*state, "stat", "cpu  1 1 1 1 1\nintr 5\n");
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

/* What cpu.max says then. */
static void squeezed(const char *root, uint64_t milli, const char *wanted)
{
	struct gs_err err = { 0 };
	char *text;

	assert_int_equal(squeeze_pod(root, "a-b", milli, &err), 0);
	text = tmpdir_read(root, "kubepods/besteffort/poda-b/cpu.max");
	/* the kernel replaces the whole text, a file keeps what is longer */
	assert_memory_equal(text, wanted, strlen(wanted));
	free(text);
}

static void a_pods_limit(void **state)
{
	struct gs_err err = { 0 };

	assert_int_equal(squeeze_pod(*state, "a-b", 500, &err), -ENOENT);
	tmpdir_write(*state, "kubepods/besteffort/poda-b/cpu.stat", "");
	assert_int_equal(squeeze_pod(*state, "a-b", 500, &err), -ENOENT);
	tmpdir_write(*state, "kubepods/besteffort/poda-b/cpu.max", "max 100000\n");
	squeezed(*state, 500, "50000 100000\n");
	squeezed(*state, 500, "50000 100000\n");
	squeezed(*state, 10, "1000 100000\n");
	assert_int_equal(squeeze_pod(*state, "../besteffort/poda-b", 500, &err), -ENOENT);
}

/* A pod with that limit, that uses so many MiB, so many of them clean pages of files. */
static void memory(const char *root, const char *limit, uint64_t used, uint64_t clean)
{
	char text[128];

	tmpdir_write(root, "kubepods/besteffort/poda-b/cpu.stat", "usage_usec 1\n");
	tmpdir_write(root, "kubepods/besteffort/poda-b/memory.max", limit);
	(void)snprintf(text, sizeof(text), "%" PRIu64 "\n", used << 20);
	tmpdir_write(root, "kubepods/besteffort/poda-b/memory.current", text);
	(void)snprintf(text, sizeof(text),
		       "inactive_file %" PRIu64 "\nfile_dirty 2097152\nfile_writeback 1048576\n",
		       (clean + 3) << 20);
	tmpdir_write(root, "kubepods/besteffort/poda-b/memory.stat", text);
}

/* One that bought 100 MiB: what memory.max is then, whether that is news, and it has more. */
static void limited(const char *root, const char *wanted, int news, bool wanted_above)
{
	struct gs_err err = { 0 };
	bool above;
	char *text;

	assert_int_equal(ceiling_pod(root, "a-b", 100, &above, &err), news);
	assert_int_equal(above, wanted_above);
	text = tmpdir_read(root, "kubepods/besteffort/poda-b/memory.max");
	assert_memory_equal(text, wanted, strlen(wanted));
	free(text);
}

static void a_pods_memory(void **state)
{
	struct gs_err err = { 0 };
	bool above;

	assert_int_equal(ceiling_pod(*state, "a-b", 100, &above, &err), -ENOENT);
	memory(*state, "max\n", 40, 0);
	limited(*state, "104857600\n", 1, false);
	limited(*state, "104857600\n", 0, false);
	/* a tighter one stays; systemd's daemon-reload takes ours away */
	memory(*state, "4096\n", 40, 0);
	limited(*state, "4096\n", 0, false);
	memory(*state, "max\n", 100, 0);
	limited(*state, "104857600\n", 1, false);
	memory(*state, "104861696\n", 40, 0);
	limited(*state, "104857600\n", 1, false);
	/* it has more: no further, and nothing is killed */
	memory(*state, "max\n", 300, 0);
	limited(*state, "314572800\n", 0, true);
	memory(*state, "314572800\n", 310, 0);
	limited(*state, "314572800\n", 0, true);
	memory(*state, "314572800\n", 120, 0);
	limited(*state, "125829120\n", 0, true);
	memory(*state, "125829120\n", 99, 0);
	limited(*state, "104857600\n", 1, false);
	/* pages that cost nothing are dropped: some; and not below what it bought */
	memory(*state, "max\n", 300, 40);
	limited(*state, "293601280\n", 0, true);
	memory(*state, "max\n", 1000, 950);
	limited(*state, "981467136\n", 0, false);
	memory(*state, "max\n", 110, 40);
	limited(*state, "104857600\n", 1, false);
	memory(*state, "max\n", 300, 0);
	tmpdir_write(*state, "kubepods/besteffort/poda-b/memory.current", "much\n");
	assert_int_equal(ceiling_pod(*state, "a-b", 100, &above, &err), -EINVAL);
}

static void version_1_tells_nothing(void **state)
{
	struct gs_err err = { 0 };

	assert_int_equal(node_use_check(*state, &err), -ENOTSUP);
	assert_non_null(strstr(err.msg, "cgroup v2 is not mounted there"));
	tmpdir_write(*state, "cgroup.controllers", "cpu memory\n");
	assert_int_equal(node_use_check(*state, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_formula),
		cmocka_unit_test(more_counts_at_once_less_by_and_by),
		cmocka_unit_test(little_is_no_news),
		cmocka_unit_test(cpu_is_squeezed_by_what_is_left),
		cmocka_unit_test(memory_beyond_what_there_is_comes_back),
		cmocka_unit_test(the_cheapest_jobs_go),
		cmocka_unit_test_setup_teardown(what_the_node_uses, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_pod_uses, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pods_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pods_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(version_1_tells_nothing, setup, teardown),
	};

	return cmocka_run_group_tests_name("oversale", tests, NULL, NULL);
}
