// SPDX-License-Identifier: Apache-2.0
/* Bounded reads, atomic replacement (also under SIGKILL), and safe directories. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"
#include "tests/unit/tmpdir.h"

/* fdopendir(3) when memory is short. */
static bool fdopendir_fails;

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

DIR *__wrap_fdopendir(int fd)
{
	if (!fdopendir_fails)
		return __real_fdopendir(fd);
	errno = ENOMEM;
	return NULL;
}

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

static int open_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void assert_content(const char *dir, const char *name, const char *want)
{
	cleanup_free char *text = tmpdir_read(dir, name);

	assert_string_equal(text, want);
}

/* ---- reading */

static void test_read_gives_bytes_length_and_stat(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	cleanup_free char *data = NULL;
	struct gs_err err = { 0 };
	struct stat st;
	size_t len;

	tmpdir_write(*state, "a", "hello");
	assert_int_equal(chmod(tmpdir_path(*state, "a"), 0640), 0);
	assert_int_equal(gs_file_read(dirfd, "a", 0, 5, &data, &len, &st, &err), 0);
	assert_int_equal(len, 5);
	assert_string_equal(data, "hello");
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(err.code, 0);
}

static void test_read_of_an_empty_file(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	cleanup_free char *data = NULL;
	struct gs_err err = { 0 };
	size_t len = 9;

	tmpdir_write(*state, "empty", "");
	assert_int_equal(gs_file_read(dirfd, "empty", 0, 10, &data, &len, NULL, &err), 0);
	assert_int_equal(len, 0);
	assert_string_equal(data, "");
}

static void test_read_refuses_one_byte_too_many(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	struct gs_err err = { 0 };
	char *data = NULL;
	size_t len;

	tmpdir_write(*state, "big", "123456");
	assert_int_equal(gs_file_read(dirfd, "big", 0, 5, &data, &len, NULL, &err), -EFBIG);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "big")));
	/* nor is room made for what it says that it has */
	assert_int_equal(truncate(tmpdir_path(*state, "big"), 1LL << 43), 0);
	assert_int_equal(gs_file_read(dirfd, "big", 0, 5, &data, &len, NULL, &err), -EFBIG);
	assert_null(data);
}

/* Files of procfs say that they have 0 bytes. */
static void test_read_of_procfs_has_a_bound_too(void **state)
{
	cleanup_free char *data = NULL;
	struct gs_err err = { 0 };
	size_t len;

	assert_int_equal(
		gs_file_read(AT_FDCWD, "/proc/self/status", 0, 65536, &data, &len, NULL, &err), 0);
	assert_true(len > 100);
	assert_int_equal(strlen(data), len);
	assert_int_equal(gs_file_read(AT_FDCWD, "/proc/self/status", 0, 100, &data, &len, NULL,
				      &err),
			 -EFBIG);
}

static void test_read_of_a_fifo_does_not_wait(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	struct gs_err err = { 0 };
	char *data;
	size_t len;

	assert_int_equal(mkfifo(tmpdir_path(*state, "fifo"), 0600), 0);
	(void)alarm(20);
	assert_int_equal(gs_file_read(dirfd, "fifo", 0, 10, &data, &len, NULL, &err), -EINVAL);
	(void)alarm(0);
	assert_non_null(strstr(err.msg, "is not a regular file"));
	assert_int_equal(gs_file_read(AT_FDCWD, *state, 0, 10, &data, &len, NULL, &err), -EINVAL);
}

static void test_read_follows_links_only_where_asked(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	cleanup_free char *data = NULL;
	struct gs_err err = { 0 };
	size_t len;

	tmpdir_write(*state, "real", "x");
	assert_int_equal(symlink("real", tmpdir_path(*state, "link")), 0);
	assert_int_equal(gs_file_read(dirfd, "link", 0, 10, &data, &len, NULL, &err), 0);
	assert_int_equal(gs_file_read(dirfd, "link", O_NOFOLLOW, 10, &data, &len, NULL, &err),
			 -ELOOP);
	assert_int_equal(gs_file_read(dirfd, "none", 0, 10, &data, &len, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "none")));
}

/* ---- writing */

