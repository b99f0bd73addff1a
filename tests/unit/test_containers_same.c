// SPDX-License-Identifier: Apache-2.0
/* agent/container.c: whether the registry has to be read again. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/container.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "tests/unit/tmpdir.h"

#define N 3

static pid_t process[N];
static struct containers containers;

static enum gs_record_role role;

/* @pid_file may be NULL; @deadline_ms 0: none. Of that role. */
static void write_record_of(const char *dir, const char *id, char *pid_file, uint64_t deadline_ms)
{
	static char bundle[] = "/run/bundle", spec[] = "{}", boot[37];
	struct gs_record record = {
		.id = (char *)id,
		.bundle = bundle,
		.role = role,
		.boot_id = boot,
		.pid_file = pid_file,
		.deadline_ms = deadline_ms,
		.spec = spec,
		.spec_len = 2,
	};

	(void)gs_boot_id(boot, NULL);
	assert_int_equal(gs_registry_write(dir, &record, NULL), 0);
}

static void write_record(const char *dir, const char *id)
{
	write_record_of(dir, id, NULL, 0);
}

static void write_hook(const char *dir, const char *id, pid_t pid, uint64_t start)
{
	static char cgroup[] = "/";
	struct gs_hook_record hook = {
		.pid = pid, .start_ticks = start, .pid_ns = 1, .cgroup = cgroup
	};

	assert_int_equal(gs_registry_write_hook(dir, id, &hook, NULL), 0);
}

/* The hook of a container that starts, which writes its record when it is asked for. */
static const char *hook_comes, *hook_dir;

int __real_gs_registry_alive(const char *run_dir, const struct gs_record *record, pid_t *ret_pid,
			     struct gs_err *err);
int __wrap_gs_registry_alive(const char *run_dir, const struct gs_record *record, pid_t *ret_pid,
			     struct gs_err *err);
int __wrap_gs_registry_alive(const char *run_dir, const struct gs_record *record, pid_t *ret_pid,
			     struct gs_err *err)
{
	int r = __real_gs_registry_alive(run_dir, record, ret_pid, err);
	uint64_t start;

	if (hook_comes && strcmp(record->id, hook_comes) == 0) {
		hook_comes = NULL;
		assert_int_equal(gs_proc_start(process[0], &start, NULL), 0);
		write_hook(hook_dir, record->id, process[0], start);
	}
	return r;
}

/* The id of the record for which nothing is left, and of what. */
static const char *scarce;
static int scarce_code;

int __real_gs_registry_read(const char *run_dir, const char *id, struct gs_record *ret,
			    struct gs_err *err);
int __wrap_gs_registry_read(const char *run_dir, const char *id, struct gs_record *ret,
			    struct gs_err *err);
int __wrap_gs_registry_read(const char *run_dir, const char *id, struct gs_record *ret,
			    struct gs_err *err)
{
	if (scarce && strcmp(id, scarce) == 0)
		return gs_err_errno(err, scarce_code, "open %s", id);
	return __real_gs_registry_read(run_dir, id, ret, err);
}

/* Reads them until no write of its own, or of the moment before, is news. */
static void look(const char *dir)
{
	const struct cards cards = { 0 };
	const struct gs_catalogue catalogue = { 0 };
	const struct settings settings = { 0 };

	for (int i = 0; i < 2; i++) {
		struct containers before = containers;

		/* a file system's clock is coarse */
		(void)usleep(20000);
		assert_int_equal(containers_read(dir, &cards, &catalogue, &settings, &before,
						 &containers, NULL, NULL),
				 0);
		containers_free(&before);
	}
}

