// SPDX-License-Identifier: Apache-2.0
/* agent/told.c: how often what goes wrong again and again is in the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/told.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "tests/unit/tmpdir.h"

static char *dir;
static uint64_t now_ms;

uint64_t __wrap_gs_boottime_ms(void);
uint64_t __wrap_gs_boottime_ms(void)
{
	return now_ms;
}

static int setup(void **state)
{
	dir = tmpdir_make();
	gs_log_open(GS_LOG_INFO, tmpdir_path(dir, "log"));
	now_ms = 1000;
	return 0;
}

static int teardown(void **state)
{
	gs_log_open(GS_LOG_INFO, NULL);
	tmpdir_remove(dir);
	return 0;
}

/* How many lines have that in them. */
static unsigned int lines(const char *text)
{
	cleanup_free char *all = tmpdir_read(dir, "log");
	unsigned int n = 0;

	for (const char *at = all; (at = strstr(at, text)); at += strlen(text))
		n++;
	return n;
}

static void look(struct told *told, const char *why)
{
	told_log(told, GS_LOG_ERROR, "can't look", NULL, NULL, why);
}

/* Five times a second, for an hour. */
static void the_same_is_told_now_and_then(void **state)
{
	struct told told = { 0 };

	for (int i = 0; i < 5 * 3600; i++, now_ms += 200)
		look(&told, "the module is being unloaded");
	assert_int_equal(lines("can't look"), 6);
	assert_int_equal(lines("\"times\":\"3000\""), 5);
	assert_int_equal(lines("\"why\":\"the module is being unloaded\""), 6);
}

static void what_differs_is_told(void **state)
{
	struct told told = { 0 };

	for (int i = 0; i < 10; i++) {
		look(&told, "a");
		look(&told, "b");
		told_log(&told, GS_LOG_WARN, "refused", "what", "a", "b");
		told_log(&told, GS_LOG_WARN, "refused", "what", "ab", "");
		told_log(&told, GS_LOG_WARN, "refused", "what", "a", NULL);
	}
	assert_int_equal(lines("can't look"), 2);
	assert_int_equal(lines("refused"), 3);
	assert_int_equal(lines("\"what\":\"a\",\"why\":\"b\""), 1);
	assert_int_equal(lines("times"), 0);
}

static void after_its_end_it_is_news(void **state)
{
	struct told told = { 0 };

	assert_false(told_over(&told, "can't look"));
	for (int i = 0; i < 3; i++) {
		look(&told, "a");
		look(&told, "b");
		told_log(&told, GS_LOG_WARN, "refused", "what", "a", "b");
		assert_true(told_over(&told, "can't look"));
		assert_false(told_over(&told, "can't look"));
	}
	assert_int_equal(lines("can't look"), 6);
	assert_int_equal(lines("refused"), 1);
}

/* More different ones than are remembered: the memory is bounded, and the latest are in it. */
static void the_oldest_is_forgotten(void **state)
{
	struct told told = { 0 };
	char why[16];

	for (int i = 0; i < TOLD_MAX; i++, now_ms++) {
		(void)snprintf(why, sizeof(why), "%d", i);
		look(&told, why);
	}
	look(&told, "0"); /* met a moment ago */
	now_ms++;
	look(&told, "more");
	assert_int_equal(lines("can't look"), TOLD_MAX + 1);
	look(&told, "0");
	assert_int_equal(lines("can't look"), TOLD_MAX + 1);
	look(&told, "1");
	assert_int_equal(lines("can't look"), TOLD_MAX + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_same_is_told_now_and_then, setup, teardown),
		cmocka_unit_test_setup_teardown(what_differs_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(after_its_end_it_is_news, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_is_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}
