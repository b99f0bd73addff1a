// SPDX-License-Identifier: Apache-2.0
/* The inventory with real probes, which read cards made of files. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/inventory.h"
#include "common/cleanup.h"
#include "common/kmsg.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/tmpdir.h"
#include "tests/unit/watcher.h"

static int setup(void **state)
{
	*state = watcher_begin();
	return 0;
}

static int teardown(void **state)
{
	watcher_end(*state);
	return 0;
}

static void tells_cards_and_their_nodes(void **state)
{
	struct watcher *w = *state;
	const struct card *card;
	const struct vendor_driver *driver;

	fakecards_fakegpu(w->root);
	fakecards_add(w->root, 0, "/dev/full");
	fakecards_add(w->root, 1, "/dev/zero");
	fakecards_link(w->root, "dev/fakegpuctl", "/dev/null");
	fakecards_link(w->root, "dev/fakegpu-uvm", "/dev/random");
	watcher_start(w, 60000);
	watcher_run(w, &w->loaded, 2);
	assert_int_equal(w->changed, 1);
	assert_int_equal(inventory_cards(w->inventory)->n, 2);
	card = cards_find(inventory_cards(w->inventory), "FAKE-1");
	assert_non_null(card);
	assert_ptr_equal(card, cards_find(inventory_cards(w->inventory), "fakegpu-FAKE-1"));
	assert_string_equal(card->uuid, "FAKE-1");
	assert_string_equal(card->vendor, "fakegpu");
	assert_int_equal(card->index, 1);
	assert_null(card->pci);
	assert_int_equal(card->n_nodes, 3);
	assert_string_equal(card->nodes[0].path, "/dev/fakegpu1");
	assert_int_equal(card->nodes[0].dev, gs_kdev(1, 5));
	assert_true(card->nodes[0].own && card->nodes[0].hook && card->nodes[0].revocable);
	assert_string_equal(card->nodes[1].path, "/dev/fakegpuctl");
	assert_int_equal(card->nodes[1].dev, gs_kdev(1, 3));
	assert_true(!card->nodes[1].own && card->nodes[1].hook && !card->nodes[1].revocable);
	assert_string_equal(card->nodes[2].path, "/dev/fakegpu-uvm");
	assert_ptr_equal(cards_of_dev(inventory_cards(w->inventory), gs_kdev(1, 5)), card);
	assert_null(cards_of_dev(inventory_cards(w->inventory), gs_kdev(1, 3)));
	driver = inventory_driver(w->inventory, "fakegpu");
	assert_non_null(driver);
	assert_int_equal(driver->hook_nodes.n, 3);
	assert_int_equal(driver->n_passive, 1);
	assert_int_equal(driver->passive[0].magic, 'F');
	assert_int_equal(driver->passive[0].nr, 1);
	assert_null(inventory_driver(w->inventory, "nobody"));
	assert_int_equal(inventory_catalogue(w->inventory)->n, 1);
	assert_int_equal(w->failed, 0);
}

static void reads_load_on_schedule_and_on_demand(void **state)
{
	struct watcher *w = *state;
	const struct load *load;
	uint64_t before;

	fakecards_fakegpu(w->root);
	fakecards_add(w->root, 0, "/dev/full");
	watcher_start(w, 60000);
	watcher_run(w, &w->loaded, 1);
	load = inventory_load(w->inventory, "FAKE-0");
	assert_non_null(load);
	assert_true(load->known && load->memory_known && load->processes_known);
	assert_true(load->busy == 0);
	assert_int_equal(load->memory_total, 1073741824);
	assert_int_equal(load->n_processes, 0);
	assert_null(inventory_load(w->inventory, "FAKE-7"));

	/* The period is a minute: only the asking brings these. */
	fakecards_set(w->root, 0, "load", "100\n");
	fakecards_set(w->root, 0, "mem_used", "4096\n");
	before = gs_boottime_ms();
	inventory_read(w->inventory, "fakegpu-FAKE-0");
	watcher_run(w, &w->loaded, 2);
	load = inventory_load(w->inventory, "FAKE-0");
	assert_true(load->busy == 1);
	assert_int_equal(load->memory_used, 4096);
	assert_true(load->at_ms >= before);
	/* The list of processes is the older one, and says so. */
	assert_true(load->processes_known && load->processes_at_ms <= before);

	inventory_free(w->inventory);
	watcher_start(w, 50);
	watcher_run(w, &w->loaded, 6);
}

static void tells_who_has_a_card_open(void **state)
{
	struct watcher *w = *state;
	const struct load *load;
	pid_t pid;

	fakecards_fakegpu(w->root);
	fakecards_add(w->root, 0, "/dev/full");
	fakecards_add(w->root, 1, "/dev/zero");
	watcher_start(w, 60000);
	watcher_run(w, &w->loaded, 2);
	pid = fakecards_holder("/dev/full");
	inventory_read(w->inventory, "FAKE-0");
	watcher_run(w, &w->loaded, 3);
	assert_int_equal(inventory_load(w->inventory, "FAKE-0")->n_processes, 0);
	inventory_read_all(w->inventory, "FAKE-0");
	watcher_run(w, &w->loaded, 4);
	load = inventory_load(w->inventory, "FAKE-0");
	assert_true(load->processes_known);
	assert_int_equal(load->n_processes, 1);
	assert_int_equal(load->processes[0].pid, pid);
	fakecards_kill(pid);
	inventory_read_all(w->inventory, "FAKE-0");
	watcher_run(w, &w->loaded, 5);
	assert_int_equal(inventory_load(w->inventory, "FAKE-0")->n_processes, 0);
}

