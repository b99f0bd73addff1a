// SPDX-License-Identifier: Apache-2.0
/* A program's own log: its lines, where they go, and that nothing waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "tests/unit/tmpdir.h"

static int setup(void **state)
{
	*state = tmpdir_make();
	return 0;
}

static int teardown(void **state)
{
	gs_log_open(GS_LOG_INFO, NULL);
	tmpdir_remove(*state);
	return 0;
}

/* The @n-th line of the log, which has @of lines. */
static json_t *line_of(const char *dir, int n, int of)
{
	cleanup_free char *text = tmpdir_read(dir, "log");
	char *rest = text, *line;
	json_t *found = NULL;
	json_error_t why;
	int i = 0;

	while ((line = strsep(&rest, "\n")) && *line)
		if (i++ == n) {
			found = json_loads(line, 0, &why);
			if (!found)
				fail_msg("%s: %s", line, why.text);
		}
	assert_int_equal(i, of);
	assert_non_null(found);
	return found;
}

static const char *str(const json_t *line, const char *name)
{
	const char *value = json_string_value(json_object_get(line, name));

	return value ? value : "(none)";
}

static void lines_and_levels(void **state)
{
	cleanup_json json_t *first = NULL, *second = NULL;

	gs_log_open(GS_LOG_WARN, tmpdir_path(*state, "log"));
	errno = EXDEV;
	gs_log(GS_LOG_WARN, "card %d: \"%s\"", 3, "a\nb\xff");
	gs_log(GS_LOG_INFO, "not this");
	gs_log_fields(GS_LOG_INFO, "nor this", "a", "b", NULL);
	gs_log(GS_LOG_ERROR, "x");
	assert_int_equal(errno, EXDEV);
	first = line_of(*state, 0, 2);
	second = line_of(*state, 1, 2);
	assert_string_equal(str(first, "msg"), "card 3: \"a\nb\xef\xbf\xbd\"");
	assert_string_equal(str(first, "level"), "warning");
	assert_string_equal(str(first, "program"), "test_log");
	assert_int_equal(json_integer_value(json_object_get(first, "pid")), getpid());
	assert_int_equal(strlen(str(first, "time")), strlen("2025-01-01T00:00:00.000000000Z"));
	assert_int_equal(json_object_size(first), 5);
	assert_string_equal(str(second, "level"), "error");
}

static void fields(void **state)
{
	cleanup_json json_t *line = NULL, *bare = NULL;

	gs_log_open(GS_LOG_INFO, tmpdir_path(*state, "log"));
	errno = EXDEV;
	gs_log_fields(GS_LOG_INFO, "holding %s", "holding", "a\"\\,}", "from", "IDLE", "to", "LENT",
		      "pod", NULL, "card", "nvidia-0\n", NULL);
	gs_log_fields(GS_LOG_ERROR, "bare", NULL);
	assert_int_equal(errno, EXDEV);
	line = line_of(*state, 0, 2);
	bare = line_of(*state, 1, 2);
	assert_string_equal(str(line, "msg"), "holding %s"); /* no format */
	assert_string_equal(str(line, "holding"), "a\"\\,}");
	assert_string_equal(str(line, "from"), "IDLE");
	assert_string_equal(str(line, "to"), "LENT");
	assert_string_equal(str(line, "card"), "nvidia-0\n");
	assert_int_equal(json_object_size(line), 9);
	assert_int_equal(json_object_size(bare), 5);
}

/* Runs @what with stderr being @fd. */
static void with_stderr(int fd, void (*what)(void))
{
	int saved = dup(STDERR_FILENO);

	assert_true(saved >= 0);
	(void)fflush(stderr);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	what();
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	(void)close(saved);
}

static void say_one(void)
{
	gs_log_fields(GS_LOG_INFO, "one", "a", "1", NULL);
}

static void say_many(void)
{
	for (int i = 0; i < 10000; i++)
		gs_log(GS_LOG_INFO, "line %d", i);
}

static int to_file(const char *dir)
{
	int fd = open(tmpdir_path(dir, "log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void nowhere_until_asked(void **state)
{
	cleanup_close int fd = to_file(*state);
	cleanup_free char *text = NULL;

	with_stderr(fd, say_one);
	/* a FIFO is no log: nobody may read it */
	assert_int_equal(mkfifo(tmpdir_path(*state, "fifo"), 0600), 0);
	gs_log_open(GS_LOG_INFO, tmpdir_path(*state, "fifo"));
	with_stderr(fd, say_one);
	text = tmpdir_read(*state, "log");
	assert_string_equal(text, "");
}

static void to_stderr(void **state)
{
	cleanup_close int fd = to_file(*state);
	cleanup_json json_t *line = NULL;

	gs_log_to_stderr(GS_LOG_INFO);
	with_stderr(fd, say_one);
	gs_log_to_stderr(GS_LOG_ERROR);
	with_stderr(fd, say_one); /* below its level */
	/* a file instead of it; stderr itself stays open */
	gs_log_open(GS_LOG_INFO, tmpdir_path(*state, "other"));
	assert_true(fcntl(STDERR_FILENO, F_GETFD) >= 0);
	with_stderr(fd, say_one);
	line = line_of(*state, 0, 1);
	assert_string_equal(str(line, "a"), "1");
	assert_true(tmpdir_has(*state, "other"));
}

/* Nobody reads: what comes is left out, and counted. */
static void never_waits(void **state)
{
	json_t *dropped = NULL;
	json_error_t why;
	char *line = NULL;
	size_t size = 0;
	long lines = 0, left_out = 0;
	int out[2];
	FILE *f;

	gs_log_to_stderr(GS_LOG_INFO);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	with_stderr(out[1], say_many);
	f = fdopen(out[0], "r");
	assert_non_null(f);
	assert_int_equal(fcntl(out[0], F_SETFL, O_NONBLOCK), 0);
	while (getline(&line, &size, f) > 0)
		lines++;
	assert_in_range(lines, 10, 9999);
	clearerr(f);
	with_stderr(out[1], say_one);
	assert_true(getline(&line, &size, f) > 0);
	dropped = json_loads(line, 0, &why);
	assert_non_null(dropped);
	left_out = (long)json_integer_value(json_object_get(dropped, "dropped"));
	assert_int_equal(lines + left_out, 10000);
	json_decref(dropped);
	with_stderr(out[1], say_one);
	assert_true(getline(&line, &size, f) > 0);
	assert_null(strstr(line, "dropped"));
	free(line);
	(void)fclose(f);
	(void)close(out[1]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nowhere_until_asked), TEST(lines_and_levels), TEST(fields),
		TEST(to_stderr),	   TEST(never_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
