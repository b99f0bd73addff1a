// SPDX-License-Identifier: Apache-2.0
/* agent/events.c: what is told of a return, in whatever order events and dumps come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/events.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/tmpdir.h"

#define MS UINT64_C(1000000)

static struct kernel_ops kernel;
static char *dir;

/* ---- Of the rest of the agent. */

int __wrap_kernel_new(uv_loop_t *loop, const struct kernel_ops *ops, struct kernel **ret,
		      struct gs_err *err);
int __wrap_kernel_new(uv_loop_t *loop, const struct kernel_ops *ops, struct kernel **ret,
		      struct gs_err *err)
{
	kernel = *ops;
	return 0;
}

void __wrap_reconcile_soon(struct agent *agent, unsigned int ms);
void __wrap_reconcile_soon(struct agent *agent, unsigned int ms)
{
}

void __wrap_back_begin(struct agent *agent, struct hold *hold);
void __wrap_back_begin(struct agent *agent, struct hold *hold)
{
}

void __wrap_back_end(struct agent *agent, struct hold *hold);
void __wrap_back_end(struct agent *agent, struct hold *hold)
{
}

void __wrap_server_changed(struct agent *agent);
void __wrap_server_changed(struct agent *agent)
{
}

void __wrap_observe_event(struct agent *agent, const struct gs_kevent *event);
void __wrap_observe_event(struct agent *agent, const struct gs_kevent *event)
{
}

/* ---- */

static int setup(void **state)
{
	struct agent *agent = gs_calloc(1, sizeof(*agent));
	struct gs_err err = { 0 };

	dir = tmpdir_make();
	gs_log_open(GS_LOG_INFO, tmpdir_path(dir, "log"));
	agent->holds = gs_grow(agent->holds, 0, sizeof(*agent->holds));
	agent->holds[0] = (struct hold){ .name = "h", .state = GS_LENT };
	agent->n_holds = 1;
	assert_int_equal(events_kernel(agent, &err), 0);
	*state = agent;
	return 0;
}

static int teardown(void **state)
{
	struct agent *agent = *state;

	gs_log_open(GS_LOG_INFO, NULL);
	tmpdir_remove(dir);
	reconcile_free(agent);
	free(agent);
	return 0;
}

static void change(struct agent *agent, uint64_t seq, unsigned int from, unsigned int to,
		   unsigned int cause, uint64_t at_ms)
{
	const struct gs_kevent event = {
		.event = GS_EV_STATE,
		.event_seq = seq,
		.time_ns = at_ms * MS,
		.name = "h",
		.from = from,
		.state = to,
		.cause = cause,
	};

	kernel.event(&event, agent);
}

static void told(const char *text)
{
	cleanup_free char *log = tmpdir_read(dir, "log");

	if (!strstr(log, text))
		fail_msg("no %s in\n%s", text, log);
}

/* From the kernel's first event to its last, however late we hear of them. */
static void a_release_is_told_with_its_time(void **state)
{
	change(*state, 1, GS_LENT, GS_RETURNING, GS_BY_TOUCH, 5000);
	change(*state, 2, GS_RETURNING, GS_ACTIVE, GS_BY_RELEASE, 5042);
	told("\"msg\":\"released\",\"holding\":\"h\",\"after_ms\":\"42\"");
}

/* A dump had told both already. */
static void also_where_a_dump_was_faster(void **state)
{
	struct agent *agent = *state;

	agent->holds[0].returning_ms = 1000; /* an older one's */
	agent->holds[0].since_ms = 5042;
	agent->state.status.event_seq = 2;
	change(agent, 1, GS_LENT, GS_RETURNING, GS_BY_TOUCH, 5000);
	change(agent, 2, GS_RETURNING, GS_ACTIVE, GS_BY_RELEASE, 5042);
	told("\"msg\":\"released\",\"holding\":\"h\",\"after_ms\":\"42\"");
}

/* No number is better than a wrong one. */
static void no_time_where_its_begin_was_not_seen(void **state)
{
	change(*state, 2, GS_RETURNING, GS_ACTIVE, GS_BY_RELEASE, 5042);
	told("\"msg\":\"released\",\"holding\":\"h\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_release_is_told_with_its_time, setup, teardown),
		cmocka_unit_test_setup_teardown(also_where_a_dump_was_faster, setup, teardown),
		cmocka_unit_test_setup_teardown(no_time_where_its_begin_was_not_seen, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
