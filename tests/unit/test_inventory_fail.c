// SPDX-License-Identifier: Apache-2.0
/* Sources that hang, die, print rubbish, and come back; and an agent that is killed. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/tmpdir.h"
#include "tests/unit/watcher.h"

static const char nvml[] =
	"{\"name\":\"fakenv\",\"title\":\"x\","
	"\"nodes\":[{\"glob\":\"/dev/fakenv*\",\"kind\":\"card\"}],"
	"\"inventory\":{\"source\":\"nvml\",\"library\":\"/lib/libfakenvml.so\",\"id\":\"{uuid}\"},"
	"\"load\":{\"source\":\"nvml\",\"library\":\"/lib/libfakenvml.so\","
	"\"processes\":\"nvml\"}}";

static int setup(void **state)
{
	struct watcher *w = watcher_begin();
	cleanup_free char *library = realpath("build/programs/libfakenvml.so", NULL);

	assert_non_null(library);
	fakecards_link(w->root, "lib/libfakenvml.so", library);
	fakecards_vendor(w->root, "fakenv.json", nvml);
	inventory_deadline_ms = 400;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	watcher_end(*state);
	return 0;
}

static void control(struct watcher *w, const char *text)
{
	tmpdir_write(w->root, "nvml.ctl", text);
}

static void one_that_hangs_is_killed_and_started_anew(void **state)
{
	struct watcher *w = *state;
	pid_t before = 0, after = 0;
	uint64_t asked;

	/* Another vendor's cards are read meanwhile. */
	fakecards_fakegpu(w->root);
	fakecards_add(w->root, 0, "/dev/full");
	inventory_deadline_ms = 1500;
	watcher_start(w, 60000);
	watcher_run(w, &w->loaded, 3);
	assert_int_equal(inventory_cards(w->inventory)->n, 3);
	assert_int_equal(watcher_probes(w, &before), 2);
	control(w, "hang DeviceGetUtilizationRates\n");
	asked = gs_boottime_ms();
	inventory_read(w->inventory, "GPU-0001");
	inventory_read(w->inventory, "FAKE-0");
	watcher_run(w, &w->loaded, 4);
	assert_int_equal(w->failed, 0);
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->vendor, "fakenv");
	assert_string_equal(w->why, "no answer within 1500 ms while reading a card's load");
	assert_true(gs_boottime_ms() - asked >= 1490);
	/* Both of its cards are unknown, and stay cards. */
	watcher_run(w, &w->unknown, 2);
	assert_false(inventory_load(w->inventory, "GPU-0000")->known);
	assert_false(inventory_load(w->inventory, "GPU-0001")->processes_known);
	assert_true(inventory_load(w->inventory, "FAKE-0")->known);
	assert_int_equal(inventory_cards(w->inventory)->n, 3);
	/* Asked in vain: told, so that nobody waits. */
	inventory_read(w->inventory, "GPU-0000");
	watcher_run(w, &w->unknown, 3);
	control(w, "");
	asked = gs_boottime_ms();
	watcher_run(w, &w->loaded, 9);
	assert_true(gs_boottime_ms() - asked >= 500);
	assert_true(inventory_load(w->inventory, "GPU-0001")->known);
	assert_int_equal(watcher_probes(w, &after), 2);
	assert_int_equal(w->failed, 1);
	assert_int_equal(w->changed, 2);
}

static void one_that_hangs_again_is_told_once_and_pauses_longer(void **state)
{
	struct watcher *w = *state;
	uint64_t start;

	control(w, "hang DeviceGetUtilizationRates\n");
	watcher_start(w, 60000);
	start = gs_boottime_ms();
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->why, "no answer within 400 ms while reading the cards' load");
	/* Killed at 400, 1400 + 400, 3800 + 400: so at 3 s only the second pause is on. */
	watcher_idle(w, 2500);
	assert_int_equal(watcher_probes(w, NULL), 0);
	control(w, "");
	assert_int_equal(w->loaded, 4);
	watcher_run(w, &w->loaded, 6);
	assert_true(gs_boottime_ms() - start >= 3700);
	assert_int_equal(w->failed, 1);
	/* All is well, so the next time is told again. */
	control(w, "die DeviceGetUtilizationRates\n");
	inventory_read(w->inventory, "GPU-0000");
	watcher_run(w, &w->failed, 2);
	assert_string_equal(w->why, "gpushare-probe died of signal 6");
}

/* Attaching to a driver may take its time. */
static void a_list_may_take_longer(void **state)
{
	struct watcher *w = *state;
	uint64_t start = gs_boottime_ms();

	inventory_deadline_ms = 100;
	control(w, "hang DeviceGetCount\n");
	watcher_start(w, 60000);
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->why, "no answer within 600 ms while listing the cards");
	assert_true(gs_boottime_ms() - start >= 590);
}

