// SPDX-License-Identifier: Apache-2.0
/* agent/evict.c: borrowers are ended, whoever they are, and remembered as long as it matters. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/observe.h"
#include "agent/pods.h"
#include "common/buf.h"
#include "common/cgroup_kill.h"
#include "common/grant.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "tests/unit/loop.h"

/* ---- What it does, written down. */

static struct gs_buf did;
static bool has_kill_file, populated, held;
static uint64_t event_ns, reaction_us;

/* What evict() makes of the time is the time up to the write, not that of the kernel's kill. */
#define WRITTEN_NS 5000000
#define KILL_NS 20000000

int __wrap_gs_cgroup_kill_begin(const char *path, uint64_t *ret_ns, struct gs_err *err);
int __wrap_gs_cgroup_kill_begin(const char *path, uint64_t *ret_ns, struct gs_err *err)
{
	const struct timespec kill = { .tv_nsec = KILL_NS };

	if (!has_kill_file)
		return gs_err_set(err, ENOENT, "open %s", path);
	*ret_ns = event_ns + WRITTEN_NS;
	if (event_ns)
		(void)nanosleep(&kill, NULL);
	gs_buf_adds(&did, "begin ");
	return 0;
}

void __wrap_observe_reaction(struct agent *agent, uint64_t us);
void __wrap_observe_reaction(struct agent *agent, uint64_t us)
{
	(void)agent;
	reaction_us = us;
}

int __wrap_gs_cgroup_kill(const char *path, uint64_t deadline_ms, struct gs_err *err);
int __wrap_gs_cgroup_kill(const char *path, uint64_t deadline_ms, struct gs_err *err)
{
	const struct timespec pause = { .tv_nsec = KILL_NS };

	assert_int_equal(deadline_ms, 0); /* the loop does not wait */
	if (event_ns)
		(void)nanosleep(&pause, NULL);
	gs_buf_adds(&did, "kill ");
	return populated ? gs_err_set(err, ETIMEDOUT, "%s", path) : 0;
}

int __wrap_gs_grant_revoke(const char *lib_dir, const char *name, struct gs_err *err);
int __wrap_gs_grant_revoke(const char *lib_dir, const char *name, struct gs_err *err)
{
	(void)lib_dir;
	(void)name;
	(void)err;
	gs_buf_adds(&did, "revoke ");
	return 0;
}

void __wrap_pods_delete(struct agent *agent, const struct gs_record *rec, const char *why);
void __wrap_pods_delete(struct agent *agent, const struct gs_record *rec, const char *why)
{
	(void)agent;
	(void)rec;
	(void)why;
	gs_buf_adds(&did, "pod ");
}

void __wrap_observe_eviction(struct agent *agent, const char *outcome, uint64_t after_ms);
void __wrap_observe_eviction(struct agent *agent, const char *outcome, uint64_t after_ms)
{
	(void)agent;
	(void)after_ms;
	gs_buf_adds(&did, outcome);
	gs_buf_adds(&did, " ");
}

void __wrap_reconcile_soon(struct agent *agent, unsigned int ms);
void __wrap_reconcile_soon(struct agent *agent, unsigned int ms)
{
	(void)agent;
	(void)ms;
}

bool __wrap_back_waits(const struct agent *agent);
bool __wrap_back_waits(const struct agent *agent)
{
	(void)agent;
	return held;
}

/* ---- A borrower. */

struct scene {
	uv_loop_t loop;
	struct agent agent;
	struct container borrower;
};

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	assert_int_equal(uv_loop_init(&s->loop), 0);
	s->agent.loop = &s->loop;
	s->borrower.rec.id = (char *)"b";
	s->borrower.rec.grant = (char *)"token";
	s->borrower.cgroup = (char *)"/sys/fs/cgroup/a/b";
	s->borrower.hook = (struct gs_hook_record){ .pid = 1, .start_ticks = 5 };
	s->borrower.alive = true;
	s->agent.containers.v = &s->borrower;
	s->agent.containers.n = 1;
	evictions_new(&s->agent);
	has_kill_file = true;
	populated = held = false;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	evictions_free(&s->agent);
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	gs_buf_free(&did);
	free(s);
	return 0;
}

static void expect(const char *want)
{
	char *text = gs_buf_steal(&did);

	assert_string_equal(text ? text : "", want);
	free(text);
}

static void the_kill_comes_first(void **state)
{
	struct scene *s = *state;

	evict(&s->agent, &s->borrower, "why");
	expect("begin ");
	assert_true(evicting(&s->agent, &s->borrower));
	evict(&s->agent, &s->borrower, "once more");
	expect("");
	(void)loop_run(&s->loop, 400);
	expect("pod revoke kill gone ");
}

static void without_cgroup_kill(void **state)
{
	struct scene *s = *state;

	has_kill_file = false;
	evict(&s->agent, &s->borrower, "why");
	expect("kill ");
	(void)loop_run(&s->loop, 300);
	expect("pod gone revoke ");
}