static int setup(void **state)
{
	char *dir = tmpdir_make();

	*state = dir;
	for (int i = 0; i < N; i++) {
		char id[3] = { 'c', (char)('0' + i), '\0' };
		uint64_t start = 0;

		process[i] = fork();
		if (process[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
		write_record(dir, id);
		assert_int_equal(gs_proc_start(process[i], &start, NULL), 0);
		write_hook(dir, id, process[i], start);
	}
	look(dir);
	assert_int_equal(containers.n, N);
	return 0;
}

static void end(int i)
{
	if (process[i] <= 0)
		return;
	(void)kill(process[i], SIGKILL);
	(void)waitpid(process[i], NULL, 0);
	process[i] = 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < N; i++)
		end(i);
	containers_free(&containers);
	tmpdir_remove(*state);
	return 0;
}

static void nothing_happened(void **state)
{
	assert_true(containers_same(*state, &containers));
	assert_true(containers_same(*state, &containers));
}

/* Its hook asks for its watch then: there must be one. */
static void a_hook_comes_while_we_look(void **state)
{
	hook_dir = *state;
	hook_comes = "c9";
	write_record(*state, "c9");
	look(*state);
	assert_null(hook_comes);
	assert_int_equal(containers.n, N + 1);
	assert_string_equal(containers.v[N].rec.id, "c9");
	assert_int_equal(containers.v[N].hook.pid, process[0]);
	assert_true(containers.v[N].alive);
}

static void a_process_ended(void **state)
{
	end(N - 1);
	assert_false(containers_same(*state, &containers));
	/* once that is known, it is nothing new */
	look(*state);
	assert_false(containers.v[N - 1].alive);
	assert_true(containers_same(*state, &containers));
	end(0);
	assert_false(containers_same(*state, &containers));
}

static void its_parent_has_not_looked_yet(void **state)
{
	siginfo_t info;

	(void)kill(process[1], SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)process[1], &info, WEXITED | WNOWAIT), 0);
	assert_false(containers_same(*state, &containers));
}

/* Nothing can be read now: that is no reason to take anybody for dead, which is for ever. */
static void nothing_can_be_read(void **state)
{
	struct rlimit limit, none;
	bool same;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	same = containers_same(*state, &containers);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(same);
}

static unsigned int told_broken;

static void on_broken(const char *id, const char *why)
{
	told_broken++;
}

/* A container that can't be read for want of a descriptor is not gone, nor are the others. */
static void nothing_is_left_to_read_with(void **state)
{
	static const int codes[] = { EMFILE, ENFILE, ENOMEM };
	const struct cards cards = { 0 };
	const struct gs_catalogue catalogue = { 0 };
	const struct settings settings = { 0 };
	const char *ids[N];

	for (int i = 0; i < N; i++)
		ids[i] = containers.v[i].rec.id;
	write_record(*state, "c11");
	for (size_t i = 0; i < GS_ARRAY_SIZE(codes); i++) {
		struct containers fresh;
		struct gs_err err = { 0 };

		scarce = "c11";
		scarce_code = codes[i];
		assert_int_equal(containers_read(*state, &cards, &catalogue, &settings, &containers,
						 &fresh, on_broken, &err),
				 -codes[i]);
		assert_non_null(strstr(err.msg, "open c11"));
		assert_null(fresh.v);
		assert_int_equal(fresh.n, 0);
		assert_int_equal(containers.n, N);
		for (int j = 0; j < N; j++) {
			assert_ptr_equal(containers.v[j].rec.id, ids[j]);
			assert_true(containers.v[j].alive);
		}
	}
	assert_int_equal(told_broken, 0);
	/* what is wrong with the record itself is that record's alone */
	scarce_code = EPROTO;
	look(*state);
	assert_int_equal(containers.n, N);
	scarce = NULL;
	look(*state);
	assert_int_equal(containers.n, N + 1);
	assert_ptr_equal(containers.v[0].rec.id, ids[0]);
}

static void its_number_is_anothers(void **state)
{
	containers.v[1].hook.start_ticks++;
	assert_false(containers_same(*state, &containers));
}

static void a_record_came(void **state)
{
	(void)usleep(20000);
	write_record(*state, "new");
	assert_false(containers_same(*state, &containers));
}

