// SPDX-License-Identifier: Apache-2.0
/* agent/strangers.c: whose processes are on a card, and how often that is looked up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/strangers.h"
#include "common/proc.h"
#include "common/xalloc.h"

#define N 100

static unsigned int looked; /* how many processes were looked at */

int __real_gs_proc_cgroup(pid_t pid, char **ret, struct gs_err *err);
int __wrap_gs_proc_cgroup(pid_t pid, char **ret, struct gs_err *err);
int __wrap_gs_proc_cgroup(pid_t pid, char **ret, struct gs_err *err)
{
	looked++;
	return __real_gs_proc_cgroup(pid, ret, err);
}

/* A container in this program's cgroup, which uses card x-0; its name is found by its cgroup. */
static int setup(void **state)
{
	struct agent *agent = gs_calloc(1, sizeof(*agent));
	struct container *c = gs_calloc(1, sizeof(*c));

	agent->registry_read_ms = 1;
	agent->containers = (struct containers){ .v = c, .n = 1 };
	c->alive = true;
	assert_int_equal(__real_gs_proc_cgroup(getpid(), &c->hook.cgroup, NULL), 0);
	gs_strv_add(&c->cards, "x-0");
	looked = 0;
	*state = agent;
	return 0;
}

static int teardown(void **state)
{
	struct agent *agent = *state;

	containers_free(&agent->containers);
	reconcile_free(agent);
	free(agent);
	return 0;
}

static void a_list_is_looked_through_once(void **state)
{
	struct load_process processes[N];
	struct load load = { .processes_known = true,
			     .processes_at_ms = 1000,
			     .processes = processes,
			     .n_processes = N };
	struct agent *agent = *state;

	for (size_t i = 0; i < N; i++)
		processes[i] = (struct load_process){ .pid = getpid() };
	for (int i = 0; i < 3; i++)
		assert_false(strangers_on(agent, "x-0", &load));
	assert_int_equal(looked, N);
	/* another list */
	load.processes_at_ms++;
	assert_false(strangers_on(agent, "x-0", &load));
	assert_int_equal(looked, 2 * N);
	/* other containers */
	agent->registry_read_ms++;
	assert_false(strangers_on(agent, "x-0", &load));
	assert_int_equal(looked, 3 * N);
	/* another card */
	assert_false(strangers_on(agent, "x-1", &load));
	assert_int_equal(looked, 4 * N);
}

static void a_stranger_is_told_each_time(void **state)
{
	struct load_process init = { .pid = 1 };
	struct load load = { .processes_known = true,
			     .processes_at_ms = 1000,
			     .processes = &init,
			     .n_processes = 1 };
	struct agent *agent = *state;

	free(agent->containers.v[0].hook.cgroup);
	agent->containers.v[0].hook.cgroup = gs_strdup("/none/such");
	for (int i = 0; i < 3; i++)
		assert_true(strangers_on(agent, "x-0", &load));
	load.processes_known = false;
	assert_false(strangers_on(agent, "x-0", &load));
}

/* Only the cards of such a pod's own containers. */
static void a_pod_that_was_not_wholly_looked_at(void **state)
{
	struct agent *agent = *state;
	struct container *c = &agent->containers.v[0];
	struct load load = { .processes_known = true };

	free(c->hook.cgroup);
	c->hook.cgroup = gs_strdup("/kubepods/pod12/c");
	assert_false(strangers_unseen(agent, "x-0", &load));
	gs_strv_add(&load.unseen, "/kubepods/pod1");
	assert_false(strangers_unseen(agent, "x-0", &load));
	gs_strv_add(&load.unseen, "/kubepods/pod12");
	assert_true(strangers_unseen(agent, "x-0", &load));
	assert_false(strangers_unseen(agent, "x-1", &load));
	c->alive = false;
	assert_false(strangers_unseen(agent, "x-0", &load));
	gs_strv_free(&load.unseen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_is_looked_through_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pod_that_was_not_wholly_looked_at, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stranger_is_told_each_time, setup, teardown),
	};

	return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
