// SPDX-License-Identifier: Apache-2.0
/* Kubernetes quantities: the grammar, rounding up, and what does not fit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/quantity.h"

static void expect_milli(const char *text, int64_t want)
{
	struct gs_err err = { 0 };
	int64_t got = -1;
	int r = gs_quantity_milli(text, &got, &err);

	if (r != 0 || got != want)
		fail_msg("%s: %d, %lld (%s)", text, r, (long long)got, err.msg);
}

static void expect_units(const char *text, int64_t want)
{
	struct gs_err err = { 0 };
	int64_t got = -1;
	int r = gs_quantity_units(text, &got, &err);

	if (r != 0 || got != want)
		fail_msg("%s: %d, %lld (%s)", text, r, (long long)got, err.msg);
}

static void expect_code(const char *text, int milli, int units)
{
	struct gs_err err = { 0 };
	int64_t got = -7;
	int r = gs_quantity_milli(text, &got, &err);

	if (r != milli || (r < 0 && (got != -7 || err.code != -r || !err.msg[0])))
		fail_msg("%s: %d in thousandths", text, r);
	got = -7;
	r = gs_quantity_units(text, &got, NULL);
	if (r != units || (r < 0 && got != -7))
		fail_msg("%s: %d in units", text, r);
}

static void plain_numbers(void **state)
{
	expect_milli("0", 0);
	expect_milli("2", 2000);
	expect_milli("+2", 2000);
	expect_milli("-0", 0);
	expect_milli("0.5", 500);
	expect_milli(".5", 500);
	expect_milli("5.", 5000);
	expect_milli("1.0", 1000);
	expect_milli("0001.2500", 1250);
	expect_units("0000000000000000000000000000000007", 7);
}

static void decimal_suffixes(void **state)
{
	expect_milli("1500m", 1500);
	expect_milli("1m", 1);
	expect_milli("2k", 2000000);
	expect_units("2k", 2000);
	expect_units("3M", 3000000);
	expect_units("3G", 3000000000);
	expect_units("3T", INT64_C(3000000000000));
	expect_units("3P", INT64_C(3000000000000000));
	expect_units("3E", INT64_C(3000000000000000000));
	expect_units("1.5G", 1500000000);
	expect_milli("1000u", 1);
	expect_milli("2000000n", 2);
	/* In memory limits too: the kubelet knows "128974848000m". */
	expect_units("128974848000m", 128974848);
}

static void binary_suffixes(void **state)
{
	expect_units("1Ki", 1024);
	expect_units("512Mi", 536870912);
	expect_units("1Gi", 1073741824);
	expect_units("1Ti", INT64_C(1099511627776));
	expect_units("1Pi", INT64_C(1125899906842624));
	expect_units("1Ei", INT64_C(1152921504606846976));
	expect_units("1.5Gi", 1610612736);
	expect_units(".5Ki", 512);
	expect_milli("1Ki", 1024000);
}

static void exponents(void **state)
{
	expect_units("1e3", 1000);
	expect_units("1E3", 1000);
	expect_units("12e+2", 1200);
	expect_units("1200e-2", 12);
	expect_milli("1e-3", 1);
	expect_units("1.5e1", 15);
	expect_units("1e0", 1);
	expect_units("1e00000000000000000000002", 100);
	/* A capital E alone is exa. */
	expect_units("1E", INT64_C(1000000000000000000));
}

static void rounds_up(void **state)
{
	expect_milli("0.1m", 1);
	expect_milli("1n", 1);
	expect_milli("1.0001", 1001);
	expect_milli("1500001u", 1501);
	expect_units("1m", 1);
	expect_units("1001m", 2);
	expect_units("1000m", 1);
	expect_units("0.0000000000000000000000000001", 1);
	expect_units("1e-99999999999999999999", 1);
	expect_milli("0e-5", 0);
	expect_units("0.1Ki", 103);
	/* 0.125 KiB is 128 bytes and not a bit more. */
	expect_units("0.125Ki", 128);
}

