// SPDX-License-Identifier: Apache-2.0
/* Killing a cgroup: which ones never, and that nothing in one outlives it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cgroup_kill.h"
#include "common/cleanup.h"
#include "common/proc.h"

#define ROOT "/sys/fs/cgroup"
/* More than the walk over a tree goes down. */
#define DEPTH 70

/* Our own group, the only thing that may be opened; its processes, the only ones to be killed. */
static char ours[128];
static int opened, killed;

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

int __wrap_open64(const char *path, int flags, ...)
{
	bool allowed = ours[0] && strncmp(path, ours, strlen(ours)) == 0;
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (mode_t)va_arg(ap, int);
	va_end(ap);
	if (allowed || strncmp(path, ROOT, strlen(ROOT)) != 0)
		return __real_open64(path, flags, mode);
	opened++;
	errno = ENOENT;
	return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (mode_t)va_arg(ap, int);
	va_end(ap);
	return __wrap_open64(path, flags, mode);
}

int __wrap_kill(pid_t pid, int sig)
{
	if (sig == 0) /* only a question */
		return __real_kill(pid, sig);
	killed++;
	if (!ours[0] || pid <= 1 || sig != SIGKILL)
		return 0;
	return __real_kill(pid, sig);
}

static void never(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"relative/path",
		"/sys/fs",
		ROOT,
		ROOT "/",
		ROOT "//",
		ROOT "x/a/b",
		/* a whole hierarchy, or all that is at the top of one */
		ROOT "/devices",
		ROOT "/devices/",
		ROOT "/unified",
		ROOT "/unified/",
		ROOT "/machine.slice",
		ROOT "/docker",
		ROOT "/init.scope",
		/* the kubelet's own, on both versions and with both drivers */
		ROOT "/kubepods",
		ROOT "/kubepods.slice",
		ROOT "/devices/kubepods",
		ROOT "/unified/kubepods.slice",
		ROOT "/kubepods/burstable",
		ROOT "/kubepods/besteffort",
		ROOT "/devices/kubepods/besteffort",
		ROOT "/kubepods.slice/kubepods-burstable.slice",
		ROOT "/kubepods.slice/kubepods-besteffort.slice",
		ROOT "/unified/kubepods.slice/kubepods-besteffort.slice",
		ROOT "/kubelet/kubepods",
		ROOT "/kubelet.slice/kubelet-kubepods.slice",
		ROOT "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice",
		/* the system's */
		ROOT "/system.slice",
		ROOT "/user.slice",
		ROOT "/devices/system.slice",
		ROOT "/devices/user.slice",
		ROOT "/unified/init.scope",
		ROOT "/systemd/init.scope",
		/* at the top of a hierarchy: docker's, podman's and machined's for all */
		ROOT "/devices/docker",
		ROOT "/devices/libpod_parent",
		ROOT "/unified/machine.slice",
		/* paths that are not what they look like */
		ROOT "/a/..",
		ROOT "/a/b/..",
		ROOT "/a/../b/c",
		ROOT "/../../../proc/1",
		ROOT "/a/.",
		ROOT "/a/./b",
		ROOT "/./a/b",
		ROOT "//a/b",
		ROOT "/a//b",
		ROOT "/a/b/",
		ROOT "/a/b//",
		"/proc/self/root" ROOT "/a/b",
		" " ROOT "/a/b",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(paths); i++) {
		struct gs_err err = { 0 };
		int r = gs_cgroup_kill(paths[i], gs_boottime_ms() + 1000, &err);

		if (r != -EINVAL || !strstr(err.msg, "may be killed") || opened)
			fail_msg("\"%s\": %d, \"%s\", opened %d", paths[i], r, err.msg, opened);
		assert_int_equal(gs_cgroup_kill(paths[i], 0, NULL), -EINVAL);
		assert_int_equal(gs_cgroup_kill_begin(paths[i], NULL, NULL), -EINVAL);
		assert_int_equal(opened, 0);
	}
	assert_int_equal(killed, 0);
}

/* A container's own group may be killed, wherever it is; one that is gone has no processes. */
static void what_is_gone_is_empty(void **state)
{
	static const char *const paths[] = {
		ROOT "/kubepods/besteffort/pod1/c1",
		ROOT "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice/"
		     "cri-containerd-c1.scope",
		ROOT "/devices/kubepods/pod1/c1",
		ROOT "/unified/kubepods.slice/kubepods-pod1.slice/crio-c1.scope",
		ROOT "/devices/default/c1",
		ROOT "/machine.slice/libpod-c1.scope",
		ROOT "/a/..b",
		ROOT "/a/kubepods2",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(paths); i++) {
		struct gs_err err = { 0 };

		opened = 0;
		if (gs_cgroup_kill(paths[i], gs_boottime_ms() + 1000, &err) != 0 || opened == 0)
			fail_msg("%s: %s", paths[i], err.msg);
	}
	assert_int_equal(killed, 0);
}

/*
 * Makes a group three deep in whichever hierarchy there is; @unified: in version 2's. False: none
 * can be made.
 */