static void one_was_deleted(void **state)
{
	(void)usleep(20000);
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	assert_false(containers_same(*state, &containers));
	/* as long as it runs, it is looked at */
	look(*state);
	assert_true(containers.leaving);
	assert_false(containers_same(*state, &containers));
	end(1);
	look(*state);
	assert_int_equal(containers.n, N - 1);
	assert_true(containers_same(*state, &containers));
}

static void one_has_no_process_yet(void **state)
{
	write_record(*state, "new");
	look(*state);
	assert_true(containers.incomplete);
	assert_false(containers_same(*state, &containers));
}

/* What a create that failed has left. */
static void one_will_have_none(void **state)
{
	static char pid_file[] = "/none/such";
	uint64_t now = gs_boottime_ms();

	write_record_of(*state, "new", pid_file, now + 15000);
	look(*state);
	assert_true(containers_find(&containers, "new")->starting);
	assert_true(containers.incomplete);
	write_record_of(*state, "new", pid_file, now > 600000 ? now - 600000 : 1);
	look(*state);
	if (now <= 600000)
		skip(); /* this machine has just started */
	assert_false(containers_find(&containers, "new")->starting);
	assert_false(containers.incomplete);
	/* but nobody else would tell of it if it came */
	assert_false(containers_same(*state, &containers));
	/* nobody could tell of this one's process: it may be there */
	write_record_of(*state, "new", NULL, now - 600000);
	look(*state);
	assert_true(containers_find(&containers, "new")->starting);
	assert_false(containers.incomplete);
}

static void records_are_read_once(void **state)
{
	const char *ids[N];

	for (int i = 0; i < N; i++)
		ids[i] = containers.v[i].rec.id;
	/* before, between and behind them */
	write_record(*state, "a");
	write_record(*state, "c11");
	write_record(*state, "d");
	look(*state);
	assert_int_equal(containers.n, N + 3);
	assert_ptr_equal(containers.v[1].rec.id, ids[0]);
	assert_ptr_equal(containers.v[2].rec.id, ids[1]);
	assert_string_equal(containers.v[3].rec.id, "c11");
	assert_ptr_equal(containers.v[4].rec.id, ids[2]);
	gs_registry_remove(*state, "c1");
	look(*state);
	assert_ptr_equal(containers.v[1].rec.id, ids[0]);
	assert_ptr_equal(containers.v[3].rec.id, ids[2]);
}

static void one_was_made_anew(void **state)
{
	end(1);
	look(*state);
	assert_false(containers.v[1].alive);
	role = GS_ROLE_TARGET;
	write_record(*state, "c1");
	role = GS_ROLE_HOLDER;
	look(*state);
	assert_int_equal(containers.v[0].rec.role, GS_ROLE_HOLDER);
	assert_int_equal(containers.v[1].rec.role, GS_ROLE_TARGET);
	assert_int_equal(containers.v[1].hook.pid, 0);
}

/* What a target uses as its sources do, is what they use now. */
static void cards_are_inherited_anew(void **state)
{
	gs_strv_add(&containers.v[0].cards, "its own");
	gs_strv_add(&containers.v[1].cards, "its source's");
	containers.v[1].inherited = true;
	look(*state);
	assert_int_equal(containers.v[0].cards.n, 1);
	assert_int_equal(containers.v[1].cards.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_happened, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hook_comes_while_we_look, setup, teardown),
		cmocka_unit_test_setup_teardown(a_process_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(its_parent_has_not_looked_yet, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_can_be_read, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_left_to_read_with, setup, teardown),
		cmocka_unit_test_setup_teardown(its_number_is_anothers, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_came, setup, teardown),
		cmocka_unit_test_setup_teardown(one_was_deleted, setup, teardown),
		cmocka_unit_test_setup_teardown(one_has_no_process_yet, setup, teardown),
		cmocka_unit_test_setup_teardown(one_will_have_none, setup, teardown),
		cmocka_unit_test_setup_teardown(records_are_read_once, setup, teardown),
		cmocka_unit_test_setup_teardown(one_was_made_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(cards_are_inherited_anew, setup, teardown),
	};

	return cmocka_run_group_tests_name("containers_same", tests, NULL, NULL);
}
