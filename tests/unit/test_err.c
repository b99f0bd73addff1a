// SPDX-License-Identifier: Apache-2.0
/* Error values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/err.h"

static void set_gives_code_and_words(void **state)
{
	struct gs_err err = { 0 };

	assert_int_equal(gs_err_set(&err, EINVAL, "%s is %d", "it", 3), -EINVAL);
	assert_int_equal(err.code, EINVAL);
	assert_string_equal(err.msg, "it is 3");
	assert_int_equal(gs_err_errno(&err, ENOENT, "open %s", "/x"), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.msg, "open /x: No such file or directory");
}

static void prefixes(void **state)
{
	struct gs_err err = { 0 };

	(void)gs_err_set(&err, EACCES, "inner");
	assert_int_equal(gs_err_prefix(&err, "outer %d", 1), -EACCES);
	assert_int_equal(gs_err_prefix(&err, "top"), -EACCES);
	assert_string_equal(err.msg, "top: outer 1: inner");
	assert_int_equal(err.code, EACCES);
}

static void nobody_listens(void **state)
{
	assert_int_equal(gs_err_set(NULL, EPERM, "x"), -EPERM);
	assert_int_equal(gs_err_errno(NULL, EIO, "x"), -EIO);
	assert_true(gs_err_prefix(NULL, "x") < 0);
}

/* Names from pods reach terminals and logs through messages. */
static void always_one_line(void **state)
{
	struct gs_err err = { 0 };

	(void)gs_err_set(&err, EINVAL, "%s", "a\nb\r\x1b[31m\x7f");
	assert_string_equal(err.msg, "a?b??[31m?");
	(void)gs_err_errno(&err, EINVAL, "%s", "a\nb");
	assert_string_equal(err.msg, "a?b: Invalid argument");
	(void)gs_err_prefix(&err, "%s", "c\td");
	assert_string_equal(err.msg, "c?d: a?b: Invalid argument");
}

static void cuts_what_is_too_long(void **state)
{
	char text[GS_ERR_MAX * 2];
	struct gs_err err = { 0 };

	memset(text, 't', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(gs_err_set(&err, EINVAL, "%s", text), -EINVAL);
	assert_int_equal(strlen(err.msg), GS_ERR_MAX - 1);
	assert_int_equal(gs_err_errno(&err, EIO, "%s", text), -EIO);
	assert_int_equal(strlen(err.msg), GS_ERR_MAX - 1);
	(void)gs_err_set(&err, EIO, "inner");
	assert_int_equal(gs_err_prefix(&err, "%s", text), -EIO);
	assert_int_equal(strlen(err.msg), GS_ERR_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_gives_code_and_words), cmocka_unit_test(prefixes),
		cmocka_unit_test(nobody_listens),	    cmocka_unit_test(always_one_line),
		cmocka_unit_test(cuts_what_is_too_long),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