static bool make_group(char dir[160], bool unified)
{
	static const char *const places[] = { ROOT, ROOT "/devices", ROOT "/unified" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(places); i++) {
		char procs[64];

		if (unified && i == 1)
			continue;

		(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", places[i]);
		(void)snprintf(ours, sizeof(ours), "%s/gpushare-unit-%d", places[i], (int)getpid());
		if (access(procs, W_OK) < 0 || mkdir(ours, 0755) < 0)
			continue;
		(void)snprintf(dir, 160, "%s/pod", ours);
		assert_int_equal(mkdir(dir, 0755), 0);
		(void)strcat(dir, "/c1");
		assert_int_equal(mkdir(dir, 0755), 0);
		return true;
	}
	ours[0] = '\0';
	return false;
}

static void join(const char *dir)
{
	char path[512];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	file = fopen(path, "we");
	if (!file || fprintf(file, "%d", (int)getpid()) < 0 || fclose(file) != 0)
		_exit(2);
}

/* A process in @dir that ignores what can be ignored; @forks: and makes others all the time. */
static pid_t start(const char *dir, bool forks)
{
	int fds[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		join(dir);
		for (int sig = 1; sig < 32; sig++)
			(void)signal(sig, SIG_IGN);
		(void)!write(fds[1], "x", 1);
		/* a minute: nobody kills it where the test itself was killed */
		for (uint64_t end = gs_boottime_ms() + 60000; gs_boottime_ms() < end;) {
			if (forks && fork() == 0) {
				(void)usleep(300000);
				_exit(0);
			}
			(void)usleep(forks ? 1000 : 1000000);
		}
		_exit(0);
	}
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	(void)close(fds[0]);
	return pid;
}

static void expect_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static bool has_processes(const char *dir)
{
	char path[256], line[16];
	FILE *file;
	bool any;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	file = fopen(path, "re");
	assert_non_null(file);
	any = fgets(line, sizeof(line), file) != NULL;
	(void)fclose(file);
	return any;
}

/* rmdir(2) is refused while the last of them is still exiting. */
static void remove_group(const char *dir)
{
	int r = -1;

	for (int i = 0; i < 5000 && (r = rmdir(dir)) < 0; i++)
		(void)usleep(1000);
	assert_int_equal(r, 0);
}

static void nothing_outlives_it(void **state)
{
	char dir[160], deep[200], beside[200];
	struct gs_err err = { 0 };
	pid_t plain, forking, below, neighbour;

	if (!make_group(dir, false)) {
		print_message("skipped: no cgroup can be made here\n");
		skip();
	}
	(void)snprintf(deep, sizeof(deep), "%s/deep", dir);
	(void)snprintf(beside, sizeof(beside), "%s/pod/c2", ours);
	assert_int_equal(mkdir(deep, 0755), 0);
	assert_int_equal(mkdir(beside, 0755), 0);
	/* empty: at once */
	assert_int_equal(gs_cgroup_kill(dir, 0, &err), 0);
	plain = start(dir, false);
	forking = start(dir, true);
	below = start(deep, false);
	neighbour = start(beside, false);
	/* out of time before they are gone: said so, and they are killed all the same */
	assert_int_equal(gs_cgroup_kill(deep, 0, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, deep));
	expect_killed(below);
	below = start(deep, false);
	/* one write, where there is the file for it */
	if (gs_cgroup_kill_begin(deep, NULL, &err) == 0) {
		expect_killed(below);
		below = start(deep, false);
	} else {
		assert_int_equal(err.code, ENOENT);
		assert_non_null(strstr(err.msg, deep));
	}
	if (gs_cgroup_kill(dir, gs_boottime_ms() + 10000, &err) != 0)
		fail_msg("%s", err.msg);
	assert_false(has_processes(dir));
	assert_false(has_processes(deep));
	expect_killed(plain);
	expect_killed(forking);
	expect_killed(below);
	/* the neighbour lives */
	assert_true(has_processes(beside));
	assert_int_equal(waitpid(neighbour, NULL, WNOHANG), 0);
	assert_int_equal(gs_cgroup_kill(beside, gs_boottime_ms() + 10000, &err), 0);
	expect_killed(neighbour);
	remove_group(deep);
	remove_group(beside);
	remove_group(dir);
	(void)snprintf(deep, sizeof(deep), "%s/pod", ours);
	remove_group(deep);
	remove_group(ours);
	assert_int_equal(gs_cgroup_kill(dir, 0, &err), 0);
}

/* Makes, or removes, @n groups one in the other below @dir. */
static void nest(const char *dir, int n, bool make)
{
	char path[512];

	for (int i = 1; i <= n; i++) {
		int len = snprintf(path, sizeof(path), "%s", dir);

		for (int k = make ? i : n - i + 1; k > 0; k--)
			len += snprintf(path + len, sizeof(path) - (size_t)len, "/d");
		if (make)
			assert_int_equal(mkdir(path, 0755), 0);
		else
			remove_group(path);
	}
}

/* Who may make groups of his own makes more of them than anybody looks at. */
static void deeper_than_anybody_looks(void **state)
{
	char dir[160], deep[512];
	struct gs_err err = { 0 };
	pid_t below;

	if (!make_group(dir, true)) {
		print_message("skipped: no cgroup can be made here\n");
		skip();
	}
	nest(dir, DEPTH, true);
	if (gs_cgroup_kill(dir, 0, &err) != 0)
		fail_msg("%s", err.msg);
	(void)snprintf(deep, sizeof(deep), "%s", dir);
	for (int i = 0; i < DEPTH; i++)
		(void)strcat(deep, "/d");
	below = start(deep, false);
	if (gs_cgroup_kill(dir, gs_boottime_ms() + 10000, &err) != 0)
		fail_msg("%s", err.msg);
	expect_killed(below);
	nest(dir, DEPTH, false);
	remove_group(dir);
	*strrchr(dir, '/') = '\0';
	remove_group(dir);
	remove_group(ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never),
		cmocka_unit_test(what_is_gone_is_empty),
		cmocka_unit_test(nothing_outlives_it),
		cmocka_unit_test(deeper_than_anybody_looks),
	};

	return cmocka_run_group_tests_name("cgroup_kill", tests, NULL, NULL);
}
