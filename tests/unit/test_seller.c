// SPDX-License-Identifier: Apache-2.0
/* agent/seller.c: against tests/k8s/apiserver.py and a made-up /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/seller.h"
#include "common/xalloc.h"
#include "tests/unit/kubeclient.h"
#include "tests/unit/tmpdir.h"

static struct kubeclient client;
static char *dir;
static struct seller *seller;

static int setup_all(void **state)
{
	kubeclient_start(&client, false);
	return 0;
}

static int teardown_all(void **state)
{
	kubeclient_stop(&client);
	return 0;
}

static bool going; /* the job is being deleted */
static bool only_memory; /* ... lives on what it bought alone */
static unsigned int cpu_ratio;

static size_t on_jobs(struct oversale_job **ret, void *arg)
{
	*ret = gs_calloc(2, sizeof(**ret));
	(*ret)[0] = (struct oversale_job){
		.uid = "job",
		.cpu = 2000,
		.memory = 4000,
		.since = "",
		.going = going,
		.only_cpu = true,
		.only_memory = only_memory,
	};
	(*ret)[1] = (struct oversale_job){ .uid = "gone", .cpu = 1000, .since = "" };
	return 2;
}

static void on_evict(const char *uid, const char *why, void *arg)
{
	gs_buf_addf(&client.told, "evict %s: %s\n", uid, why);
	going = true;
}

static void on_limited(const char *uid, bool above, void *arg)
{
	gs_buf_addf(&client.told, "limited %s%s\n", uid, above ? " above" : "");
}

static void on_told(const struct gs_err *err, void *arg)
{
	gs_buf_addf(&client.told, "told: %s\n", err ? err->msg : "well");
}

/* Its processor is never idle. @available: memory, in MiB of 16000. */
static void node(unsigned long available)
{
	char text[256];

	tmpdir_write(dir, "stat", "cpu  0 0 0 100 0 0 0 0 0 0\ncpu0 0 0 0 100 0\nintr 1\n");
	(void)snprintf(text, sizeof(text), "MemTotal: %d kB\nMemAvailable: %lu kB\n", 16000 * 1024,
		       available * 1024);
	tmpdir_write(dir, "meminfo", text);
}

static void job(unsigned long mib)
{
	char text[64];

	tmpdir_write(dir, "kubepods/besteffort/podjob/cpu.stat", "usage_usec 1000\n");
	(void)snprintf(text, sizeof(text), "%lu\n", mib * 1024 * 1024);
	tmpdir_write(dir, "kubepods/besteffort/podjob/memory.current", text);
	tmpdir_write(dir, "kubepods/besteffort/podjob/memory.stat", "inactive_file 0\n");
}

/* Runs until that is in the file of the job's cgroup. */
static void until_has(const char *file, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "kubepods/besteffort/podjob/%s", file);
	for (int i = 0; i < 200; i++) {
		char *has = tmpdir_read(dir, path);
		bool same = strncmp(has, text, strlen(text)) == 0;

		free(has);
		if (same)
			return;
		kubeclient_run(&client, 20);
	}
	fail_msg("%s: never %s", path, text);
}

/* Runs until that is what the job may use of CPU. */
static void until_limited(const char *text)
{
	until_has("cpu.max", text);
}

static int setup(void **state)
{
	kubeclient_open(&client);
	dir = tmpdir_make();
	node(12000);
	job(1000);
	tmpdir_write(dir, "cgroup.controllers", "cpu memory\n");
	tmpdir_write(dir, "kubepods/besteffort/podjob/cpu.max", "max 100000\n");
	tmpdir_write(dir, "kubepods/besteffort/podjob/memory.max", "max\n");
	going = false;
	only_memory = true;
	cpu_ratio = 200;
	kubeclient_tell(&client, "{'op':'set','path':'/api/v1/nodes/node-1','object':{'metadata':"
				 "{'name':'node-1'},'status':{'capacity':{'cpu':'8'},'allocatable':"
				 "{'cpu':'7500m','memory':'15360Mi'}}}}");
	return 0;
}

static int teardown(void **state)
{
	seller_free(seller);
	kubeclient_close(&client);
	tmpdir_remove(dir);
	return 0;
}

static void begin(void)
{
	const struct seller_config config = {
		.loop = &client.loop,
		.kube = client.kube,
		.node = "node-1",
		.proc = dir,
		.cgroups = dir,
		.period_ms = 50,
		.settings = { true, cpu_ratio, 100, 1000, 360 },
		.jobs = on_jobs,
		.evict = on_evict,
		.limited = on_limited,
		.told = on_told,
	};

	seller = seller_new(&config);
}

/* Is that in what the server has of the node? */
static bool node_has(const char *text)
{
	char *got = kubeclient_ask(&client, "{'op':'get','path':'/api/v1/nodes/node-1'}");
	bool has = strstr(got, text) != NULL;

	if (!has)
		print_message("%s\n", got);
	free(got);
	return has;
}