static void exact_where_it_is_tight(void **state)
{
	expect_units("9223372036854775807", INT64_MAX);
	expect_units("9223372036854775807000m", INT64_MAX);
	expect_units("9223372036854775806001m", INT64_MAX);
	expect_milli("9223372036854775.807", INT64_MAX);
	expect_milli("9223372036854775807m", INT64_MAX);
	expect_units("12345678901234567890123n", INT64_C(12345678901235));
	expect_milli("12345678901234567890123n", INT64_C(12345678901234568));
	expect_units("7.999999999999999999Ei", INT64_MAX);
	expect_code("7.9999999999999999999Ei", -ERANGE, -ERANGE);
	/* 0.1 EiB: 115292150460684697.6 */
	expect_units("0.1Ei", INT64_C(115292150460684698));
	expect_units("0.00000000000000000086736173798840354720596224069595336914062500Ei", 1);
	expect_units("0.00000000000000000086736173798840354720596224069595336914062501Ei", 2);
}

static void too_large(void **state)
{
	expect_code("9223372036854775808", -ERANGE, -ERANGE);
	expect_code("9223372036854775807", -ERANGE, 0);
	expect_code("9223372036854775807.1", -ERANGE, -ERANGE);
	expect_code("9223372036854775.8071", -ERANGE, 0);
	expect_code("8Ei", -ERANGE, -ERANGE);
	expect_code("10E", -ERANGE, -ERANGE);
	expect_code("1e19", -ERANGE, -ERANGE);
	expect_code("1e99999999999999999999999", -ERANGE, -ERANGE);
	expect_code("10000000000000000000", -ERANGE, -ERANGE);
	/* Nothing times anything is nothing. */
	expect_units("0e99999999999", 0);
	expect_units("0Ei", 0);
}

static void negative(void **state)
{
	expect_code("-1", -EINVAL, -EINVAL);
	expect_code("-1m", -EINVAL, -EINVAL);
	expect_code("-9e99", -EINVAL, -EINVAL);
	expect_code("-0.000001n", -EINVAL, -EINVAL);
}

static void malformed(void **state)
{
	static const char *const bad[] = {
		"",    " ",	"+",	     "-",    ".",    "m",     "Ki",    "e3",  "+.",  "1 ",
		" 1",  "1\n",	"--1",	     "+-1",  "1..",  "1.1.1", "1.1.M", "1x",  "1mm", "1K",
		"1ki", "1mi",	"1i",	     ".5i",  "1Kii", "1Kib",  "1KB",   "1Mb", "1e",  "1e+",
		"1e-", "1e1.5", "1e1m",	     "1ee1", "1E+x", "0x10",  "1,5",   "NaN", "inf", "1+1",
		"1Zi", "1Y",	"1\xc2\xb5", "1ei",  "1Eii", "5E3k",  "1 Gi",  "one",
	};
	char text[400];

	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++)
		expect_code(bad[i], -EINVAL, -EINVAL);
	/* As long as it may be, and longer: refused, not cut. */
	memset(text, '0', sizeof(text));
	text[127] = '7';
	text[128] = '\0';
	expect_units(text, 7);
	text[128] = '0';
	text[399] = '\0';
	expect_code(text, -EINVAL, -EINVAL);
	memset(text, '9', 128);
	(void)strcpy(text + 128, "Ei");
	expect_code(text, -ERANGE, -ERANGE);
}

static void message_quotes(void **state)
{
	struct gs_err err;
	int64_t n;

	assert_int_equal(gs_quantity_milli("4 cores\x1b", &n, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "\"4 cores?\" is no quantity"));
	assert_int_equal(gs_quantity_milli("99E", &n, &err), -ERANGE);
	assert_non_null(strstr(err.msg, "\"99E\" is too large"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_numbers),   cmocka_unit_test(decimal_suffixes),
		cmocka_unit_test(binary_suffixes), cmocka_unit_test(exponents),
		cmocka_unit_test(rounds_up),	   cmocka_unit_test(exact_where_it_is_tight),
		cmocka_unit_test(too_large),	   cmocka_unit_test(negative),
		cmocka_unit_test(malformed),	   cmocka_unit_test(message_quotes),
	};

	return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
