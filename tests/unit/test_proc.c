// SPDX-License-Identifier: Apache-2.0
/* Processes, cgroups, namespaces and pid files, read from the /proc of this machine. */
#include <errno.h>
#include <pthread.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "tests/unit/tmpdir.h"

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

/* A child that waits to be killed, under the name @comm. */
static pid_t child(const char *comm)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, comm);
		(void)close(ready[0]);
		(void)close(ready[1]);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 0);
	(void)close(ready[0]);
	return pid;
}

static void kill_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void start_time_of_a_process(void **state)
{
	uint64_t before = gs_ticks_now(), start = 0, mine = 0, after;
	struct gs_err err = { 0 };
	pid_t pid = child("plain");

	after = gs_ticks_now();
	assert_int_equal(gs_proc_start(pid, &start, &err), 0);
	assert_int_equal(gs_proc_start(getpid(), &mine, &err), 0);
	kill_child(pid);
	assert_true(mine <= before);
	/* The same clock: nobody who starts after a reading starts before it. */
	assert_true(before <= start);
	assert_true(start <= after);
}

static void name_with_brackets_and_spaces(void **state)
{
	static const char *const names[] = { "a) Z 1 2 3 (b", ") R 0 ", "(((", "a\nb) X 1", " " };

	for (size_t i = 0; i < GS_ARRAY_SIZE(names); i++) {
		uint64_t before = gs_ticks_now(), start = 0;
		pid_t pid = child(names[i]);

		assert_int_equal(gs_proc_start(pid, &start, NULL), 0);
		kill_child(pid);
		assert_true(start >= before && start <= gs_ticks_now());
	}
}

static void zombie_is_gone(void **state)
{
	struct gs_err err = { 0 };
	uint64_t start = 7;
	siginfo_t info;
	pid_t pid = child("zombie");

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(gs_proc_start(pid, &start, &err), -ESRCH);
	assert_non_null(strstr(err.msg, "ended"));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(gs_proc_start(pid, &start, &err), -ESRCH);
	assert_non_null(strstr(err.msg, "gone"));
	assert_int_equal(start, 7);
}

static void *sleep_for_ever(void *arg)
{
	for (;;)
		(void)pause();
	return NULL;
}

static bool is_zombie(pid_t pid)
{
	char name[32], text[4096] = "";
	FILE *file;

	(void)snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	file = fopen(name, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	return strstr(text, ") Z ") != NULL;
}

/* The kernel shows the state of the first thread, which may end before the others. */
static void zombie_with_threads_lives(void **state)
{
	uint64_t start;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_t thread;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pthread_create(&thread, NULL, sleep_for_ever, NULL);
		pthread_exit(NULL);
	}
	for (int i = 0; i < 5000 && !is_zombie(pid); i++)
		(void)usleep(1000);
	assert_true(is_zombie(pid));
	assert_int_equal(gs_proc_start(pid, &start, NULL), 0);
	kill_child(pid);
}

static void no_such_process(void **state)
{
	struct gs_err err = { 0 };
	uint64_t n;
	char *cgroup = NULL;

	/* Above the kernel's largest pid. */
	assert_int_equal(gs_proc_start(4194305, &n, &err), -ESRCH);
	assert_int_equal(gs_proc_cgroup(4194305, &cgroup, &err), -ESRCH);
	assert_int_equal(gs_proc_ns(4194305, "pid", &n, &err), -ESRCH);
	assert_int_equal(gs_proc_start(-1, &n, &err), -ESRCH);
}

static void clocks(void **state)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t ms = gs_boottime_ms(), ticks = gs_ticks_now(), ms2 = gs_boottime_ms();

	assert_true(ticks >= ms * (uint64_t)hz / 1000);
	assert_true(ticks <= ms2 * (uint64_t)hz / 1000 + 1);
}

static void boot_id(void **state)
{
	char id[37], again[37];

	assert_int_equal(gs_boot_id(id, NULL), 0);
	assert_int_equal(strlen(id), 36);
	assert_int_equal(id[8], '-');
	assert_int_equal(gs_boot_id(again, NULL), 0);
	assert_string_equal(id, again);
}

