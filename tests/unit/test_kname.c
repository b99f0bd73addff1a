// SPDX-License-Identifier: Apache-2.0
/* The tables of names: nothing is missing, nothing has two meanings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/kname.h"
#include "uapi/gpushare.h"

static void check(const char *(*name)(unsigned int), unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		assert_non_null(name(i));
		assert_string_not_equal(name(i), "?");
		assert_int_equal(strspn(name(i), "abcdefghijklmnopqrstuvwxyz0123456789-"),
				 strlen(name(i)));
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(name(i), name(k));
	}
	assert_string_equal(name(n), "?");
	assert_string_equal(name(UINT32_MAX), "?");
}

static void test_complete(void **state)
{
	check(gs_kname_state, __GS_STATE_MAX);
	check(gs_kname_cause, __GS_CAUSE_MAX);
	check(gs_kname_role, __GS_ROLE_MAX);
	check(gs_kname_kind, __GS_KIND_MAX);
	check(gs_kname_event, __GS_EV_MAX);
	check(gs_kname_attr, __GS_A_MAX);
	check(gs_kname_feature, gs_kname_features());
}

/* GS_F_ are macros without a last one, so the header itself is asked. */
static void test_features(void **state)
{
	FILE *header = fopen("include/uapi/gpushare.h", "re");
	unsigned int n = 0, bit;
	char line[512], name[64];

	assert_non_null(header);
	while (fgets(line, sizeof(line), header)) {
		if (sscanf(line, "#define GS_F_%63s (1 << %u)", name, &bit) != 2)
			continue;
		assert_true(bit < gs_kname_features());
		for (char *p = name; *p; p++)
			*p = *p == '_' ? '-' : (char)(*p | 0x20);
		assert_string_equal(gs_kname_feature(bit), name);
		assert_non_null(gs_kname_feature_lack(bit));
		n++;
	}
	(void)fclose(header);
	assert_int_equal(n, gs_kname_features());
	assert_null(gs_kname_feature_lack(n));
}

static void test_find(void **state)
{
	for (unsigned int i = 0; i < __GS_STATE_MAX; i++)
		assert_int_equal(gs_kname_find_state(gs_kname_state(i)), i);
	assert_int_equal(gs_kname_find_state("?"), -1);
	assert_int_equal(gs_kname_find_state(""), -1);
	assert_int_equal(gs_kname_find_state("Idle"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_features),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
