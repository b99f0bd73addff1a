// SPDX-License-Identifier: Apache-2.0
/* Children that are started by a process apart: their ends, their death, what they inherit. */
#include <dirent.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/spawner.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "tests/unit/loop.h"

struct scene {
	uv_loop_t loop;
	struct spawner *spawner;
	struct spawner_child *child;
	int ended, died; /* how often */
	int status;
	bool timed_out;
};

static void set_oom_score(const char *text)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/*
 * What some supervisors leave ignored in all that they start; the C library lets nobody change the
 * two that it has for its threads (32 and 33), so by the system call.
 */
static void set_ignored(bool ignored)
{
	static const int sigs[] = { SIGHUP, SIGQUIT, SIGUSR2, SIGPIPE, 32, 33, 64 };
	uintptr_t action[8] = { (uintptr_t)(ignored ? SIG_IGN : SIG_DFL) };
	const size_t set_size = 8;

	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		assert_int_equal(syscall(SYS_rt_sigaction, sigs[i], action, NULL, set_size), 0);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct gs_err err = { 0 };

	assert_non_null(s);
	(void)setenv("NOTIFY_SOCKET", "/nowhere", 1);
	set_oom_score("100"); /* only root may be spared, anybody may be more in danger */
	set_ignored(true);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	if (spawner_start(&s->spawner, &err) < 0 || spawner_attach(s->spawner, &s->loop, &err) < 0)
		fail_msg("%s", err.msg);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	set_ignored(false);
	spawner_free(s->spawner);
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	free(s);
	return 0;
}

static void ended(int status, void *arg)
{
	struct scene *s = arg;

	s->ended++;
	s->status = status;
	uv_stop(&s->loop);
}

/* Runs the loop until a child has ended, at most @ms. */
static void wait_end(struct scene *s, unsigned int ms)
{
	s->timed_out = loop_run(&s->loop, ms);
}

/* Starts a shell with this script; what it prints can be read from the result. */
static int start(struct scene *s, const char *script)
{
	const char *const argv[] = { "/bin/sh", "-c", script, "sh", "a b", "", NULL };
	struct gs_err err = { 0 };
	int out[2], in;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	in = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
	assert_true(in >= 0);
	if (spawner_run(s->spawner, argv, in, out[1], ended, s, &s->child, &err) < 0)
		fail_msg("%s", err.msg);
	(void)close(in);
	(void)close(out[1]);
	return out[0];
}

/* All that comes until its end. */
static char *read_all(int fd)
{
	struct gs_buf buf = { 0 };
	char piece[512];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		gs_buf_add(&buf, piece, (size_t)n);
	assert_int_equal(n, 0);
	(void)close(fd);
	return gs_buf_steal(&buf);
}

static void args_output_and_status(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text = NULL;
	int fd = start(s, "echo \"$# [$1] [$2]\"; exit 7");

	text = read_all(fd);
	assert_string_equal(text, "2 [a b] []\n");
	wait_end(s, 10000);
	assert_false(s->timed_out);
	assert_int_equal(s->ended, 1);
	assert_true(WIFEXITED(s->status));
	assert_int_equal(WEXITSTATUS(s->status), 7);
}

static void inherits_little(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text = NULL, *want = NULL;
	int extra = open("/dev/zero", O_RDONLY); /* inheritable, and opened after the fork */
	int fd;

	assert_true(extra >= 0);
	/* ls's own descriptor of the folder is 3 */
	fd = start(s, "cmp - /etc/hostname && echo \"${NOTIFY_SOCKET-none} $LC_ALL\"; "
		      "echo $(ls /proc/self/fd); grep -E 'Sig(Blk|Ign)' /proc/self/status; "
		      "read -r _ _ _ _ _ sid _ </proc/$$/stat; [ $sid = $$ ] && echo leader; "
		      "cat /proc/self/oom_score_adj");
	text = read_all(fd);
	assert_string_equal(text, "none C\n0 1 2 3\n"
				  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
				  "leader\n0\n");
	wait_end(s, 10000);
	assert_int_equal(s->ended, 1);
	(void)close(extra);
}

static void no_such_program(void **state)
{
	static const char *const argv[] = { "/nonexistent", NULL };
	static const char *const relative[] = { "sh", NULL };
	struct scene *s = *state;
	struct gs_err err = { 0 };

	assert_int_equal(spawner_run(s->spawner, argv, 0, 1, ended, s, &s->child, &err), 0);
	wait_end(s, 10000);
	assert_int_equal(s->ended, 1);
	assert_int_equal(WEXITSTATUS(s->status), 127);
	assert_int_equal(spawner_run(s->spawner, relative, 0, 1, ended, s, &s->child, &err),
			 -EINVAL);
}

static void kill_takes_the_group(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text = NULL;
	/* Both hold the pipe: its end says that both are gone. */
	int fd = start(s, "trap '' TERM; sleep 600 & sleep 600");

	wait_end(s, 200);
	assert_true(s->timed_out);
	spawner_kill(s->spawner, s->child);
	wait_end(s, 10000);
	assert_int_equal(s->ended, 1);
	assert_true(WIFSIGNALED(s->status));
	assert_int_equal(WTERMSIG(s->status), SIGKILL);
	text = read_all(fd);
	assert_string_equal(text, "");
}