static void test_replace_keeps_mode_and_owner(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	struct gs_err err = { 0 };
	struct stat like, st;
	mode_t old = umask(0777);

	tmpdir_write(*state, "config.json", "old");
	if (geteuid() == 0)
		assert_int_equal(chown(tmpdir_path(*state, "config.json"), 1234, 5678), 0);
	assert_int_equal(chmod(tmpdir_path(*state, "config.json"), 02750), 0);
	assert_int_equal(stat(tmpdir_path(*state, "config.json"), &like), 0);
	assert_int_equal(gs_file_replace(dirfd, "config.json", "new!", 4, &like, &err), 0);
	(void)umask(old);

	assert_int_equal(stat(tmpdir_path(*state, "config.json"), &st), 0);
	assert_int_equal(st.st_mode, like.st_mode);
	assert_int_equal(st.st_uid, like.st_uid);
	assert_int_equal(st.st_gid, like.st_gid);
	assert_int_not_equal(st.st_ino, like.st_ino);
	assert_content(*state, "config.json", "new!");
	assert_int_equal(tmpdir_count(*state, "."), 1);
}

static void test_replace_does_not_write_through_a_link(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	struct gs_err err = { 0 };
	struct stat st;

	tmpdir_write(*state, "target", "mine");
	assert_int_equal(symlink("target", tmpdir_path(*state, "name")), 0);
	assert_int_equal(gs_file_publish(dirfd, "name", "new", 3, &err), 0);
	assert_content(*state, "target", "mine");
	assert_int_equal(lstat(tmpdir_path(*state, "name"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void test_publish_is_for_the_owner_alone(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	struct gs_err err = { 0 };
	mode_t old = umask(0);
	struct stat st;

	assert_int_equal(gs_file_publish(dirfd, "record", "1", 1, &err), 0);
	assert_int_equal(gs_file_publish(dirfd, "record", "22", 2, &err), 0);
	(void)umask(old);
	assert_int_equal(stat(tmpdir_path(*state, "record"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_content(*state, "record", "22");
	assert_int_equal(tmpdir_count(*state, "."), 1);
}

static void test_create_never_replaces(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	struct gs_err err = { 0 };

	assert_int_equal(gs_file_create(dirfd, "x.bound", "first", 5, &err), 0);
	assert_int_equal(gs_file_create(dirfd, "x.bound", "second", 6, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "x.bound"));
	assert_content(*state, "x.bound", "first");
	assert_int_equal(tmpdir_count(*state, "."), 1);
}

static void test_of_many_that_create_at_once_one_wins(void **state)
{
	cleanup_close int dirfd = open_dir(*state);

	for (int round = 0; round < 10; round++) {
		cleanup_free char *name = gs_asprintf("bound-%d", round), *text = NULL;
		int start[2], wins = 0, winner = -1, status;
		pid_t pids[8];

		assert_int_equal(pipe(start), 0);
		for (int i = 0; i < 8; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0) {
				char c;

				(void)close(start[1]);
				(void)!read(start[0], &c, 1);
				text = gs_asprintf("%d", i);
				_exit(-gs_file_create(dirfd, name, text, 1, NULL));
			}
		}
		(void)close(start[0]);
		(void)close(start[1]); /* all of them go at the same moment */
		for (int i = 0; i < 8; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_true(WIFEXITED(status));
			if (WEXITSTATUS(status) == 0) {
				wins++;
				winner = i;
			} else {
				assert_int_equal(WEXITSTATUS(status), EEXIST);
			}
		}
		assert_int_equal(wins, 1);
		text = tmpdir_read(*state, name);
		assert_int_equal(atoi(text), winner);
	}
	assert_int_equal(tmpdir_count(*state, "."), 10);
}

/* ---- what goes wrong while writing */

/* A write that fails half way: the file size limit stands in for a full disk. */
static void test_failed_write_leaves_the_old_file_and_no_other(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	static char big[100000];
	struct rlimit old, small;
	struct gs_err err = { 0 };
	struct stat like;
	int r[3];

	tmpdir_write(*state, "config.json", "old");
	assert_int_equal(stat(tmpdir_path(*state, "config.json"), &like), 0);
	memset(big, 'x', sizeof(big));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ 65536, old.rlim_max };
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r[0] = gs_file_replace(dirfd, "config.json", big, sizeof(big), &like, &err);
	r[1] = gs_file_publish(dirfd, "config.json", big, sizeof(big), NULL);
	r[2] = gs_file_create(dirfd, "other", big, sizeof(big), NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

	for (int i = 0; i < 3; i++)
		assert_int_equal(r[i], -EFBIG);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "config.json")));
	assert_content(*state, "config.json", "old");
	assert_int_equal(tmpdir_count(*state, "."), 1);
}

/*
 * Runs @body in a child with a mount namespace of its own, in which @dir is a tmpfs of 64 KiB.
 * The child's assertions are its exit status. False: no such namespace can be made here.
 */
static bool in_small_tmpfs(const char *dir, void (*body)(const char *dir))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", dir, "tmpfs", 0, "size=64k") < 0)
			_exit(77);
		body(dir);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		return false;
	assert_int_equal(WEXITSTATUS(status), 0);
	return true;
}

/* For a child: cmocka's assertions would jump into the parent's copy of the runner. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void full_disk(const char *dir)
{
	static char big[100000];
	struct gs_err err = { 0 };
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat like;

	CHECK(dirfd >= 0);
	tmpdir_write(dir, "config.json", "old");
	CHECK(stat(tmpdir_path(dir, "config.json"), &like) == 0);
	memset(big, 'x', sizeof(big));
	CHECK(gs_file_replace(dirfd, "config.json", big, sizeof(big), &like, &err) == -ENOSPC);
	CHECK(strstr(err.msg, tmpdir_path(dir, "config.json")));
	CHECK(strstr(err.msg, "No space left on device"));
	CHECK(strcmp(tmpdir_read(dir, "config.json"), "old") == 0);
	CHECK(tmpdir_count(dir, ".") == 1);
	/* and what it took is given back */
	CHECK(gs_file_replace(dirfd, "config.json", big, 30000, &like, &err) == 0);
}

static void test_full_disk(void **state)
{
	if (!in_small_tmpfs(*state, full_disk))
		skip();
}

static void read_only(const char *dir)
{
	int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct gs_err err = { 0 };
	struct stat like;

	CHECK(dirfd >= 0);
	tmpdir_write(dir, "config.json", "old");
	CHECK(stat(tmpdir_path(dir, "config.json"), &like) == 0);
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	CHECK(gs_file_replace(dirfd, "config.json", "new", 3, &like, &err) == -EROFS);
	CHECK(strstr(err.msg, tmpdir_path(dir, "config.json")));
	CHECK(strstr(err.msg, "Read-only file system"));
	CHECK(strcmp(tmpdir_read(dir, "config.json"), "old") == 0);
}

static void test_read_only_file_system(void **state)
{
	if (!in_small_tmpfs(*state, read_only))
		skip();
}

/*
 * Runs @body(@dirfd) in a child and kills it with SIGKILL before its system call number @n (each
 * call stops it twice, on its way in and out). What the file system holds changes in system calls
 * alone, so these are all the moments there are. Gives false where the child came to its end.
 */
static bool killed_at(int dirfd, void (*body)(int dirfd), unsigned int n)
{
	bool killed = false;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		(void)raise(SIGSTOP);
		body(dirfd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFSTOPPED(status));
	for (unsigned int i = 0; WIFSTOPPED(status); i++) {
		if (i == n) {
			(void)kill(pid, SIGKILL);
			killed = true;
		} else {
			assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_int_equal(WIFSIGNALED(status), killed);
	return killed;
}

static void replace_it(int dirfd)
{
	struct stat like = { .st_mode = 0644, .st_uid = geteuid(), .st_gid = getegid() };

	if (gs_file_replace(dirfd, "config.json", "new and longer", 14, &like, NULL) < 0)
		_exit(1);
}

static void create_it(int dirfd)
{
	if (gs_file_create(dirfd, "bound", "whole", 5, NULL) < 0)
		_exit(1);
}

static void test_sigkill_at_any_moment_leaves_old_or_new(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	unsigned int n = 0, seen_old = 0, seen_new = 0;

	for (bool more = true; more; n++) {
		cleanup_free char *text = NULL;

		tmpdir_write(*state, "config.json", "old");
		more = killed_at(dirfd, replace_it, n);
		text = tmpdir_read(*state, "config.json");
		if (strcmp(text, "old") == 0)
			seen_old++;
		else if (strcmp(text, "new and longer") == 0)
			seen_new++;
		else
			fail_msg("half a file after system call stop %u: \"%s\"", n, text);
	}
	/* open, fchown, fchmod, write, fsync, close before the rename; fsync after it */
	assert_true(seen_old >= 12);
	assert_true(seen_new >= 2);
}

static void test_sigkill_at_any_moment_creates_all_or_nothing(void **state)
{
	cleanup_close int dirfd = open_dir(*state);
	unsigned int n = 0, absent = 0, whole = 0;

	for (bool more = true; more; n++) {
		(void)unlink(tmpdir_path(*state, "bound"));
		more = killed_at(dirfd, create_it, n);
		if (!tmpdir_has(*state, "bound")) {
			absent++;
			continue;
		}
		assert_content(*state, "bound", "whole");
		whole++;
	}
	assert_true(absent >= 10);
	assert_true(whole >= 2);
}

/* ---- directories */

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_dir_make_makes_what_is_missing(void **state)
{
	cleanup_close int fd = -1, again = -1;
	struct gs_err err = { 0 };

	fd = gs_dir_make(tmpdir_path(*state, "a/b/run"), "by-name/0123", &err);
	assert_true(fd >= 0);
	assert_int_equal(mode_of(tmpdir_path(*state, "a")), 0755);
	assert_int_equal(mode_of(tmpdir_path(*state, "a/b")), 0755);
	assert_int_equal(mode_of(tmpdir_path(*state, "a/b/run")), 0700);
	assert_int_equal(mode_of(tmpdir_path(*state, "a/b/run/by-name")), 0700);
	assert_int_equal(mode_of(tmpdir_path(*state, "a/b/run/by-name/0123")), 0700);
	again = gs_dir_make(tmpdir_path(*state, "a/b/run//"), "by-name/0123", &err);
	assert_true(again >= 0);
	assert_int_equal(gs_file_publish(again, "x", "", 0, &err), 0);
	assert_true(tmpdir_has(*state, "a/b/run/by-name/0123/x"));
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

static void test_dir_open_makes_nothing(void **state)
{
	struct gs_err err = { 0 };

	assert_int_equal(gs_dir_open(tmpdir_path(*state, "run"), "containers", &err), -ENOENT);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "run")));
	assert_int_equal(mkdir(tmpdir_path(*state, "run"), 0700), 0);
	assert_int_equal(gs_dir_open(tmpdir_path(*state, "run"), "containers", &err), -ENOENT);
	assert_int_equal(tmpdir_count(*state, "run"), 0);
}

static void expect_refused(const char *path, const char *sub, int code, const char *word)
{
	struct gs_err err = { 0 };

	assert_int_equal(gs_dir_make(path, sub, &err), -code);
	assert_non_null(strstr(err.msg, word));
	assert_int_equal(gs_dir_open(path, sub, &err), -code);
}

static void test_dir_that_others_may_write_is_refused(void **state)
{
	const char *run = tmpdir_path(*state, "run");

	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(chmod(run, 0770), 0);
	expect_refused(run, NULL, EPERM, run);
	expect_refused(run, "containers", EPERM, run);
	assert_int_equal(chmod(run, 0702), 0);
	expect_refused(run, NULL, EPERM, run);
	assert_int_equal(chmod(run, 0755), 0);
	assert_int_equal(mkdir(tmpdir_path(run, "containers"), 0700), 0);
	assert_int_equal(chmod(tmpdir_path(run, "containers"), 0777), 0);
	expect_refused(run, "containers", EPERM, "containers");
}

static void test_dir_of_somebody_else_is_refused(void **state)
{
	const char *run = tmpdir_path(*state, "run");

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(chown(run, 1234, 0), 0);
	expect_refused(run, NULL, EPERM, "1234");
}

static void test_link_is_no_directory(void **state)
{
	const char *real = tmpdir_path(*state, "real"), *run = tmpdir_path(*state, "run");

	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink("real", run), 0);
	expect_refused(run, NULL, ENOTDIR, run);
	expect_refused(tmpdir_path(*state, "run/"), NULL, ENOTDIR, run);
	expect_refused(run, "sub", ENOTDIR, run);
	assert_int_equal(symlink("real", tmpdir_path(real, "sub")), 0);
	expect_refused(real, "sub", ENOTDIR, "sub");
	assert_int_equal(tmpdir_count(*state, "real"), 1);
	tmpdir_write(*state, "file", "");
	expect_refused(tmpdir_path(*state, "file"), NULL, ENOTDIR, "file");
}