static void cards_come_and_go(void **state)
{
	struct watcher *w = *state;

	fakecards_fakegpu(w->root);
	/* The nodes are there, so that only what is asked for happens. */
	fakecards_link(w->root, "dev/fakegpu0", "/dev/full");
	fakecards_link(w->root, "dev/fakegpu1", "/dev/zero");
	/* A vendor without cards leaves no process behind. */
	watcher_start(w, 60000);
	watcher_settle(w, 0);
	assert_int_equal(w->changed, 0);
	fakecards_add(w->root, 0, "/dev/full");
	inventory_refresh(w->inventory);
	watcher_run(w, &w->loaded, 1);
	assert_int_equal(w->changed, 1);
	assert_int_equal(watcher_probes(w, NULL), 1);
	/* The same again is no change, and what was read stays. */
	inventory_refresh(w->inventory);
	watcher_run(w, &w->loaded, 2);
	assert_int_equal(w->changed, 1);
	fakecards_set(w->root, 0, "mem_used", "77\n");
	inventory_read(w->inventory, "FAKE-0");
	watcher_run(w, &w->loaded, 3);
	fakecards_add(w->root, 1, "/dev/zero");
	inventory_refresh(w->inventory);
	watcher_run(w, &w->changed, 2);
	assert_int_equal(inventory_cards(w->inventory)->n, 2);
	assert_int_equal(inventory_load(w->inventory, "FAKE-0")->memory_used, 77);
	assert_int_equal(inventory_load(w->inventory, "FAKE-1")->at_ms, 0);
	watcher_run(w, &w->loaded, 5);
	/* Their driver is unloaded. */
	tmpdir_write(w->root, "sys/class/fakegpu/fakegpu0/uuid", "FAKE-9\n");
	assert_int_equal(rename(tmpdir_path(w->root, "sys/class/fakegpu"),
				tmpdir_path(w->root, "sys/class/gone")),
			 0);
	inventory_refresh(w->inventory);
	watcher_run(w, &w->changed, 3);
	assert_int_equal(inventory_cards(w->inventory)->n, 0);
	watcher_settle(w, 0);
	assert_int_equal(w->failed, 0);
}

/* Without being asked: the driver makes its nodes. */
static void a_driver_is_loaded(void **state)
{
	struct watcher *w = *state;

	fakecards_fakegpu(w->root);
	fakecards_vendor(
		w->root, "deep.json",
		"{\"name\":\"deep\",\"title\":\"x\",\"nodes\":[{\"glob\":\"/dev/deep/d*\","
		"\"kind\":\"card\"}],\"inventory\":{\"source\":\"files\",\"cards\":"
		"\"/sys/class/deep/*\",\"nodes\":[\"/dev/deep/d{index}\"],\"id\":\"{index}\"}}");
	watcher_start(w, 60000);
	watcher_idle(w, 300);
	/* A node of nobody. */
	fakecards_set(w->root, 0, "nothing", "");
	fakecards_link(w->root, "dev/other0", "/dev/full");
	watcher_idle(w, 600);
	assert_int_equal(w->failed, 0);
	fakecards_add(w->root, 0, "/dev/full");
	watcher_run(w, &w->changed, 1);
	assert_int_equal(inventory_cards(w->inventory)->n, 1);
	/* One in a folder that is not there yet; a vendor without load keeps no process. */
	fakecards_link(w->root, "dev/deep/d0", "/dev/zero");
	tmpdir_write(w->root, "sys/class/deep/x/y", "");
	watcher_run(w, &w->changed, 2);
	assert_int_equal(inventory_cards(w->inventory)->n, 2);
	assert_int_equal(cards_find(inventory_cards(w->inventory), "deep-0")->n_nodes, 1);
	watcher_settle(w, 1);
	/* And the driver goes. */
	assert_int_equal(rename(tmpdir_path(w->root, "sys/class/fakegpu"),
				tmpdir_path(w->root, "sys/class/gone")),
			 0);
	assert_int_equal(unlink(tmpdir_path(w->root, "dev/fakegpu0")), 0);
	watcher_run(w, &w->changed, 3);
	assert_int_equal(inventory_cards(w->inventory)->n, 1);
}

static void a_mistake_in_the_catalogue(void **state)
{
	struct watcher *w = *state;
	struct gs_err err = { 0 };
	struct inventory *inventory = NULL;
	const struct inventory_ops ops = { 0 };

	fakecards_vendor(w->root, "a.json", "{\"name\":\"a\",\"title\":\"A\",\"nodes\":[]}");
	gs_config_free(&w->config);
	fakecards_config(&w->config, w->root);
	assert_int_equal(inventory_new(&w->loop, &w->config, "/nowhere", 1000, &ops, &inventory,
				       &err),
			 -EINVAL);
	assert_null(inventory);
	assert_non_null(strstr(err.msg, "a.json:1:"));
}

static void no_probe_program(void **state)
{
	struct watcher *w = *state;

	fakecards_fakegpu(w->root);
	fakecards_add(w->root, 0, "/dev/full");
	free(w->probe);
	w->probe = gs_strdup("/nowhere/gpushare-probe");
	watcher_start(w, 60000);
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->why, "gpushare-probe can't be run");
	assert_string_equal(w->vendor, "fakegpu");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(tells_cards_and_their_nodes),
		T(reads_load_on_schedule_and_on_demand),
		T(tells_who_has_a_card_open),
		T(cards_come_and_go),
		T(a_driver_is_loaded),
		T(a_mistake_in_the_catalogue),
		T(no_probe_program),
	};

	return cmocka_run_group_tests_name("inventory", tests, NULL, NULL);
}
