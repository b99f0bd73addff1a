// SPDX-License-Identifier: Apache-2.0
/* Errors: one record in the caller's log file in runc's shape, and one line on stderr. */
#include <fcntl.h>
#include <jansson.h>
#include <regex.h>
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

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/report.h"
#include "tests/unit/tmpdir.h"

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z"

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

/* Reports with stderr going into the file "stderr" of @dir; gives what was written there. */
static char *report(const char *dir, const char *log, const char *format, const char *msg)
{
	const struct command cmd = { .log = log, .log_format = format };
	int saved = dup(STDERR_FILENO);
	int fd = open(tmpdir_path(dir, "stderr"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && fd >= 0);
	(void)fflush(stderr);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	report_error(&cmd, msg);
	(void)fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(fd);
	(void)close(saved);
	return tmpdir_read(dir, "stderr");
}

static void expect_match(const char *text, const char *pattern)
{
	regex_t regex;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&regex, text, 0, NULL, 0) != 0)
		fail_msg("%s does not match %s", text, pattern);
	regfree(&regex);
}

static void json_as_runc_writes_it(void **state)
{
	cleanup_free char *log = gs_strdup(tmpdir_path(*state, "log.json"));
	cleanup_free char *err = report(*state, log, "json", "source a/b/c is \"gone\"\\");
	cleanup_free char *text = tmpdir_read(*state, "log.json");

	assert_string_equal(err, "gpushare-runtime: source a/b/c is \"gone\"\\\n");
	expect_match(text, "^\\{\"level\":\"error\",\"msg\":\"gpushare: source a/b/c is "
			   "\\\\\"gone\\\\\"\\\\\\\\\",\"time\":\"" TIME "\"\\}\n$");
}

static void text_as_runc_writes_it(void **state)
{
	static const char *const formats[] = { "text", NULL, "other" };
	cleanup_free char *log = gs_strdup(tmpdir_path(*state, "log"));

	for (size_t i = 0; i < GS_ARRAY_SIZE(formats); i++) {
		cleanup_free char *err = report(*state, log, formats[i], "it is \"so\"");
		cleanup_free char *text = tmpdir_read(*state, "log");

		expect_match(text, "^time=\"" TIME "\" level=error msg=\"gpushare: it is "
				   "\\\\\"so\\\\\"\"\n$");
		assert_int_equal(unlink(log), 0);
	}
}

/* runc's own lines may stand there already, and more than one of ours may come. */
static void appends(void **state)
{
	cleanup_free char *log = gs_strdup(tmpdir_path(*state, "log.json"));
	cleanup_free char *text = NULL;
	size_t lines = 0;

	tmpdir_write(*state, "log.json", "{\"level\":\"info\"}\n");
	free(report(*state, log, "json", "one"));
	free(report(*state, log, "json", "two"));
	text = tmpdir_read(*state, "log.json");
	assert_int_equal(strncmp(text, "{\"level\":\"info\"}\n{\"level\":\"error\"", 33), 0);
	assert_true(strstr(text, "one") < strstr(text, "two"));
	for (char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 3);
}

/* crun's --log may begin with a driver. */
static void log_drivers(void **state)
{
	static const char *const none[] = { "syslog:x", "journald:x", "", NULL,
					    "/nonexistent/folder/log" };
	cleanup_free char *log = gs_asprintf("file:%s", tmpdir_path(*state, "log"));
	char cwd[4096];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(*state), 0);
	for (size_t i = 0; i < GS_ARRAY_SIZE(none); i++) {
		cleanup_free char *err = report(*state, none[i], "json", "words");

		assert_string_equal(err, "gpushare-runtime: words\n");
	}
	assert_int_equal(tmpdir_count(*state, "."), 1); /* stderr alone */
	free(report(*state, log, "json", "words"));
	assert_true(tmpdir_has(*state, "log"));
	assert_int_equal(chdir(cwd), 0);
}

/* What containerd cannot parse it does not show: whatever is in a message, the record is JSON. */
static void always_json(void **state)
{
	static const char *const msgs[] = {
		"",
		"tab\there",
		"\xc3\xa9\xf0\x9f\x98\x80",
		"bundle /srv/\xff\xfe/b", /* a path is any bytes */
		"cut in the middle of \xe2\x82",
		"\xed\xa0\x80 surrogate",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(msgs); i++) {
		cleanup_free char *log = gs_strdup(tmpdir_path(*state, "log.json"));
		cleanup_free char *text = NULL;
		cleanup_json json_t *json = NULL;

		free(report(*state, log, "json", msgs[i]));
		text = tmpdir_read(*state, "log.json");
		json = json_loads(text, 0, NULL);
		if (!json)
			fail_msg("%s", text);
		assert_int_equal(strncmp(json_string_value(json_object_get(json, "msg")),
					 "gpushare: ", 10),
				 0);
		assert_int_equal(unlink(log), 0);
	}
}

static void long_messages(void **state)
{
	cleanup_free char *log = gs_strdup(tmpdir_path(*state, "log.json"));
	cleanup_json json_t *json = NULL;
	cleanup_free char *text = NULL;
	char msg[GS_ERR_MAX];

	memset(msg, 'm', sizeof(msg) - 1);
	msg[sizeof(msg) - 1] = '\0';
	free(report(*state, log, "json", msg));
	text = tmpdir_read(*state, "log.json");
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	/* nothing of it is lost behind our own word */
	assert_string_equal(json_string_value(json_object_get(json, "msg")) + 10, msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(json_as_runc_writes_it, setup, teardown),
		cmocka_unit_test_setup_teardown(text_as_runc_writes_it, setup, teardown),
		cmocka_unit_test_setup_teardown(appends, setup, teardown),
		cmocka_unit_test_setup_teardown(log_drivers, setup, teardown),
		cmocka_unit_test_setup_teardown(always_json, setup, teardown),
		cmocka_unit_test_setup_teardown(long_messages, setup, teardown),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
