// SPDX-License-Identifier: Apache-2.0
/* Lengths of time: read, written, refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/duration.h"

static void test_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {
		{ "0", 0 },	      { "0s", 0 },	     { "1ms", 1 },
		{ "30s", 30000 },     { "10m", 600000 },     { "1h30m", 5400000 },
		{ "1h1ms", 3600001 }, { "90s", 90000 },	     { "1h2m3s4ms", 3723004 },
		{ "007m", 420000 },   { "100h", 360000000 },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(good); i++) {
		uint64_t ms = 77;

		assert_int_equal(gs_duration_ms(good[i].text, UINT64_MAX, &ms, NULL), 0);
		assert_int_equal(ms, good[i].ms);
	}
}

static void test_refuse(void **state)
{
	static const char *const bad[] = { "",	   "10",    "s",      "-1s",   "+1s",
					   "1.5s", " 1s",   "1s ",    "1 s",   "1d",
					   "1S",   "30m1h", "1m1m",   "1ms1s", "00",
					   "1h30", "1mss",  "1s\n1m", "0x1s" };
	uint64_t ms = 77;
	struct gs_err err;

	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++)
		assert_int_equal(gs_duration_ms(bad[i], UINT64_MAX, &ms, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "0x1s"));
	assert_int_equal(ms, 77);
}

static void test_range(void **state)
{
	static const char *const large[] = { "1h1ms", "99999999999999999999s",
					     "18446744073709551615h", "18446744073709551616ms",
					     "1h18446744073709551615ms" };
	struct gs_err err;
	uint64_t ms = 77;

	for (size_t i = 0; i < GS_ARRAY_SIZE(large); i++)
		assert_int_equal(gs_duration_ms(large[i], 3600000, &ms, &err), -ERANGE);
	assert_non_null(strstr(err.msg, "more than 1h"));
	assert_int_equal(ms, 77);
	assert_int_equal(gs_duration_ms("1h", 3600000, &ms, &err), 0);
	assert_int_equal(gs_duration_ms("18446744073709551615ms", UINT64_MAX, &ms, &err), 0);
	assert_true(ms == UINT64_MAX);
	assert_int_equal(gs_duration_ms("18446744073709551616ms", UINT64_MAX, &ms, &err), -ERANGE);
}

static void test_write(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text, *brief;
	} good[] = {
		{ 0, "0", "0s" },
		{ 999, "999ms", "0s" },
		{ 1500, "1s500ms", "1s" },
		{ 30000, "30s", "30s" },
		{ 725500, "12m5s500ms", "12m5s" },
		{ 3600000, "1h", "1h" },
		{ 11525000, "3h12m5s", "3h12m" },
	};
	char buf[GS_DURATION_MAX];
	uint64_t ms;

	for (size_t i = 0; i < GS_ARRAY_SIZE(good); i++) {
		assert_string_equal(gs_duration_text(good[i].ms, buf), good[i].text);
		assert_int_equal(gs_duration_ms(buf, UINT64_MAX, &ms, NULL), 0);
		assert_int_equal(ms, good[i].ms);
		assert_string_equal(gs_duration_short(good[i].ms, buf), good[i].brief);
	}
	(void)gs_duration_text(UINT64_MAX, buf);
	assert_int_equal(gs_duration_ms(buf, UINT64_MAX, &ms, NULL), 0);
	assert_true(ms == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
