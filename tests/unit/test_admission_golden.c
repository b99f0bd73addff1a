// SPDX-License-Identifier: Apache-2.0
/* Whole questions to the admission webhook, and its answers: tests/k8s/admission/. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "controller/admission.h"
#include "tests/unit/patches.h"

#define CASES "tests/k8s/admission"

static json_t *load(const char *name, const char *file, bool required)
{
	cleanup_free char *path = gs_asprintf(CASES "/%s/%s", name, file);
	struct gs_err err = { 0 };
	json_t *json = NULL;

	if (!required && access(path, F_OK) < 0)
		return NULL;
	if (gs_json_read(AT_FDCWD, path, 0, ADMISSION_MAX, &json, &err) < 0)
		fail_msg("%s", err.msg);
	return json;
}

/* Asks; gives what of the answer there is to compare, with the patch in plain text. */
static json_t *ask(const char *name, const struct admission_policy *policy, const json_t *space,
		   const json_t *review)
{
	cleanup_free char *text = json_dumps(review, 0);
	cleanup_json json_t *answer = NULL;
	struct gs_err err = { 0 };
	const json_t *response;
	json_t *ret = json_object(), *patch;

	if (admission_review(policy, space, text, strlen(text), &answer, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	response = json_object_get(answer, "response");
	json_object_set(ret, "allowed", json_object_get(response, "allowed"));
	patch = patch_decode(json_string_value(json_object_get(response, "patch")));
	if (patch)
		json_object_set_new(ret, "patch", patch);
	if (json_object_get(response, "warnings"))
		json_object_set(ret, "warnings", json_object_get(response, "warnings"));
	if (json_object_get(response, "status"))
		json_object_set(ret, "message",
				json_object_get(json_object_get(response, "status"), "message"));
	return ret;
}

static void expect(const char *name, const json_t *got, const json_t *want)
{
	cleanup_free char *text = json_dumps(got, JSON_INDENT(2) | JSON_SORT_KEYS);

	if (!json_equal(got, want))
		fail_msg("%s: the answer is\n%s", name, text);
}

static void run(const char *name, const struct admission_policy *policy)
{
	cleanup_json json_t *review = load(name, "review.json", true);
	cleanup_json json_t *want = load(name, "expected.json", true);
	cleanup_json json_t *space = load(name, "namespace.json", false);
	cleanup_json json_t *got = ask(name, policy, space, review);
	const json_t *patch = json_object_get(want, "patch");

	expect(name, got, want);
	if (patch) {
		cleanup_json json_t *again = NULL;
		cleanup_json json_t *nothing = json_pack("{s:b}", "allowed", 1);

		patch_apply(json_object_get(json_object_get(review, "request"), "object"), patch);
		again = ask(name, policy, space, review);
		expect(name, again, nothing);
	}
}

static void every_case(void **state)
{
	cleanup_dir DIR *dir = opendir(CASES);
	struct gs_strv dirs = { 0 };
	struct gs_catalogue cat = { 0 };
	struct admission_policy policy;
	struct gs_err err = { 0 };
	struct gs_strv names = { 0 };
	struct dirent *entry;

	gs_strv_add(&dirs, "vendors");
	if (gs_catalogue_load(&cat, &dirs, &err) < 0)
		fail_msg("%s", err.msg);
	admission_policy_init(&policy);
	admission_policy_cards(&policy, &cat);
	gs_strv_add(&policy.platform_users, "system:serviceaccount:platform:console");
	gs_strv_add(&policy.data_classes, "gpushare-data");
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			gs_strv_add(&names, entry->d_name);
	gs_strv_sort(&names);
	assert_true(names.n >= 20);
	for (size_t i = 0; i < names.n; i++)
		run(names.v[i], &policy);
	gs_strv_free(&names);
	gs_strv_free(&dirs);
	gs_catalogue_free(&cat);
	admission_policy_free(&policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case),
	};

	return cmocka_run_group_tests_name("admission_golden", tests, NULL, NULL);
}