static void test_sub_cannot_leave_the_directory(void **state)
{
	assert_int_equal(mkdir(tmpdir_path(*state, "run"), 0700), 0);
	expect_refused(tmpdir_path(*state, "run"), "../other", EINVAL, "..");
	assert_int_equal(mkdir(tmpdir_path(*state, "run/a"), 0700), 0);
	expect_refused(tmpdir_path(*state, "run"), "a/../../other", EINVAL, "..");
	assert_false(tmpdir_has(*state, "other"));
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void test_opendirat_leaks_nothing(void **state)
{
	cleanup_close int dir = open_dir(*state);
	int before = count_descriptors();
	DIR *d = gs_opendirat(dir, ".");

	assert_non_null(d);
	assert_int_equal(fcntl(dirfd(d), F_GETFD), FD_CLOEXEC);
	closedir(d);
	assert_int_equal(symlink(".", tmpdir_path(*state, "link")), 0);
	tmpdir_write(*state, "file", "");
	assert_null(gs_opendirat(dir, "link"));
	assert_null(gs_opendirat(dir, "file"));
	assert_int_equal(errno, ENOTDIR);
	assert_null(gs_opendirat(dir, "none"));
	assert_int_equal(errno, ENOENT);
	fdopendir_fails = true;
	assert_null(gs_opendirat(dir, "."));
	fdopendir_fails = false;
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(count_descriptors(), before);
}

static void test_links_stay_in_their_tree(void **state)
{
	cleanup_free char *real = NULL, *wanted = NULL;
	int fd;

	tmpdir_write(*state, "tree/usr/x", "inside");
	tmpdir_write(*state, "outside", "");
	assert_int_equal(symlink("/usr/x", tmpdir_path(*state, "tree/absolute")), 0);
	assert_int_equal(symlink("../../../usr/x", tmpdir_path(*state, "tree/usr/relative")), 0);
	assert_int_equal(symlink("../outside", tmpdir_path(*state, "tree/out")), 0);
	wanted = gs_strdup(tmpdir_path(*state, "tree/usr/x"));
	real = gs_file_real_in(tmpdir_path(*state, "tree"), "/absolute");
	assert_string_equal(real, wanted);
	free(real);
	real = gs_file_real_in(tmpdir_path(*state, "tree"), "/usr/relative");
	assert_string_equal(real, wanted);
	assert_null(gs_file_real_in(tmpdir_path(*state, "tree"), "/out"));
	assert_null(gs_file_real_in(tmpdir_path(*state, "none"), "/x"));
	assert_int_equal(gs_file_open_in(tmpdir_path(*state, "tree"), "/out", O_RDONLY), -ENOENT);
	assert_int_equal(gs_file_open_in(tmpdir_path(*state, "none"), "/x", O_RDONLY), -ENOENT);
	fd = gs_file_open_in(tmpdir_path(*state, "tree"), "/absolute", O_RDONLY);
	assert_true(fd >= 0);
	(void)close(fd);
}

static bool no_b(const char *name)
{
	return name[0] && name[0] != 'b';
}

static void test_names_are_cut_picked_and_sorted(void **state)
{
	static const char *const files[] = { "d.json", "a.json",  "b.json", ".json",
					     "c.jso",  "c.json~", "json",   "a.b.json" };
	cleanup_strv struct gs_strv list = { 0 };
	cleanup_close int dir = open_dir(*state);
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < GS_ARRAY_SIZE(files); i++)
		tmpdir_write(*state, files[i], "");
	assert_int_equal(gs_dir_names(dir, ".json", no_b, &list), 0);
	text = gs_strv_join(&list);
	assert_string_equal(text, "a,a.b,d");
	gs_strv_free(&list);
	/* the place in the caller's descriptor has not moved */
	assert_int_equal(gs_dir_names(dir, ".json", no_b, &list), 0);
	assert_int_equal(list.n, 3);
	fdopendir_fails = true;
	assert_int_equal(gs_dir_names(dir, ".json", no_b, &list), -ENOMEM);
	fdopendir_fails = false;
	assert_int_equal(list.n, 3);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_read_gives_bytes_length_and_stat),
		T(test_read_of_an_empty_file),
		T(test_read_refuses_one_byte_too_many),
		T(test_read_of_procfs_has_a_bound_too),
		T(test_read_of_a_fifo_does_not_wait),
		T(test_read_follows_links_only_where_asked),
		T(test_replace_keeps_mode_and_owner),
		T(test_replace_does_not_write_through_a_link),
		T(test_publish_is_for_the_owner_alone),
		T(test_create_never_replaces),
		T(test_of_many_that_create_at_once_one_wins),
		T(test_failed_write_leaves_the_old_file_and_no_other),
		T(test_full_disk),
		T(test_read_only_file_system),
		T(test_sigkill_at_any_moment_leaves_old_or_new),
		T(test_sigkill_at_any_moment_creates_all_or_nothing),
		T(test_dir_make_makes_what_is_missing),
		T(test_dir_open_makes_nothing),
		T(test_dir_that_others_may_write_is_refused),
		T(test_dir_of_somebody_else_is_refused),
		T(test_link_is_no_directory),
		T(test_sub_cannot_leave_the_directory),
		T(test_opendirat_leaks_nothing),
		T(test_links_stay_in_their_tree),
		T(test_names_are_cut_picked_and_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