static void namespaces(void **state)
{
	uint64_t ns = 0;
	char link[64], want[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	assert_true(n > 0);
	link[n] = '\0';
	assert_int_equal(gs_proc_ns(getpid(), "pid", &ns, NULL), 0);
	(void)snprintf(want, sizeof(want), "pid:[%llu]", (unsigned long long)ns);
	assert_string_equal(link, want);
}

static void expect_pick(const char *text, const char *want)
{
	cleanup_free char *copy = strdup(text), *got = gs_cgroup_pick(copy);

	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void picks_the_cgroup(void **state)
{
	expect_pick("0::/kubepods/a\n", "/kubepods/a");
	expect_pick("0::/\n", "/");
	/* A hybrid system: the container's limits are in version 1. */
	expect_pick("12:devices:/k/dev\n3:cpu,cpuacct:/k/cpu\n0::/k/unified\n", "/k/dev");
	expect_pick("0::/k/unified\n12:devices:/k/dev\n", "/k/dev");
	expect_pick("4:freezer,devices:/both\n0::/u\n", "/both");
	expect_pick("4:devices,freezer:/both\n0::/u\n", "/both");
	expect_pick("4:mydevices:/no\n5:devicesx:/no\n6:name=devices:/no\n0::/u\n", "/u");
	expect_pick("9:devices:/system.slice:docker:abc\n", "/system.slice:docker:abc");
	expect_pick("0::/a:b:c\n", "/a:b:c");
	expect_pick("10::/wrong\n0::/right\n", "/right");
	expect_pick("3:cpu:/x\n", NULL);
	expect_pick("", NULL);
	expect_pick("garbage\n\n:\n", NULL);
	/* No newline at the end. */
	expect_pick("0::/x", "/x");
}

static void own_cgroup(void **state)
{
	cleanup_free char *cgroup = NULL, *text = tmpdir_read("/proc/self", "cgroup"),
			  *want = gs_cgroup_pick(text);

	assert_int_equal(gs_proc_cgroup(getpid(), &cgroup, NULL), 0);
	assert_string_equal(cgroup, want);
}

static void matches(void **state)
{
	static const struct {
		const char *path, *spec;
		bool yes;
	} cases[] = {
		{ "/kubepods/pod1/c1", "/kubepods/pod1/c1", true },
		{ "/kubepods/pod1/c1", "kubepods/pod1/c1", true },
		{ "/kubepods/pod1/c1", "/kubepods//pod1/c1/", true },
		{ "/kubepods/pod1/c1/inner", "/kubepods/pod1/c1", true },
		{ "/docker/node/kubepods/pod1/c1/docker/x", "/kubepods/pod1/c1", true },
		{ "/kubepods/pod1/c2", "/kubepods/pod1/c1", false },
		{ "/kubepods/pod1/c11", "/kubepods/pod1/c1", false },
		{ "/xkubepods/pod1/c1", "/kubepods/pod1/c1", false },
		{ "/kubepods/pod1", "/kubepods/pod1/c1", false },
		{ "/kubepods/a/pod1/c1", "/kubepods/pod1/c1", false },
		{ "/", "/kubepods/pod1/c1", false },
		{ "/a/a/b", "/a/b", true },
		{ "/anything", "", true },
		{ "/anything", NULL, true },
		{ "/anything", "/", true },
		{ "/a/b", "/a/../b", false },
		{ "/kubepods.slice/p.slice/cri-containerd-abc.scope",
		  "kubepods-p.slice:cri-containerd:abc", true },
		{ "/kubepods.slice/p.slice/cri-containerd-abc.scope/init",
		  "kubepods-p.slice:cri-containerd:abc", true },
		{ "/p.slice/cri-containerd-abcd.scope", "p.slice:cri-containerd:abc", false },
		{ "/p.slice/cri-containerd-abc", "p.slice:cri-containerd:abc", false },
		{ "/p.slice/-abc.scope", "p.slice::abc", true },
		{ "/p.slice/q.slice", "p.slice:x:q.slice", true },
		{ "/p.slice/x-q.slice.scope", "p.slice:x:q.slice", false },
		/* cgroupfs runtimes under a kubelet set to systemd. */
		{ "/kubepods-p.slice:cri-containerd:abc", "kubepods-p.slice:cri-containerd:abc",
		  true },
		{ "/p.slice/x-", "p.slice:x:", false },
		{ "/a-b:c.scope", "s:a:b:c", false },
		{ "/x/y-z.scope", "s:x/y:z", false },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++)
		if (gs_cgroup_matches(cases[i].path, cases[i].spec) != cases[i].yes)
			fail_msg("%s in %s: not %d", cases[i].path, cases[i].spec, cases[i].yes);
}

/* As gs_cgroup_busy(), where it can open no more than @files. */
static bool busy_with(const char *root, const char *path, rlim_t files)
{
	int next = dup(0);
	struct rlimit before, limit;
	bool busy;

	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)next + files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	busy = gs_cgroup_busy(root, path);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return busy;
}

static void busy_in_a_made_up_tree(void **state)
{
	const char *root = *state;

	tmpdir_write(root, "v2/cgroup.events", "populated 1\nfrozen 0\n");
	tmpdir_write(root, "empty2/cgroup.events", "populated 0\nfrozen 0\n");
	/* What version 2 says holds for the whole tree. */
	tmpdir_write(root, "empty2/below/cgroup.procs", "17\n");
	tmpdir_write(root, "devices/k/c/cgroup.procs", "12\n13\n");
	tmpdir_write(root, "devices/k/dind/cgroup.procs", "");
	tmpdir_write(root, "devices/k/dind/docker/x/cgroup.procs", "99\n");
	tmpdir_write(root, "devices/k/none/cgroup.procs", "");
	tmpdir_write(root, "devices/k/none/sub/cgroup.procs", "");
	tmpdir_write(root, "unified/u/cgroup.events", "frozen 0\npopulated 1\n");
	for (rlim_t more = 0; more < 6; more++) {
		assert_true(busy_with(root, "/v2", more));
		assert_true(busy_with(root, "/k/dind", more));
	}
	assert_true(gs_cgroup_busy(root, "/v2"));
	assert_false(gs_cgroup_busy(root, "/empty2"));
	assert_true(gs_cgroup_busy(root, "/k/c"));
	assert_true(gs_cgroup_busy(root, "/k/dind"));
	assert_false(gs_cgroup_busy(root, "/k/none"));
	assert_true(gs_cgroup_busy(root, "/u"));
	assert_true(gs_cgroup_busy(root, tmpdir_path(root, "devices/k/dind")));
	assert_false(gs_cgroup_busy(root, tmpdir_path(root, "devices/k/none")));
	assert_false(gs_cgroup_busy(root, "/gone"));
	/* What tells nothing about one container. */
	tmpdir_write(root, "cgroup.events", "populated 1\n");
	assert_false(gs_cgroup_busy(root, "/"));
	assert_false(gs_cgroup_busy(root, "//"));
	assert_false(gs_cgroup_busy(root, ""));
	assert_false(gs_cgroup_busy(root, "v2"));
	assert_false(gs_cgroup_busy(root, "/../v2"));
	assert_false(gs_cgroup_busy(root, "/x/../v2"));
	assert_false(gs_cgroup_busy(root, root));
}

/* The kernel's own files, wherever this machine lets us make a cgroup. */
static void busy_in_a_real_one(void **state)
{
	static const char *const places[] = { GS_CGROUP_ROOT, GS_CGROUP_ROOT "/devices",
					      GS_CGROUP_ROOT "/unified" };
	char name[64], dir[128] = "", sub[160], procs[192], pid_text[16];
	pid_t pid;
	FILE *file;

	(void)snprintf(name, sizeof(name), "/gpushare-unit-%d", (int)getpid());
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
	(void)snprintf(sub, sizeof(sub), "%s/sub", dir);
	assert_int_equal(mkdir(sub, 0755), 0);
	assert_false(gs_cgroup_busy(GS_CGROUP_ROOT, name));
	pid = child("busy");
	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", sub);
	(void)snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	file = fopen(procs, "we");
	assert_non_null(file);
	assert_true(fputs(pid_text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_true(gs_cgroup_busy(GS_CGROUP_ROOT, name));
	assert_true(gs_cgroup_busy(GS_CGROUP_ROOT, dir));
	kill_child(pid);
	for (int i = 0; i < 5000 && gs_cgroup_busy(GS_CGROUP_ROOT, name); i++)
		(void)usleep(1000);
	assert_false(gs_cgroup_busy(GS_CGROUP_ROOT, name));
	assert_int_equal(rmdir(sub), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_false(gs_cgroup_busy(GS_CGROUP_ROOT, name));
}

static void pid_files(void **state)
{
	static const struct {
		const char *text;
		pid_t pid;
	} cases[] = {
		{ "1234", 1234 },
		{ "1234\n", 1234 },
		{ "7 \r\n", 7 },
		{ "2147483647", INT32_MAX },
		{ "", 0 },
		{ "\n", 0 },
		{ "0", 0 },
		{ "-5", 0 },
		{ "+5", 0 },
		{ " 5", 0 },
		{ "12x", 0 },
		{ "12 13", 0 },
		{ "0x10", 0 },
		{ "2147483648", 0 },
		{ "99999999999999999999999", 0 },
		{ "12.5", 0 },
	};
	struct gs_err err;
	const char *path = tmpdir_path(*state, "pid");
	pid_t pid;

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		int r;

		pid = -7;
		err = (struct gs_err){ 0 };
		tmpdir_write(*state, "pid", cases[i].text);
		r = gs_pid_file_read(path, &pid, &err);
		if (r != (cases[i].pid ? 0 : -EINVAL) || pid != (cases[i].pid ? cases[i].pid : -7))
			fail_msg("\"%s\": %d, pid %d", cases[i].text, r, (int)pid);
		if (r < 0)
			assert_non_null(strstr(err.msg, path));
	}
}

static void pid_files_that_are_none(void **state)
{
	const char *path = tmpdir_path(*state, "x");
	char big[200];
	pid_t pid;

	assert_int_equal(gs_pid_file_read(path, &pid, NULL), -ENOENT);
	/* Nobody writes to it, and we do not wait. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(gs_pid_file_read(path, &pid, NULL), -EINVAL);
	assert_int_equal(unlink(path), 0);
	tmpdir_write(*state, "real", "12\n");
	assert_int_equal(symlink("real", path), 0);
	assert_int_equal(gs_pid_file_read(path, &pid, NULL), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(gs_pid_file_read(path, &pid, NULL), -EINVAL);
	assert_int_equal(rmdir(path), 0);
	memset(big, '1', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	tmpdir_write(*state, "x", big);
	assert_int_equal(gs_pid_file_read(path, &pid, NULL), -EFBIG);
}

static void tells_the_parent(void **state)
{
	pid_t parent = 0;

	(void)state;
	assert_int_equal(gs_proc_parent(getpid(), &parent, NULL), 0);
	assert_int_equal(parent, getppid());
	assert_int_equal(gs_proc_parent(INT_MAX, &parent, NULL), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_the_parent),
		cmocka_unit_test(start_time_of_a_process),
		cmocka_unit_test(name_with_brackets_and_spaces),
		cmocka_unit_test(zombie_is_gone),
		cmocka_unit_test(zombie_with_threads_lives),
		cmocka_unit_test(no_such_process),
		cmocka_unit_test(clocks),
		cmocka_unit_test(boot_id),
		cmocka_unit_test(namespaces),
		cmocka_unit_test(picks_the_cgroup),
		cmocka_unit_test(own_cgroup),
		cmocka_unit_test(matches),
		cmocka_unit_test_setup_teardown(busy_in_a_made_up_tree, setup, teardown),
		cmocka_unit_test(busy_in_a_real_one),
		cmocka_unit_test_setup_teardown(pid_files, setup, teardown),
		cmocka_unit_test_setup_teardown(pid_files_that_are_none, setup, teardown),
	};

	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
