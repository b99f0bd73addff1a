// SPDX-License-Identifier: Apache-2.0
/* The registry: which containers live, what is removed when, and many doing it at once. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "common/registry.h"
#include "tests/unit/tmpdir.h"

/* How long the tests with many processes run; more of it finds rarer races. */
#define HAMMER_MS 700

static pid_t container;

static int setup(void **state)
{
	*state = tmpdir_make();
	container = fork();
	assert_true(container >= 0);
	if (container == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return 0;
}

static void kill_container(void)
{
	if (container <= 0)
		return;
	(void)kill(container, SIGKILL);
	(void)waitpid(container, NULL, 0);
	container = 0;
}

static int teardown(void **state)
{
	kill_container();
	tmpdir_remove(*state);
	return 0;
}

/* A record made now, whose pid file is the file "pid" in @dir; borrowed strings. */
static struct gs_record record_of(const char *dir, const char *id, const char *pod)
{
	static char bundle[] = "/run/bundle", ns[] = "ns", name[] = "main", spec[] = "{}";
	static char boot[37], pid_file[4096];

	(void)gs_boot_id(boot, NULL);
	(void)snprintf(pid_file, sizeof(pid_file), "%s/pid", dir);
	return (struct gs_record){
		.id = (char *)id,
		.bundle = bundle,
		.pid_file = pid_file,
		.identity = { ns, (char *)pod, name },
		.role = GS_ROLE_HOLDER,
		.boot_id = boot,
		.spec = spec,
		.spec_len = 2,
	};
}

static void write_pid(const char *dir, pid_t pid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d\n", (int)pid);
	tmpdir_write(dir, "pid", text);
}

static void write_ok(const char *dir, const struct gs_record *record)
{
	struct gs_err err = { 0 };

	if (gs_registry_write(dir, record, &err) < 0)
		fail_msg("write %s: %s", record->id, err.msg);
}

static void write_hook(const char *dir, const char *id, pid_t pid, uint64_t start,
		       const char *cgroup)
{
	struct gs_hook_record hook = {
		.pid = pid, .start_ticks = start, .pid_ns = 1, .cgroup = (char *)cgroup
	};

	assert_int_equal(gs_registry_write_hook(dir, id, &hook, NULL), 0);
}

static uint64_t start_of(pid_t pid)
{
	uint64_t ticks = 0;

	assert_int_equal(gs_proc_start(pid, &ticks, NULL), 0);
	return ticks;
}

static void expect_alive(const char *dir, const struct gs_record *record)
{
	struct gs_err err = { 0 };
	pid_t pid = 0;

	if (gs_registry_alive(dir, record, &pid, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(pid, container);
	assert_int_equal(gs_registry_alive(dir, record, NULL, NULL), 0);
}

static void expect_dead(const char *dir, const struct gs_record *record, const char *words)
{
	struct gs_err err = { 0 };
	pid_t pid = 7;

	assert_int_equal(gs_registry_alive(dir, record, &pid, &err), -ESRCH);
	assert_int_equal(err.code, ESRCH);
	assert_int_equal(pid, 7);
	if (!strstr(err.msg, words) || !strstr(err.msg, record->id))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, words);
	assert_int_equal(gs_registry_alive(dir, record, NULL, NULL), -ESRCH);
}

static void alive_by_the_pid_file(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");
	cleanup_free char *cgroup = NULL, *below = NULL;
	char relative[] = "pid", outside[] = "/some/other/cgroup";

	record.start_ticks = start_of(container);
	expect_dead(*state, &record, "pid");
	write_pid(*state, container);
	expect_alive(*state, &record);
	record.start_ticks++;
	expect_dead(*state, &record, "older");
	record.start_ticks = 0;
	tmpdir_write(*state, "pid", "12x");
	expect_dead(*state, &record, "not a process number");
	write_pid(*state, 4194305);
	expect_dead(*state, &record, "gone");
	write_pid(*state, container);
	record.pid_file = relative;
	expect_dead(*state, &record, "no full path");
	record.pid_file = NULL;
	expect_dead(*state, &record, "no pid file");

	record = record_of(*state, "c1", "p");
	record.cgroups_path = outside;
	expect_dead(*state, &record, "cgroup");
	assert_int_equal(gs_proc_cgroup(container, &cgroup, NULL), 0);
	record.cgroups_path = cgroup;
	expect_alive(*state, &record);
}

static void alive_by_the_hook(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");
	uint64_t start = start_of(container);

	/* The hook is believed, whatever the pid file says. */
	write_pid(*state, 4194305);
	write_hook(*state, "c1", container, start, "/x");
	expect_alive(*state, &record);
	/* The number is another process's now. */
	write_hook(*state, "c1", container, start - 1, "/x");
	expect_dead(*state, &record, "another one");
	write_pid(*state, container);
	expect_dead(*state, &record, "another one");
	/* A damaged one is as good as none. */
	tmpdir_write(*state, "containers/c1.hook.json", "{");
	expect_alive(*state, &record);
	write_hook(*state, "c1", 4194305, start, "/x");
	expect_dead(*state, &record, "gone");
}

static void zombie_is_dead(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");
	siginfo_t info;

	write_pid(*state, container);
	assert_int_equal(kill(container, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)container, &info, WEXITED | WNOWAIT), 0);
	expect_dead(*state, &record, "ended");
}

static void another_boot_is_dead(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");
	char other[] = "00000000-0000-0000-0000-000000000000";

	write_pid(*state, container);
	expect_alive(*state, &record);
	write_hook(*state, "c1", container, start_of(container), "/x");
	expect_alive(*state, &record);
	record.boot_id = other;
	expect_dead(*state, &record, "boot");
}

static void a_living_record_stays(void **state)
{
	struct gs_record first = record_of(*state, "c1", "p"), second = first;
	cleanup_record struct gs_record out = { 0 };
	char other[] = "/another/bundle";
	struct gs_err err = { 0 };

	write_ok(*state, &first);
	write_pid(*state, container);
	second.bundle = other;
	assert_int_equal(gs_registry_write(*state, &second, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "c1"));
	assert_non_null(strstr(err.msg, "/run/bundle"));
	/* Nor with the same bundle: the next runtime will refuse it too. */
	write_hook(*state, "c1", container, start_of(container), "/x");
	assert_int_equal(gs_registry_write(*state, &first, &err), -EEXIST);
	assert_true(tmpdir_has(*state, "containers/c1.hook.json"));
	assert_int_equal(gs_registry_read(*state, "c1", &out, NULL), 0);
	assert_string_equal(out.bundle, "/run/bundle");
	kill_container();
	write_ok(*state, &second);
}

static void a_dead_one_is_replaced_whole(void **state)
{
	struct gs_record first = record_of(*state, "c1", "p"),
			 second = record_of(*state, "c1", "q");
	cleanup_record struct gs_record out = { 0 };

	write_ok(*state, &first);
	write_hook(*state, "c1", 4194305, 1, "/x");
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	write_ok(*state, &second);
	assert_false(tmpdir_has(*state, "containers/c1.hook.json"));
	assert_false(tmpdir_has(*state, "deleted/c1"));
	assert_int_equal(tmpdir_count(*state, "by-name"), 1);
	/* The sweep finds nothing to do. */
	gs_registry_sweep(*state, 10);
	assert_int_equal(gs_registry_read(*state, "c1", &out, NULL), 0);
	assert_string_equal(out.identity.pod, "q");
	/* A damaged one as well. */
	tmpdir_write(*state, "containers/c1.json", "x");
	write_ok(*state, &second);
}

static void removes_everything(void **state)
{
	struct gs_record a = record_of(*state, "a", "p"), b = record_of(*state, "b", "p");
	char next[] = "/usr/bin/runc";

	a.next = b.next = next;
	write_ok(*state, &a);
	write_ok(*state, &b);
	write_hook(*state, "a", 1, 1, "/x");
	assert_int_equal(gs_registry_mark_deleted(*state, "a", NULL), 0);
	gs_registry_remove(*state, "a");
	/* The folder of the name stays while another has it. */
	assert_int_equal(tmpdir_count(*state, "by-name"), 1);
	assert_int_equal(tmpdir_count(*state, "containers"), 2);
	assert_int_equal(tmpdir_count(*state, "deleted"), 0);
	gs_registry_remove(*state, "b");
	assert_int_equal(tmpdir_count(*state, "by-name"), 0);
	assert_int_equal(tmpdir_count(*state, "containers"), 0);
	gs_registry_remove(*state, "b");
	gs_registry_remove("/nonexistent", "b");
}

static void marks_only_what_it_knows(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");

	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	assert_int_equal(tmpdir_count(*state, "deleted"), -1);
	assert_int_equal(gs_registry_mark_deleted("/nonexistent", "c1", NULL), 0);
	write_ok(*state, &record);
	assert_int_equal(gs_registry_mark_deleted(*state, "other", NULL), 0);
	assert_int_equal(tmpdir_count(*state, "deleted"), -1);
	assert_false(gs_registry_marked(*state, "c1"));
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	assert_int_equal(tmpdir_count(*state, "deleted"), 1);
	assert_true(gs_registry_marked(*state, "c1"));
	assert_false(gs_registry_marked(*state, "c"));
	assert_false(gs_registry_marked(*state, "../containers/c1.json"));
}

static void sweeps_the_marked_and_gone(void **state)
{
	struct gs_record lives = record_of(*state, "lives", "p"), gone, unmarked;
	char none[] = "/nonexistent/pid";

	write_ok(*state, &lives);
	write_pid(*state, container);
	gone = record_of(*state, "gone", "p");
	gone.pid_file = none;
	write_ok(*state, &gone);
	unmarked = record_of(*state, "unmarked", "q");
	unmarked.pid_file = NULL;
	write_ok(*state, &unmarked);
	assert_int_equal(gs_registry_mark_deleted(*state, "lives", NULL), 0);
	assert_int_equal(gs_registry_mark_deleted(*state, "gone", NULL), 0);
	gs_registry_sweep(*state, 10);
	assert_true(tmpdir_has(*state, "containers/lives.json"));
	assert_true(tmpdir_has(*state, "deleted/lives"));
	assert_false(tmpdir_has(*state, "containers/gone.json"));
	assert_false(tmpdir_has(*state, "deleted/gone"));
	assert_true(tmpdir_has(*state, "containers/unmarked.json"));
	kill_container();
	gs_registry_sweep(*state, 10);
	assert_false(tmpdir_has(*state, "containers/lives.json"));
	/* Nothing is marked, so the next sweep has nothing to open. */
	assert_int_equal(tmpdir_count(*state, "deleted"), -1);
	assert_int_equal(tmpdir_count(*state, "containers"), 1);
	assert_int_equal(tmpdir_count(*state, "by-name"), 1);
	gs_registry_sweep(*state, 10);
	gs_registry_sweep("/nonexistent", 10);
}

static void sweeps_no_more_than_asked(void **state)
{
	char id[16] = "";

	for (int i = 0; i < 6; i++) {
		struct gs_record record = record_of(*state, id, "p");

		(void)snprintf(id, sizeof(id), "c%d", i);
		record.pid_file = NULL;
		write_ok(*state, &record);
		assert_int_equal(gs_registry_mark_deleted(*state, id, NULL), 0);
	}
	gs_registry_sweep(*state, 0);
	assert_int_equal(tmpdir_count(*state, "containers"), 6);
	gs_registry_sweep(*state, 4);
	assert_int_equal(tmpdir_count(*state, "containers"), 2);
	assert_int_equal(tmpdir_count(*state, "deleted"), 2);
	gs_registry_sweep(*state, 4);
	assert_int_equal(tmpdir_count(*state, "containers"), 0);
}

/* Wherever a removal was cut off, the mark is still there and the next sweep ends it. */
static void a_cut_off_removal_is_ended(void **state)
{
	static const char *const steps[] = { "by-name", "hook", "next", "record" };
	char next[] = "/usr/bin/runc", entry[64];

	for (size_t n = 0; n <= GS_ARRAY_SIZE(steps); n++) {
		struct gs_record record = record_of(*state, "c1", "p");

		record.next = next;
		write_ok(*state, &record);
		write_hook(*state, "c1", 4194305, 1, "/x");
		assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
		(void)snprintf(entry, sizeof(entry), "by-name/%016llx/c1",
			       (unsigned long long)gs_identity_hash(&record.identity));
		if (n > 0)
			assert_int_equal(unlink(tmpdir_path(*state, entry)), 0);
		if (n > 1)
			assert_int_equal(unlink(tmpdir_path(*state, "containers/c1.hook.json")), 0);
		if (n > 2)
			assert_int_equal(unlink(tmpdir_path(*state, "containers/c1.next")), 0);
		if (n > 3)
			assert_int_equal(unlink(tmpdir_path(*state, "containers/c1.json")), 0);
		gs_registry_sweep(*state, 1);
		assert_int_equal(tmpdir_count(*state, "containers"), 0);
		assert_int_equal(tmpdir_count(*state, "deleted"), -1);
		if (n < GS_ARRAY_SIZE(steps))
			assert_int_equal(tmpdir_count(*state, "by-name"), 0);
	}
}

/* What does not die at once stays in the registry: its first process is gone, its cgroup not. */
/* A sweep that can open no more than so many files. */
static void sweep_with(const char *dir, int files)
{
	int next = dup(0);
	struct rlimit limit;
	rlim_t before;

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)next + (rlim_t)files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	gs_registry_sweep(dir, 10);
	limit.rlim_cur = before;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void a_busy_cgroup_is_not_swept(void **state)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/devices",
					      "/sys/fs/cgroup/unified" };
	struct gs_record record = record_of(*state, "c1", "p");
	char name[64], dir[128] = "", procs[192];
	FILE *file;

	(void)snprintf(name, sizeof(name), "/gpushare-life-%d", (int)getpid());
	for (size_t i = 0; i < GS_ARRAY_SIZE(places); i++) {
		(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", places[i]);
		(void)snprintf(dir, sizeof(dir), "%s%s", places[i], name);
		if (access(procs, W_OK) == 0 && mkdir(dir, 0755) == 0)
			break;
		dir[0] = '\0';
	}
	if (!dir[0]) {
		print_message("skipped: no cgroup can be made here\n");
		skip();
	}
	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	file = fopen(procs, "we");
	assert_non_null(file);
	assert_true(fprintf(file, "%d", (int)container) > 0);
	assert_int_equal(fclose(file), 0);

	write_ok(*state, &record);
	write_hook(*state, "c1", 4194305, 1, name);
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	for (int more = 0; more < 8; more++)
		sweep_with(*state, more);
	gs_registry_sweep(*state, 1);
	assert_true(tmpdir_has(*state, "containers/c1.json"));
	kill_container();
	for (int i = 0; i < 5000 && rmdir(dir) < 0; i++)
		(void)usleep(1000);
	gs_registry_sweep(*state, 1);
	assert_false(tmpdir_has(*state, "containers/c1.json"));
}