/* Writing to the disk may take long. */
static void no_grant_is_written_while_a_user_is_held(void **state)
{
	struct scene *s = *state;

	held = true;
	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 600);
	expect("begin pod kill gone ");
	held = false;
	(void)loop_run(&s->loop, 600);
	expect("revoke ");
}

static void it_does_not_give_up(void **state)
{
	struct scene *s = *state;
	char *text;

	populated = true;
	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 300);
	text = gs_buf_steal(&did);
	assert_non_null(strstr(text, "kill kill kill"));
	assert_null(strstr(text, "gone"));
	free(text);
	populated = false;
	(void)loop_run(&s->loop, 300);
	text = gs_buf_steal(&did);
	assert_non_null(strstr(text, "gone"));
	free(text);
}

/* podman and docker start a container again under its old id. */
static void one_made_anew_is_another(void **state)
{
	struct scene *s = *state;

	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 300);
	evictions_forget(&s->agent);
	assert_true(evicting(&s->agent, &s->borrower)); /* the registry still has it */
	s->borrower.hook.start_ticks = 6;
	assert_false(evicting(&s->agent, &s->borrower));
	evictions_forget(&s->agent);
	s->borrower.hook.start_ticks = 5;
	assert_false(evicting(&s->agent, &s->borrower));
	expect("begin pod revoke kill gone ");
	/* it is ended like any other */
	s->borrower.hook.start_ticks = 6;
	evict(&s->agent, &s->borrower, "why");
	expect("begin ");
}

static void what_is_only_remembered_costs_nothing(void **state)
{
	struct scene *s = *state;

	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 400);
	assert_true(evicting(&s->agent, &s->borrower));
	assert_int_equal(uv_backend_timeout(&s->loop), 0); /* nothing to wait for */
	assert_false(uv_loop_alive(&s->loop));
}

/* The borrower is a process that waits, and its cgroup was not seen. */
static pid_t only_a_process(struct scene *s)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	s->borrower.cgroup = NULL;
	s->borrower.hook.pid = pid;
	assert_int_equal(gs_proc_start(pid, &s->borrower.hook.start_ticks, NULL), 0);
	return pid;
}

/* Its cgroup was not seen: its first process, if it is still that one. */
static void without_a_cgroup(void **state)
{
	struct scene *s = *state;
	pid_t pid = only_a_process(s);
	int status;

	s->borrower.hook.start_ticks++; /* another's number by now */
	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 300);
	expect("pod gone revoke ");
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	s->borrower.hook.start_ticks--;
	evict(&s->agent, &s->borrower, "why");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)loop_run(&s->loop, 300);
	expect("pod revoke gone ");
}

/* So that nothing more can be opened; as it was, after that. */
static void starve(bool starved)
{
	int next = starved ? dup(0) : -1;
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = starved ? (rlim_t)next : limit.rlim_max;
	if (starved)
		(void)close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* With no descriptor left nobody can tell whether it has ended: so it has not. */
static void without_a_descriptor(void **state)
{
	struct scene *s = *state;
	pid_t pid = only_a_process(s);
	int status;

	starve(true);
	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 100);
	starve(false);
	expect("stuck pod revoke ");
	for (int i = 0; i < 100 && waitpid(pid, &status, WNOHANG) == 0; i++)
		(void)loop_run(&s->loop, 100); /* it goes on */
	assert_int_equal(kill(pid, SIGKILL), -1);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)loop_run(&s->loop, 300);
	expect("gone ");
}

/* From the event to the write: what the kernel takes for the kill itself is not in it. */
static void how_long_the_agent_took(void **state)
{
	struct scene *s = *state;

	event_ns = s->agent.event_ns = uv_hrtime();
	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 300);
	assert_int_equal(reaction_us, WRITTEN_NS / 1000);
	/* the other way takes its time before it kills, too */
	has_kill_file = false;
	reaction_us = 0;
	s->borrower.hook.start_ticks++;
	event_ns = s->agent.event_ns = uv_hrtime();
	evict(&s->agent, &s->borrower, "why");
	(void)loop_run(&s->loop, 300);
	assert_in_range(reaction_us, 0, KILL_NS / 1000 - 1);
	event_ns = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_kill_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(without_cgroup_kill, setup, teardown),
		cmocka_unit_test_setup_teardown(no_grant_is_written_while_a_user_is_held, setup,
						teardown),
		cmocka_unit_test_setup_teardown(it_does_not_give_up, setup, teardown),
		cmocka_unit_test_setup_teardown(one_made_anew_is_another, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_only_remembered_costs_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(without_a_cgroup, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(how_long_the_agent_took, setup, teardown),
	};

	return cmocka_run_group_tests_name("evict", tests, NULL, NULL);
}
