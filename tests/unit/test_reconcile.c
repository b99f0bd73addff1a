// SPDX-License-Identifier: Apache-2.0
/* agent/reconcile.c: what wakes it, with a real registry, no card and no kernel module. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/ends.h"
#include "common/proc.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "tests/unit/tmpdir.h"

/* It looks by itself only after ten seconds: what comes sooner was noticed. */
#define SOON_MS 5000

static uv_timer_t deadline;
static const struct cards no_cards;
static const struct gs_catalogue no_vendors;

/* ---- Of the rest of the agent. */

struct gs_klink *__wrap_kernel_link(struct kernel *kernel);
struct gs_klink *__wrap_kernel_link(struct kernel *kernel)
{
	return NULL;
}

const struct cards *__wrap_inventory_cards(const struct inventory *inventory);
const struct cards *__wrap_inventory_cards(const struct inventory *inventory)
{
	return &no_cards;
}

const struct gs_catalogue *__wrap_inventory_catalogue(const struct inventory *inventory);
const struct gs_catalogue *__wrap_inventory_catalogue(const struct inventory *inventory)
{
	return &no_vendors;
}

bool __wrap_inventory_complete(const struct inventory *inventory);
bool __wrap_inventory_complete(const struct inventory *inventory)
{
	return true;
}

/* ---- */

static int setup(void **state)
{
	struct agent *agent = gs_calloc(1, sizeof(*agent));
	struct gs_err err = { 0 };

	agent->loop = gs_calloc(1, sizeof(*agent->loop));
	agent->config.run_dir = tmpdir_make();
	settings_init(&agent->settings);
	assert_int_equal(uv_loop_init(agent->loop), 0);
	(void)uv_timer_init(agent->loop, &deadline);
	(void)uv_timer_init(agent->loop, &agent->back_timer);
	(void)uv_timer_init(agent->loop, &agent->revoke_timer);
	evictions_new(agent);
	if (reconcile_start(agent, &err) < 0)
		fail_msg("%s", err.msg);
	*state = agent;
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static int teardown(void **state)
{
	struct agent *agent = *state;

	evictions_free(agent);
	ends_free(agent);
	uv_walk(agent->loop, close_handle, NULL);
	(void)uv_run(agent->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(agent->loop), 0);
	reconcile_free(agent);
	settings_free(&agent->settings);
	tmpdir_remove(agent->config.run_dir);
	free(agent->loop);
	free(agent);
	return 0;
}

static void on_time(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* Runs the loop until the agent sees so many containers, and nothing else wakes it soon. */
static bool sees(struct agent *agent, size_t n)
{
	static bool over;

	over = false;
	deadline.data = &over;
	(void)uv_timer_start(&deadline, on_time, SOON_MS, 0);
	while (!over && (!agent->registry_read_ms || agent->containers.n != n ||
			 uv_timer_get_due_in(&agent->reconcile_timer) < SOON_MS)) {
		(void)uv_run(agent->loop, UV_RUN_NOWAIT);
		(void)usleep(1000);
	}
	return !over;
}

/* A container that runs. */
static pid_t run(struct agent *agent, const char *id)
{
	struct gs_record rec = { .id = (char *)id,
				 .bundle = (char *)"/bundle",
				 .role = GS_ROLE_HOLDER,
				 .spec = (char *)"{}",
				 .spec_len = 2 };
	struct gs_hook_record hook = { .pid_ns = 1, .cgroup = (char *)"/none/such" };
	struct gs_err err = { 0 };

	hook.pid = fork();
	if (hook.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	assert_int_equal(gs_proc_start(hook.pid, &hook.start_ticks, NULL), 0);
	if (gs_registry_write(agent->config.run_dir, &rec, &err) < 0 ||
	    gs_registry_write_hook(agent->config.run_dir, id, &hook, &err) < 0)
		fail_msg("%s", err.msg);
	return hook.pid;
}

/* The folder of marks goes with the last of them, and with it whatever watched that. */
static void a_delete_is_seen_each_time(void **state)
{
	struct agent *agent = *state;

	assert_true(sees(agent, 0));
	for (int i = 0; i < 3; i++) {
		pid_t pid = run(agent, "a");

		assert_true(sees(agent, 1));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(gs_registry_mark_deleted(agent->config.run_dir, "a", NULL), 0);
		assert_true(sees(agent, 0));
		assert_false(tmpdir_has(agent->config.run_dir, "containers/a.json"));
	}
}

/* Runs the loop until the agent knows that its only container has ended. */
static bool sees_the_end(struct agent *agent)
{
	uint64_t end = gs_boottime_ms() + SOON_MS;

	while (agent->containers.v[0].alive && gs_boottime_ms() < end) {
		(void)uv_run(agent->loop, UV_RUN_NOWAIT);
		(void)usleep(1000);
	}
	return !agent->containers.v[0].alive;
}

/* Nothing is written anywhere when a process dies. */
static void an_end_is_seen_at_once(void **state)
{
	struct agent *agent = *state;

	for (int i = 0; i < 3; i++) {
		pid_t pid = run(agent, "a");
		siginfo_t info;

		assert_true(sees(agent, 1));
		assert_true(agent->containers.v[0].alive);
		assert_int_equal(kill(pid, SIGKILL), 0);
		/* also if its parent takes its time */
		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
		assert_true(sees_the_end(agent));
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* that was all: nothing goes round and round */
		assert_true(sees(agent, 1));
		gs_registry_remove(agent->config.run_dir, "a");
		assert_true(sees(agent, 0));
	}
}

/* A process that has the number of one that has ended is nobody's. */
static void another_process_of_that_number_is_not_watched(void **state)
{
	struct agent *agent = *state;
	pid_t pid = run(agent, "a");

	assert_true(sees(agent, 1));
	agent->containers.v[0].hook.start_ticks++;
	ends_watch(agent);
	/* its end is that of the container, which is dead by the next look */
	assert_true(sees_the_end(agent));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What is remembered of a card goes with it, but for what the next agent has to know. */
static void cards_that_are_gone_are_forgotten(void **state)
{
	struct agent *agent = *state;

	agent_card(agent, "x-lent")->lent = true;
	for (int i = 0; i < 100; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "x-%d", i);
		(void)agent_card(agent, name);
	}
	assert_int_equal(agent->n_cards, 101);
	reconcile(agent);
	assert_int_equal(agent->n_cards, 1);
	assert_string_equal(agent->cards[0].name, "x-lent");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_delete_is_seen_each_time, setup, teardown),
		cmocka_unit_test_setup_teardown(an_end_is_seen_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(another_process_of_that_number_is_not_watched,
						setup, teardown),
		cmocka_unit_test_setup_teardown(cards_that_are_gone_are_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests_name("reconcile", tests, NULL, NULL);
}
