// SPDX-License-Identifier: Apache-2.0
/* The next runtime: found without PATH, never ourselves, and given everything that we have. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
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
#include "common/xalloc.h"
#include "runtime/next.h"
#include "tests/unit/specs.h"
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

static void program(const char *dir, const char *name, mode_t mode)
{
	tmpdir_write(dir, name, "#!/bin/sh\n");
	assert_int_equal(chmod(tmpdir_path(dir, name), mode), 0);
}

/* Looks for up to three names with this PATH (NULL: none). */
static char *find(const char *path, const char *a, const char *b, const char *c, struct gs_err *err)
{
	char *names[] = { (char *)a, (char *)b, (char *)c };
	const struct gs_strv list = { names, c ? 3 : b ? 2 : a ? 1 : 0 };
	char *ret = NULL;
	int r;

	if (path)
		assert_int_equal(setenv("PATH", path, 1), 0);
	else
		assert_int_equal(unsetenv("PATH"), 0);
	*err = (struct gs_err){ 0 };
	r = next_find(&list, &ret, err);
	assert_int_equal(r, ret ? 0 : -ENOENT);
	return ret;
}

static void expect_found(const char *path, const char *a, const char *b, const char *want)
{
	struct gs_err err;
	char *got = find(path, a, b, NULL, &err);

	if (!got)
		fail_msg("%s", err.msg);
	assert_string_equal(got, want);
	free(got);
}

static void in_path(void **state)
{
	const char *one = tmpdir_path(*state, "one"), *two = tmpdir_path(*state, "two");
	cleanup_free char *path = gs_asprintf("%s:%s", one, two);

	program(*state, "one/nr-b", 0755);
	program(*state, "two/nr-b", 0755);
	program(*state, "two/nr-a", 0755);
	expect_found(path, "nr-b", NULL, tmpdir_path(*state, "one/nr-b"));
	/* preference is the order of names, not that of folders */
	expect_found(path, "nr-a", "nr-b", tmpdir_path(*state, "two/nr-a"));
	expect_found(path, "nr-none", "nr-b", tmpdir_path(*state, "one/nr-b"));
	/* one that can't be executed is passed over */
	program(*state, "one/nr-a", 0644);
	expect_found(path, "nr-a", NULL, tmpdir_path(*state, "two/nr-a"));
}

static void absolute_paths(void **state)
{
	struct gs_err err;

	program(*state, "x/nr", 0755);
	expect_found("/nonexistent", tmpdir_path(*state, "x/nr"), NULL,
		     tmpdir_path(*state, "x/nr"));
	expect_found(NULL, "/nonexistent/nr", tmpdir_path(*state, "x/nr"),
		     tmpdir_path(*state, "x/nr"));
	assert_null(find(tmpdir_path(*state, "x"), "./nr", NULL, NULL, &err));
	expect_words(&err, "./nr (not absolute)", NULL);
	assert_null(find(tmpdir_path(*state, ""), "x/nr", NULL, NULL, &err));
	expect_words(&err, "x/nr (not absolute)", NULL);
}

/* podman's clean-up calls its runtime with no PATH at all. */
static void without_path(void **state)
{
	struct gs_err err;
	char *got = find(NULL, "sh", NULL, NULL, &err);

	assert_non_null(got);
	assert_int_equal(got[0], '/');
	assert_int_equal(access(got, X_OK), 0);
	free(got);
	got = find("", "sh", NULL, NULL, &err);
	assert_non_null(got);
	free(got);
	got = find("/nonexistent", "sh", NULL, NULL, &err);
	assert_non_null(got);
	free(got);
}

/* The working directory is the bundle, which a pod's author may fill: it is never searched. */
static void never_where_we_are(void **state)
{
	static const char *const paths[] = {
		"", ":", ".", "./", ":/nonexistent", "/nonexistent:", "sub", "../x"
	};
	char cwd[PATH_MAX];
	struct gs_err err;

	program(*state, "nr-here", 0755);
	program(*state, "sub/nr-here", 0755);
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(*state), 0);
	for (size_t i = 0; i < GS_ARRAY_SIZE(paths); i++) {
		char *got = find(paths[i], "nr-here", NULL, NULL, &err);

		if (got)
			fail_msg("PATH=%s: %s", paths[i], got);
	}
	assert_int_equal(chdir(cwd), 0);
}

