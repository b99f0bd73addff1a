// SPDX-License-Identifier: Apache-2.0
/* What gpusharectl doctor makes of the loaded kernel module's answer, with a kernel of our own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/kname.h"
#include "ctl/doctor.h"
#include "tests/unit/fakekernel.h"

static struct doctor d;

static int setup(void **state)
{
	fk_reset();
	d = (struct doctor){ .root = "/", .check = "module" };
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < d.n; i++) {
		free(d.findings[i].text);
		free(d.findings[i].mend);
	}
	free(d.findings);
	return 0;
}

static void expect_wrong(const char *text)
{
	assert_int_equal(d.n, 1);
	assert_int_equal(d.findings[0].state, DOCTOR_WRONG);
	if (!strstr(d.findings[0].text, text))
		fail_msg("%s, not %s", d.findings[0].text, text);
	assert_non_null(strstr(d.findings[0].mend, "modprobe -r gpushare && modprobe gpushare"));
}

static void another_abi_is_a_fault(void **state)
{
	fk.abi = GS_ABI_VERSION + 1;
	doctor_ask_module(&d);
	expect_wrong("ABI 2");
}

static void a_module_that_does_not_answer_is_a_fault(void **state)
{
	fk.loaded = false;
	doctor_ask_module(&d);
	expect_wrong("does not answer");
}

static uint32_t features;

/* A status with the features that the test says. */
static bool answer_features(int fd, const struct nlmsghdr *req)
{
	struct fk_msg msg;

	fk_start_answer(&msg, req, GS_CMD_STATUS);
	mnl_attr_put_u32(msg.nlh, GS_A_ABI, GS_ABI_VERSION);
	mnl_attr_put_strz(msg.nlh, GS_A_MODVERSION, GPUSHARE_VERSION);
	mnl_attr_put_u32(msg.nlh, GS_A_FEATURES, features);
	fk_send(fd, &msg);
	fk_ack(fd, req, 0, NULL, 0);
	return true;
}

static void a_kernel_that_has_all_is_no_finding(void **state)
{
	features = ~0U;
	fk.answer = answer_features;
	doctor_ask_module(&d);
	assert_int_equal(d.n, 0);
}

static void each_feature_that_is_lacking_is_a_note(void **state)
{
	features = ~(uint32_t)GS_F_HOOK_PERMANENT;
	fk.answer = answer_features;
	doctor_ask_module(&d);
	assert_int_equal(d.n, 1);
	assert_int_equal(d.findings[0].state, DOCTOR_NOTE);
	assert_non_null(strstr(d.findings[0].text, gs_kname_feature(2)));
	features = 0;
	doctor_ask_module(&d);
	assert_true(d.n > 4);
	for (size_t i = 0; i < d.n; i++)
		assert_int_equal(d.findings[i].state, DOCTOR_NOTE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_abi_is_a_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(a_module_that_does_not_answer_is_a_fault, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_kernel_that_has_all_is_no_finding, setup,
						teardown),
		cmocka_unit_test_setup_teardown(each_feature_that_is_lacking_is_a_note, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