/* Whatever can't be opened for want of a descriptor tells nothing: the record of one that lives. */
static void nothing_goes_for_want_of_a_descriptor(const char *dir, const struct gs_record *record)
{
	struct rlimit limit, none;
	int r;

	for (int more = 0; more < 8; more++) {
		sweep_with(dir, more);
		assert_true(gs_registry_marked(dir, record->id));
		expect_alive(dir, record);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = gs_registry_alive(dir, record, NULL, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(r, -EMFILE);
	expect_alive(dir, record);
}

static void scarce_by_the_hook(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");

	write_ok(*state, &record);
	write_hook(*state, "c1", container, start_of(container), "/none");
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	nothing_goes_for_want_of_a_descriptor(*state, &record);
}

static void scarce_by_the_pid_file(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p");

	write_ok(*state, &record);
	write_pid(*state, container);
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	nothing_goes_for_want_of_a_descriptor(*state, &record);
}

static void a_second_sweep_does_not_wait(void **state)
{
	struct gs_record record = record_of(*state, "c1", "p"), fresh;
	uint64_t before;
	cleanup_close int fd = -1;

	write_ok(*state, &record);
	assert_int_equal(gs_registry_mark_deleted(*state, "c1", NULL), 0);
	fd = open(tmpdir_path(*state, "deleted"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	gs_registry_sweep(*state, 1);
	assert_true(tmpdir_has(*state, "containers/c1.json"));
	/* A create waits a little, and then goes on. */
	fresh = record_of(*state, "c2", "p");
	before = gs_boottime_ms();
	write_ok(*state, &fresh);
	write_ok(*state, &record);
	assert_true(gs_boottime_ms() - before < 5000);
	assert_false(tmpdir_has(*state, "deleted/c1"));
}

/* Runs @work in @n processes for a while and fails where one does not give 0. */
static void hammer(const char *dir, unsigned int n, int (*work)(const char *dir, unsigned int i))
{
	pid_t pids[16];

	for (unsigned int i = 0; i < n; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			uint64_t end = gs_boottime_ms() + HAMMER_MS;
			int r = 0;

			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (r == 0 && gs_boottime_ms() < end)
				r = work(dir, i);
			_exit(r);
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static int count_one(const struct gs_record *record, void *arg)
{
	const char *id = arg;

	return strcmp(record->id, id) == 0;
}

/* All have one name and an id of their own: each must always find itself. */
static int make_and_remove(const char *dir, unsigned int i)
{
	char id[16] = "";
	struct gs_record record = record_of(dir, id, "p");
	unsigned int broken;

	(void)snprintf(id, sizeof(id), "c%u", i);
	if (gs_registry_write(dir, &record, NULL) < 0)
		return 1;
	if (gs_registry_each_named(dir, &record.identity, count_one, id, &broken) != 1)
		return 2;
	if (broken)
		return 3;
	gs_registry_remove(dir, id);
	return gs_registry_read(dir, id, &record, NULL) == -ENOENT ? 0 : 4;
}

static void one_name_made_and_removed_by_many(void **state)
{
	hammer(*state, 4, make_and_remove);
	assert_int_equal(tmpdir_count(*state, "containers"), 0);
	assert_int_equal(tmpdir_count(*state, "by-name"), 0);
}

/*
 * As an engine restarts a container: delete and then create with the same id, while the creates of
 * others sweep. A sweep must never take the new record for the old one.
 */
static int restart_and_sweep(const char *dir, unsigned int i)
{
	char id[16] = "";
	struct gs_record record = record_of(dir, id, "p"), back = { 0 };
	int r;

	(void)snprintf(id, sizeof(id), "c%u", i);
	if (gs_registry_write(dir, &record, NULL) < 0)
		return 1;
	gs_registry_sweep(dir, 4);
	r = gs_registry_read(dir, id, &back, NULL);
	gs_record_free(&back);
	if (r < 0)
		return 2;
	return gs_registry_mark_deleted(dir, id, NULL) < 0 ? 3 : 0;
}

static void restarts_and_sweeps_do_not_mix(void **state)
{
	hammer(*state, 4, restart_and_sweep);
	gs_registry_sweep(*state, 100);
	assert_int_equal(tmpdir_count(*state, "containers"), 0);
	assert_int_equal(tmpdir_count(*state, "by-name"), 0);
	assert_int_equal(tmpdir_count(*state, "deleted"), -1);
}

/* Two of one id: a reader sees the one or the other, never parts of both. */
static int write_one_of_two(const char *dir, unsigned int i)
{
	struct gs_record record = record_of(dir, "same", "p"), back = { 0 };
	char big[3000], small[] = "{\"who\":1}";
	int r;

	(void)memset(big, ' ', sizeof(big));
	(void)memcpy(big, "{\"who\":0", 8);
	big[sizeof(big) - 2] = '}';
	big[sizeof(big) - 1] = '\0';
	record.spec = i % 2 ? small : big;
	record.spec_len = strlen(record.spec);
	r = gs_registry_write(dir, &record, NULL);
	if (r < 0)
		return 1;
	r = gs_registry_read(dir, "same", &back, NULL);
	if (r == 0 && strcmp(back.spec, small) != 0 && strcmp(back.spec, big) != 0)
		r = 2;
	gs_record_free(&back);
	return r < 0 ? 3 : r;
}

static void one_id_written_by_many(void **state)
{
	hammer(*state, 4, write_one_of_two);
	assert_int_equal(tmpdir_count(*state, "containers"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(alive_by_the_pid_file, setup, teardown),
		cmocka_unit_test_setup_teardown(alive_by_the_hook, setup, teardown),
		cmocka_unit_test_setup_teardown(zombie_is_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(another_boot_is_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(a_living_record_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_dead_one_is_replaced_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(removes_everything, setup, teardown),
		cmocka_unit_test_setup_teardown(marks_only_what_it_knows, setup, teardown),
		cmocka_unit_test_setup_teardown(sweeps_the_marked_and_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(sweeps_no_more_than_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cut_off_removal_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(a_busy_cgroup_is_not_swept, setup, teardown),
		cmocka_unit_test_setup_teardown(scarce_by_the_hook, setup, teardown),
		cmocka_unit_test_setup_teardown(scarce_by_the_pid_file, setup, teardown),
		cmocka_unit_test_setup_teardown(a_second_sweep_does_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(one_name_made_and_removed_by_many, setup, teardown),
		cmocka_unit_test_setup_teardown(restarts_and_sweeps_do_not_mix, setup, teardown),
		cmocka_unit_test_setup_teardown(one_id_written_by_many, setup, teardown),
	};

	return cmocka_run_group_tests_name("registry_life", tests, NULL, NULL);
}