static void one_that_is_killed(void **state)
{
	struct watcher *w = *state;
	pid_t pid = 0, other = 0;

	watcher_start(w, 60000);
	watcher_run(w, &w->loaded, 2);
	assert_int_equal(watcher_probes(w, &pid), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->why, "gpushare-probe died of signal 9");
	assert_int_equal(w->unknown, 2);
	watcher_run(w, &w->loaded, 6);
	assert_int_equal(watcher_probes(w, &other), 1);
	assert_int_not_equal(pid, other);
}

/* What a library prints goes nowhere, and a card that is lost is lost alone. */
static void errors_of_single_cards(void **state)
{
	struct watcher *w = *state;

	control(w, "print DeviceGetCount\nprint DeviceGetUtilizationRates\n");
	watcher_start(w, 100);
	watcher_run(w, &w->loaded, 4);
	assert_int_equal(w->failed, 0);
	control(w, "error DeviceGetUtilizationRates 15\n");
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->why, "card GPU-0000: utilisation: GPU is lost");
	watcher_run(w, &w->unknown, 6);
	assert_int_equal(w->failed, 1);
	/* Its memory was told all the same, and so were the processes. */
	assert_true(inventory_load(w->inventory, "GPU-0000")->memory_known);
	assert_int_equal(watcher_probes(w, NULL), 1);
	control(w, "");
	watcher_run(w, &w->loaded, w->loaded + 4);
	assert_true(inventory_load(w->inventory, "GPU-0000")->known);
	control(w, "error DeviceGetUtilizationRates 15\n");
	watcher_run(w, &w->failed, 2);
}

/* One that gives no handle when the cards are listed, and one that is lost later. */
static void a_lost_card_takes_no_other_along(void **state)
{
	struct watcher *w = *state;
	pid_t before = 0, after = 0;

	control(w, "error DeviceGetHandleByIndex 15 1\n");
	watcher_start(w, 100);
	watcher_run(w, &w->failed, 1);
	assert_string_equal(w->vendor, "fakenv");
	assert_string_equal(w->why, "card 1 is left out: a card's handle: GPU is lost");
	watcher_run(w, &w->loaded, 3);
	assert_int_equal(inventory_cards(w->inventory)->n, 1);
	assert_true(inventory_load(w->inventory, "GPU-0000")->known);
	assert_int_equal(watcher_probes(w, &before), 1);
	/* It is asked for again and again, which is told once. */
	watcher_idle(w, 1500);
	assert_int_equal(w->failed, 1);
	control(w, "");
	watcher_run(w, &w->changed, 2);
	assert_int_equal(inventory_cards(w->inventory)->n, 2);
	watcher_run(w, &w->loaded, w->loaded + 4);
	assert_true(inventory_load(w->inventory, "GPU-0001")->known);
	assert_int_equal(w->unknown, 0);

	control(w, "error DeviceGetUtilizationRates 15 1\n");
	watcher_run(w, &w->failed, 2);
	assert_string_equal(w->why, "card GPU-0001: utilisation: GPU is lost");
	watcher_run(w, &w->unknown, 2);
	assert_true(inventory_load(w->inventory, "GPU-0000")->known);
	assert_false(inventory_load(w->inventory, "GPU-0001")->known);
	assert_int_equal(watcher_probes(w, &after), 1);
	assert_int_equal(before, after);
}

/* A probe that has lost its mind: a script in its place. */
static void rubbish(struct watcher *w, const char *body, const char *why)
{
	cleanup_free char *text = gs_asprintf("#!/bin/sh\n%s", body);

	tmpdir_write(w->root, "probe", text);
	assert_int_equal(chmod(tmpdir_path(w->root, "probe"), 0755), 0);
	free(w->probe);
	w->probe = gs_strdup(tmpdir_path(w->root, "probe"));
	w->failed = 0;
	watcher_start(w, 60000);
	watcher_run(w, &w->failed, 1);
	if (!strstr(w->why, why))
		fail_msg("\"%s\" instead of \"%s\"", w->why, why);
	watcher_settle(w, 0);
	assert_int_equal(w->failed, 1);
	inventory_free(w->inventory);
	w->inventory = NULL;
}