/* A command that leaves something running does so once. */
static void an_end_takes_the_group(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text = NULL;
	int fd = start(s, "sleep 600 & exit 0");

	wait_end(s, 10000);
	assert_int_equal(s->ended, 1);
	assert_int_equal(s->status, 0);
	text = read_all(fd);
	assert_string_equal(text, "");
}

static void many_at_once(void **state)
{
	static const char *const argv[] = { "/bin/sleep", "600", NULL };
	struct spawner_child *child[SPAWNER_MAX], *more;
	struct scene *s = *state;
	struct gs_err err = { 0 };

	for (int i = 0; i < SPAWNER_MAX; i++)
		if (spawner_run(s->spawner, argv, 0, 1, ended, s, &child[i], &err) < 0)
			fail_msg("%s", err.msg);
	assert_int_equal(spawner_run(s->spawner, argv, 0, 1, ended, s, &more, &err), -EAGAIN);
	for (int i = 0; i < SPAWNER_MAX; i++)
		spawner_kill(s->spawner, child[i]);
	while (s->ended < SPAWNER_MAX && !s->timed_out)
		wait_end(s, 20000);
	assert_int_equal(s->ended, SPAWNER_MAX);
	/* and their places are free again */
	(void)close(start(s, "exit 3"));
	wait_end(s, 10000);
	assert_int_equal(WEXITSTATUS(s->status), 3);
}

static void too_long(void **state)
{
	char word[8000];
	const char *const argv[] = { "/bin/true", word, NULL };
	struct scene *s = *state;
	struct gs_err err = { 0 };

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(spawner_run(s->spawner, argv, 0, 1, ended, s, &s->child, &err), -E2BIG);
}

/* The only other process in our group whose name is the spawner's. */
static pid_t spawner_pid(void)
{
	char path[64], line[256];
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char name[32];
		int pid, ppid;
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", entry->d_name);
		f = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fgets(line, sizeof(line), f) &&
		    sscanf(line, "%d (%31[^)]) %*c %d", &pid, name, &ppid) == 3 &&
		    ppid == getpid() && strcmp(name, "gpushare-spawn") == 0)
			found = pid;
		(void)fclose(f);
	}
	(void)closedir(dir);
	return found;
}

static void died(void *arg)
{
	struct scene *s = arg;

	assert_int_equal(s->ended, 1); /* those of the children come first */
	s->died++;
}

static void dies_with_its_children(void **state)
{
	struct scene *s = *state;
	struct gs_err err = { 0 };
	static const char *const argv[] = { "/bin/true", NULL };
	cleanup_free char *text = NULL;
	int fd = start(s, "echo here; exec sleep 600");
	char here[5];
	pid_t pid;

	spawner_on_death(s->spawner, died, s);
	assert_int_equal(read(fd, here, 5), 5); /* it is up */
	pid = spawner_pid();
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGTERM), 0); /* not its affair */
	wait_end(s, 100);
	assert_true(s->timed_out);
	assert_int_equal(kill(pid, SIGKILL), 0);
	wait_end(s, 10000);
	assert_int_equal(s->ended, 1);
	assert_int_equal(s->died, 1);
	assert_int_equal(WTERMSIG(s->status), SIGKILL);
	text = read_all(fd);
	assert_string_equal(text, "");
	assert_int_equal(spawner_run(s->spawner, argv, 0, 1, ended, s, &s->child, &err), -EPIPE);
}

/* As kill -9 of the agent: nothing of it is left. */
static void dies_with_the_agent(void **state)
{
	cleanup_free char *text = NULL;
	int out[2];
	pid_t pid;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		static const char *const argv[] = { "/bin/sh", "-c",
						    "sleep 600 & echo up; sleep 600", NULL };
		struct spawner_child *child;
		struct spawner *spawner;

		(void)close(out[0]);
		if (spawner_start(&spawner, NULL) < 0 ||
		    spawner_run(spawner, argv, 0, out[1], ended, NULL, &child, NULL) < 0)
			_exit(1);
		(void)close(out[1]);
		for (;;)
			(void)pause();
	}
	(void)close(out[1]);
	{
		char up[3];

		assert_int_equal(read(out[0], up, 3), 3);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	text = read_all(out[0]);
	assert_string_equal(text, "");
}

static void free_kills(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text = NULL;
	int fd = start(s, "exec sleep 600");

	spawner_free(gs_steal(s->spawner));
	wait_end(s, 100);
	assert_int_equal(s->ended, 0);
	text = read_all(fd);
	assert_string_equal(text, "");
}

static void none(void **state)
{
	spawner_free(NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(args_output_and_status),
		TEST(inherits_little),
		TEST(no_such_program),
		TEST(kill_takes_the_group),
		TEST(an_end_takes_the_group),
		TEST(many_at_once),
		TEST(too_long),
		TEST(dies_with_its_children),
		cmocka_unit_test(dies_with_the_agent),
		TEST(free_kills),
		cmocka_unit_test(none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
