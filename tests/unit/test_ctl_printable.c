// SPDX-License-Identifier: Apache-2.0
/* What gpusharectl lets through to a terminal, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"

static void expect(const char *text, const char *shown)
{
	cleanup_free char *copy = gs_strdup(text);

	assert_string_equal(ctl_printable(copy), shown);
}

static void what_people_write_stays(void **state)
{
	expect("", "");
	expect("team-a/dev/main ~!\"'", "team-a/dev/main ~!\"'");
	expect("\xc3\xa4 \xc2\xa0 \xe2\x82\xac \xe4\xb8\xad \xf0\x9f\x98\x80",
	       "\xc3\xa4 \xc2\xa0 \xe2\x82\xac \xe4\xb8\xad \xf0\x9f\x98\x80");
	expect("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
}

static void orders_to_a_terminal_do_not(void **state)
{
	expect("a\x1b[31m\n\t\r\x07\x7f z", "a?[31m????? z");
	/* CSI and OSC of C1: as two bytes of UTF-8, and as the one byte of older terminals. */
	expect("\xc2\x9b"
	       "1m\xc2\x9d",
	       "??1m??");
	expect("\x9b"
	       "1m",
	       "?1m");
	/* The last of C1. */
	expect("\xc2\x9f", "??");
}

static void nor_what_turns_the_order_round(void **state)
{
	expect("a\xe2\x80\xae"
	       "b\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c",
	       "a???b???????????");
	/* Their neighbours are letters and signs like others. */
	expect("\xe2\x80\xb0\xe2\x81\xaa\xe2\x80\x90", "\xe2\x80\xb0\xe2\x81\xaa\xe2\x80\x90");
}

static void nor_what_is_no_utf8(void **state)
{
	expect("\xff\xfe\xc3", "???");
	expect("\xc3z", "?z");
	/* Cut in the middle. */
	expect("a\xe2\x82", "a??");
	expect("\xf0\x9f\x98", "???");
	/* Longer than it need be: ESC, and a slash. */
	expect("\xc0\x9b\xe0\x80\x9b\xc0\xaf", "???????");
	/* Beyond the last character. */
	expect("\xf4\x90\x80\x80", "????");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_people_write_stays),
		cmocka_unit_test(orders_to_a_terminal_do_not),
		cmocka_unit_test(nor_what_turns_the_order_round),
		cmocka_unit_test(nor_what_is_no_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