static void what_is_unused_is_for_sale(void **state)
{
	struct seller_view cpu, memory;

	begin();
	kubeclient_until(&client, "told: well");
	/* 7500 * 2 - 1000 - 1000; 15360 - 360 - (4000 - 1000), in steps of 64 */
	assert_true(node_has("\"gpushare/vcpu\": \"13000\""));
	assert_true(node_has("\"gpushare/vmem\": \"11968\""));
	assert_true(node_has("\"cpu\": \"8\"")); /* what others wrote stays */
	seller_look(seller, &cpu, &memory);
	assert_int_equal(cpu.sale, 13000);
	assert_int_equal(memory.others, 3000);
	assert_int_equal(memory.jobs, 1000);
	/* What jobs use is theirs: nothing changes, and nothing is told. */
	node(10000);
	job(3000);
	kubeclient_run(&client, 300);
	assert_int_equal(kubeclient_asked(&client, "PATCH"), 1);
	/* Others want it back. */
	node(4000);
	kubeclient_until(&client, "told: well");
	assert_true(node_has("\"gpushare/vmem\": \"5952\""));
}

static void cpu_is_squeezed_and_given_back(void **state)
{
	struct seller_view cpu, memory;

	/* 7500 * 0.4 - 1000 - 1000 are left of the 3000 that were sold, in whole hundreds */
	cpu_ratio = 40;
	begin();
	until_limited("66600 100000");
	seller_look(seller, &cpu, &memory);
	assert_int_equal(cpu.sold, 3000);
	assert_int_equal(cpu.sale, 1000);
	assert_int_equal(memory.sold, 4000);
	/* The node has more: it is what was bought again. */
	kubeclient_tell(&client, "{'op':'set','path':'/api/v1/nodes/node-1','object':{'metadata':"
				 "{'name':'node-1'},'status':{'capacity':{'cpu':'20'},"
				 "'allocatable':{'cpu':'20','memory':'15360Mi'}}}}");
	until_limited("200000 100000");
	assert_int_equal(kubeclient_told(&client, "evict"), 0);
}

static void memory_comes_back_by_an_eviction(void **state)
{
	job(3000);
	begin();
	kubeclient_until(&client, "told: well");
	kubeclient_run(&client, 200);
	assert_int_equal(kubeclient_told(&client, "evict"), 0);
	/* 15360 - 360 may be used, and 15900 are. */
	node(100);
	kubeclient_until(&client,
			 "evict job: the node's other pods want over-sold memory back: 900 "
			 "MiB of the 3000 that jobs use; this one used 3000");
	/* Once: what it has counts while it goes. */
	kubeclient_run(&client, 300);
	assert_int_equal(kubeclient_told(&client, "evict"), 1);
}

static void memory_is_what_was_bought(void **state)
{
	begin();
	/* 4000 MiB */
	until_has("memory.max", "4194304000\n");
	kubeclient_until(&client, "limited job");
	/* a daemon-reload of systemd's */
	tmpdir_write(dir, "kubepods/besteffort/podjob/memory.max", "max\n");
	until_has("memory.max", "4194304000\n");
	kubeclient_run(&client, 200);
	assert_int_equal(kubeclient_told(&client, "limited job\n"), 2);
	/* It has more, from a time before us: it is told once, and loses nothing. */
	job(5000);
	tmpdir_write(dir, "kubepods/besteffort/podjob/memory.max", "max\n");
	until_has("memory.max", "5242880000\n");
	kubeclient_run(&client, 200);
	assert_int_equal(kubeclient_told(&client, "limited job above\n"), 1);
	job(3000);
	until_has("memory.max", "4194304000\n");
	assert_int_equal(kubeclient_told(&client, "told: PATCH"), 0);
}

static void memory_of_its_own_is_left_alone(void **state)
{
	only_memory = false;
	begin();
	until_limited("200000 100000");
	kubeclient_run(&client, 200);
	until_has("memory.max", "max\n");
	assert_int_equal(kubeclient_told(&client, "limited"), 0);
}

static void nothing_is_sold_on_version_1(void **state)
{
	assert_int_equal(unlink(tmpdir_path(dir, "cgroup.controllers")), 0);
	begin();
	kubeclient_until(&client, "cgroup v2 is not mounted there");
	kubeclient_run(&client, 200);
	assert_int_equal(kubeclient_asked(&client, "PATCH"), 0);
}

static void what_was_not_told_is_told_again(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'PATCH','status':403,'body':'{}'}");
	begin();
	kubeclient_until(&client, "told: PATCH");
	kubeclient_until(&client, "told: well");
	assert_true(node_has("\"gpushare/vcpu\": \"13000\""));
}

static void a_node_that_is_not_there(void **state)
{
	kubeclient_tell(&client, "{'op':'unset','path':'/api/v1/nodes/node-1'}");
	begin();
	kubeclient_until(&client, "told: GET");
	assert_int_equal(kubeclient_asked(&client, "PATCH"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_unused_is_for_sale, setup, teardown),
		cmocka_unit_test_setup_teardown(cpu_is_squeezed_and_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_comes_back_by_an_eviction, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_is_what_was_bought, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_of_its_own_is_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_sold_on_version_1, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_not_told_is_told_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_node_that_is_not_there, setup, teardown),
	};

	return cmocka_run_group_tests_name("seller", tests, setup_all, teardown_all);
}