static void rubbish_is_failure(void **state)
{
	struct watcher *w = *state;

	rubbish(w, "echo hello; sleep 100\n", "answer:1:5:");
	rubbish(w, "read x; echo '{\"seq\":77}'; sleep 100\n", "an answer that nobody asked for");
	rubbish(w, "echo '{\"seq\":1}'; echo '{\"seq\":1}'; sleep 100\n",
		"an answer that nobody asked for");
	rubbish(w, "exec cat /dev/zero\n", "gpushare-probe prints a line without end");
	rubbish(w, "exec yes\n", "answer:1:1:");
	rubbish(w, "exit 3\n", "gpushare-probe ended with status 3");
	rubbish(w, "exec >&- <&-; exec sleep 100\n", "gpushare-probe died of signal 9");
	rubbish(w, "read x; echo '{\"seq\":1}'; read x; echo '{\"seq\":2}'; sleep 100\n",
		"no list of cards");
	rubbish(w,
		"read x; echo '{\"seq\":1}'; read x; echo '{\"seq\":2,"
		"\"cards\":[{\"id\":\"a\"}]}'\n"
		"read x; echo '{\"seq\":3,\"loads\":[]}'; sleep 100\n",
		"not as many loads as cards");
	rubbish(w,
		"read x; echo '{\"seq\":1}'; read x; echo '{\"seq\":2,"
		"\"cards\":[{\"id\":\"a\"}]}'\n"
		"read x; echo '{\"seq\":3,\"loads\":[{\"card\":\"b\",\"at_ms\":1}]}'; sleep 100\n",
		"the load of a card that is none");
	rubbish(w, "sleep 100\n", "no answer within 400 ms while reading the catalogue's entry");
}

static void commands_that_hang(void **state)
{
	struct watcher *w = *state;
	cleanup_free char *entry = gs_asprintf(
		"{\"name\":\"acme\",\"title\":\"x\","
		"\"nodes\":[{\"glob\":\"/dev/a*\",\"kind\":\"card\"}],"
		"\"inventory\":{\"source\":\"command\",\"argv\":[\"%s/list\"],\"columns\":[\"n\"],"
		"\"nodes\":[],\"id\":\"{n}\"},\"load\":{\"source\":\"command\",\"busy\":{\"argv\":"
		"[\"%s/load\",\"{n}\"],\"after\":\"busy\"},\"processes\":\"open-files\"}}",
		w->root, w->root);

	inventory_deadline_ms = 1000;
	assert_int_equal(unlink(tmpdir_path(w->root, "vendors/fakenv.json")), 0);
	fakecards_vendor(w->root, "acme.json", entry);
	tmpdir_write(w->root, "list", "#!/bin/sh\nprintf 'one\\ntwo\\n'\n");
	tmpdir_write(w->root, "load", "#!/bin/sh\n[ $1 = one ] || sleep 100\necho busy 50\n");
	assert_int_equal(chmod(tmpdir_path(w->root, "list"), 0755), 0);
	assert_int_equal(chmod(tmpdir_path(w->root, "load"), 0755), 0);
	watcher_start(w, 60000);
	watcher_run(w, &w->failed, 1);
	/* The probe says so itself, and goes on: the other card is known. */
	assert_non_null(strstr(w->why, "card two: "));
	assert_non_null(strstr(w->why, "/load takes too long"));
	assert_true(inventory_load(w->inventory, "one")->busy == 0.5);
	assert_false(inventory_load(w->inventory, "two")->known);
	assert_true(inventory_load(w->inventory, "two")->processes_known);
	assert_int_equal(watcher_probes(w, NULL), 1);
}

static void end_of(pid_t pid)
{
	uint64_t ticks;

	for (int i = 0; i < 200; i++) {
		if (gs_proc_start(pid, &ticks, NULL) < 0)
			return;
		(void)usleep(10000);
	}
	fail_msg("process %d lives", (int)pid);
}

/* An agent in a process of its own, which is killed while a card's reading hangs. */
static void no_probe_outlives_the_agent(void **state)
{
	struct watcher *w = *state;
	pid_t agent = fork(), spawner = 0, probe = 0;

	assert_true(agent >= 0);
	if (agent == 0) {
		struct watcher *mine = watcher_begin();

		tmpdir_write(w->root, "agents-root", mine->root);
		fakecards_vendor(mine->root, "fakenv.json", nvml);
		fakecards_link(mine->root, "lib/libfakenvml.so",
			       tmpdir_path(w->root, "lib/libfakenvml.so"));
		control(mine, "hang DeviceGetCount\n");
		inventory_deadline_ms = 60000;
		watcher_start(mine, 60000);
		watcher_idle(mine, 60000);
		_exit(0);
	}
	for (int i = 0; i < 300 && !probe; i++) {
		(void)usleep(10000);
		if (watcher_children_of(agent, &spawner) == 1)
			(void)watcher_children_of(spawner, &probe);
	}
	assert_true(probe > 0);
	(void)usleep(100000);
	assert_int_equal(kill(agent, SIGKILL), 0);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	end_of(spawner);
	end_of(probe);
	tmpdir_remove(tmpdir_read(w->root, "agents-root"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(one_that_hangs_is_killed_and_started_anew),
		T(one_that_hangs_again_is_told_once_and_pauses_longer),
		T(a_list_may_take_longer),
		T(one_that_is_killed),
		T(errors_of_single_cards),
		T(a_lost_card_takes_no_other_along),
		T(rubbish_is_failure),
		T(commands_that_hang),
		T(no_probe_outlives_the_agent),
	};

	return cmocka_run_group_tests_name("inventory_fail", tests, NULL, NULL);
}