static void tells_all_that_was_tried(void **state)
{
	cleanup_free char *dir = gs_strdup(tmpdir_path(*state, "d"));
	struct gs_err err;

	program(*state, "d/plain", 0644);
	assert_int_equal(mkdir(tmpdir_path(*state, "d/folder"), 0755), 0);
	assert_int_equal(symlink("nowhere", tmpdir_path(*state, "d/dangling")), 0);
	assert_null(find(dir, "/nonexistent/a", tmpdir_path(*state, "d/plain"), "folder", &err));
	expect_words(&err, "no next runtime", "/nonexistent/a (No such file or directory)",
		     "/d/plain (not executable)", "/d/folder (not a file)",
		     "/usr/bin/folder (No such file or directory)", NULL);
	assert_null(find(dir, "dangling", NULL, NULL, &err));
	expect_words(&err, "/d/dangling (No such file or directory)", NULL);
	assert_null(find(dir, NULL, NULL, NULL, &err));
	expect_words(&err, "\"next\" is empty", NULL);
}

static void copy_self(const char *to, const char *tail)
{
	cleanup_close int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	cleanup_close int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	char buf[65536];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		assert_int_equal(write(out, buf, (size_t)n), n);
	assert_int_equal(write(out, tail, strlen(tail)), (ssize_t)strlen(tail));
}

/* A link to us or a copy of us would exec itself for ever. */
static void never_ourselves(void **state)
{
	cleanup_free char *dir = gs_strdup(tmpdir_path(*state, "d"));
	cleanup_free char *link = gs_strdup(tmpdir_path(*state, "d/runc"));
	cleanup_free char *copy = gs_strdup(tmpdir_path(*state, "d/crun"));
	char self[PATH_MAX];
	struct gs_err err;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	program(*state, "d/real", 0755);
	assert_int_equal(symlink(self, link), 0);
	copy_self(copy, "");
	assert_null(find(dir, self, link, copy, &err));
	expect_words(&err, "/d/runc (this is gpushare-runtime itself)",
		     "/d/crun (this is gpushare-runtime itself)", NULL);
	expect_found(dir, copy, "real", tmpdir_path(*state, "d/real"));
	/* another program of nearly the same bytes is another program */
	copy_self(copy, "x");
	expect_found(dir, "crun", NULL, copy);
}

/* The same words, variables, open files and working directory. */
static void gives_everything(void **state)
{
	static const char script[] = "#!/bin/sh\n"
				     "printf '%s|' \"$0\" \"$@\" \"$MARK\" \"$(pwd)\" >&7\n"
				     "exit 42\n";
	cleanup_free char *path = gs_strdup(tmpdir_path(*state, "my next"));
	cleanup_free char *want = gs_asprintf("%s|--root|a b||create|*|x\ny|/|", path);
	char buf[4096];
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	tmpdir_write(*state, "my next", script);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char *argv[] = { (char[]){ "gpushare-runtime" },
				 (char[]){ "--root" },
				 (char[]){ "a b" },
				 (char[]){ "" },
				 (char[]){ "create" },
				 (char[]){ "*" },
				 NULL };
		struct gs_err err;

		if (dup2(fds[1], 7) < 0 || chdir("/") < 0 || setenv("MARK", "x\ny", 1) < 0)
			_exit(1);
		(void)next_exec(path, argv, &err);
		_exit(2);
	}
	(void)close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	n = read(fds[0], buf, sizeof(buf) - 1);
	assert_true(n > 0);
	buf[n] = '\0';
	(void)close(fds[0]);
	assert_string_equal(buf, want);
}

/* crun picks its handler by the name that it was called by: our own would be none. */
static void calls_it_by_its_name(void **state)
{
	char *argv[] = { (char[]){ "gpushare-runtime" }, (char[]){ "-c" },
			 (char[]){ "test \"$0\" = /bin/sh" }, NULL };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)next_exec("/bin/sh", argv, NULL);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void tells_why_it_was_not_executed(void **state)
{
	char *argv[] = { (char[]){ "x" }, NULL };
	const char *path = tmpdir_path(*state, "garbage");
	struct gs_err err = { 0 };

	assert_int_equal(next_exec("/nonexistent/nr", argv, &err), -ENOENT);
	expect_words(&err, "exec /nonexistent/nr", "No such file", NULL);
	tmpdir_write(*state, "garbage",
		     "\x7f"
		     "ELF garbage");
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(next_exec(path, argv, &err), -ENOEXEC);
	expect_words(&err, path, "Exec format error", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_path, setup, teardown),
		cmocka_unit_test_setup_teardown(absolute_paths, setup, teardown),
		cmocka_unit_test(without_path),
		cmocka_unit_test_setup_teardown(never_where_we_are, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_all_that_was_tried, setup, teardown),
		cmocka_unit_test_setup_teardown(never_ourselves, setup, teardown),
		cmocka_unit_test_setup_teardown(gives_everything, setup, teardown),
		cmocka_unit_test(calls_it_by_its_name),
		cmocka_unit_test_setup_teardown(tells_why_it_was_not_executed, setup, teardown),
	};

	return cmocka_run_group_tests_name("next", tests, NULL, NULL);
}
