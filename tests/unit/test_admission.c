// SPDX-License-Identifier: Apache-2.0
/* The admission webhook's answers to what no API server sends, and to hostile pods. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/admission.h"
#include "controller/patch.h"
#include "tests/unit/patches.h"

/* Everything that is read of a pod, in one. */
static const char everything[] =
	"{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u',"
	"'kind':{'kind':'Pod'},'operation':'%s','userInfo':{'username':'mallory'},'object':%s,"
	"'oldObject':%s}}";
static const char pod[] =
	"{'metadata':{'annotations':{'gpushare.k8s.io/share':'true',"
	"'gpushare.k8s.io/partition':'p'}},'spec':{'priorityClassName':'data',"
	"'resources':{'limits':{'hugepages-2Mi':'2Mi'}},'affinity':{'nodeAffinity':{"
	"'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':["
	"{'matchExpressions':[{'key':'a','operator':'Exists'}],'matchFields':[]}]}}},"
	"'hostPID':false,'containers':[{'name':'a','resources':{'limits':{'acme/npu':'1',"
	"'cpu':'1','memory':'1Gi'},'requests':{'acme/npu':'1','cpu':'1','memory':'1Gi'}},"
	"'securityContext':{'privileged':false,'capabilities':{'add':['CHOWN']}}},"
	"{'name':'b','resources':{'limits':{'gpushare/spot-gpu':'1','cpu':'1','memory':'1'}}}],"
	"'initContainers':[{'name':'c','restartPolicy':'Always','resources':{'requests':{"
	"'cpu':'2','memory':'1'}}}],'ephemeralContainers':[{'name':'d'}]}}";

static struct admission_policy policy;

static int setup(void **state)
{
	admission_policy_init(&policy);
	gs_strv_add(&policy.cards, "acme/npu*");
	gs_strv_add(&policy.slices, "acme/npu-*");
	gs_strv_add(&policy.data_classes, "data");
	return 0;
}

static int teardown(void **state)
{
	admission_policy_free(&policy);
	return 0;
}

static char *unquote(const char *text)
{
	char *s = gs_strdup(text);

	for (char *p = s; *p; p++)
		if (*p == '\'')
			*p = '"';
	return s;
}

static json_t *json(const char *text)
{
	cleanup_free char *s = unquote(text);
	json_t *v = json_loads(s, 0, NULL);

	assert_non_null(v);
	return v;
}

static json_t *question(const char *operation, const char *object, const char *before)
{
	cleanup_free char *text = gs_asprintf(everything, operation, object, before);

	return json(text);
}

static int ask(const json_t *review, json_t **ret)
{
	cleanup_free char *text = json_dumps(review, JSON_ENCODE_ANY);
	cleanup_json json_t *space = json("{'gpushare.k8s.io/partition':'p'}");
	struct gs_err err = { 0 };
	int r = admission_review(&policy, space, text, strlen(text), ret, &err);

	assert_true(r == 0 || (r == -EINVAL && err.msg[0]));
	return r;
}

/* Every answer is a whole one. */
static bool allowed(const json_t *answer)
{
	const json_t *response = json_object_get(answer, "response");
	const json_t *verdict = json_object_get(response, "allowed");
	const json_t *status = json_object_get(response, "status");

	assert_true(json_is_boolean(verdict));
	assert_true(json_is_string(json_object_get(response, "uid")));
	if (json_is_true(verdict)) {
		assert_null(status);
		return true;
	}
	assert_null(json_object_get(response, "patch"));
	assert_true(json_is_string(json_object_get(status, "message")));
	return false;
}

static bool may(const char *operation, const char *object, const char *before)
{
	cleanup_json json_t *review = question(operation, object, before);
	cleanup_json json_t *answer = NULL;

	assert_int_equal(ask(review, &answer), 0);
	return allowed(answer);
}

static void no_question(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		"1",
		"[]",
		"{}",
		"{'apiVersion':'admission.k8s.io/v1beta1','request':{'uid':'u'}}",
		"{'apiVersion':'admission.k8s.io/v1'}",
		"{'apiVersion':'admission.k8s.io/v1','request':null}",
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':'','operation':'CREATE',"
		"'kind':{'kind':'Pod'}}}",
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':'u','operation':'CREATE'}}",
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':'u','uid':'v',"
		"'operation':'DELETE','kind':{'kind':'Pod'}}}",
		"{'apiVersion':'admission.k8s.io/v1','request':{'uid':'u','operation':'DELETE',"
		"'kind':{'kind':'Pod'},'object':{'metadata':{'annotations':{'a':'b\\u0000'}}}}}",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		cleanup_free char *text = unquote(texts[i]);
		struct gs_err err = { 0 };
		json_t *answer = NULL;

		if (admission_review(&policy, NULL, text, strlen(text), &answer, &err) != -EINVAL ||
		    !err.msg[0] || answer)
			fail_msg("%s", texts[i]);
	}
}

static void too_long(void **state)
{
	cleanup_free char *text = gs_malloc(ADMISSION_MAX + 1);
	json_t *answer = NULL;

	memset(text, ' ', ADMISSION_MAX + 1);
	assert_int_equal(admission_review(&policy, NULL, text, ADMISSION_MAX + 1, &answer, NULL),
			 -EINVAL);
}

/* Far deeper than the stack. */
static void too_deep(void **state)
{
	cleanup_free char *text = gs_malloc(1000000);
	json_t *answer = NULL;

	memset(text, '[', 1000000);
	assert_int_equal(admission_review(&policy, NULL, text, 1000000, &answer, NULL), -EINVAL);
}

/*
 * Each value of @review, one after another, is replaced by each of some others: there must always
 * be an answer or an error, and what was patched must not be patched again.
 */
static size_t asked;

static void ask_twice(json_t *review)
{
	cleanup_json json_t *answer = NULL;
	json_t *patch;

	asked++;
	if (ask(review, &answer) < 0 || !allowed(answer))
		return;
	patch = patch_decode(
		json_string_value(json_object_get(json_object_get(answer, "response"), "patch")));
	if (patch) {
		cleanup_json json_t *copy = json_deep_copy(review);
		cleanup_json json_t *second = NULL;

		patch_apply(json_object_get(json_object_get(copy, "request"), "object"), patch);
		assert_int_equal(ask(copy, &second), 0);
		if (!allowed(second) ||
		    json_object_get(json_object_get(second, "response"), "patch")) {
			cleanup_free char *was = json_dumps(review, JSON_COMPACT);
			cleanup_free char *said = json_dumps(second, JSON_COMPACT);

			fail_msg("%s to the patched %s", said, was);
		}
		json_decref(patch);
	}
}

static void replace_each(json_t *review, json_t *at)
{
	static const char *const others[] = {
		"null", "true",	    "0",      "-1e300", "''",	 "'x'",
		"[]",	"[null]",   "{}",     "[{}]",	"[[1]]", "{'a':{'b':null}}",
		"'0'",	"'999999'", "'1e99'", "'-1'",	"'1m'",	 "'gpushare/spot-gpu'",
	};
	cleanup_json json_t *copy = json_copy(at);
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach(copy, key, v) {
		for (i = 0; i < GS_ARRAY_SIZE(others); i++) {
			cleanup_free char *text = unquote(others[i]);

			json_object_set_new(at, key, json_loads(text, JSON_DECODE_ANY, NULL));
			ask_twice(review);
		}
		json_object_del(at, key);
		ask_twice(review);
		json_object_set(at, key, v);
		replace_each(review, v);
	}
	if (!json_is_array(copy))
		return;
	json_array_foreach(copy, i, v) {
		for (size_t j = 0; j < GS_ARRAY_SIZE(others); j++) {
			cleanup_free char *text = unquote(others[j]);

			json_array_set_new(at, i, json_loads(text, JSON_DECODE_ANY, NULL));
			ask_twice(review);
		}
		json_array_set(at, i, v);
		replace_each(review, v);
	}
}

static void any_value_may_be_anything(void **state)
{
	cleanup_json json_t *create = question("CREATE", pod, "null");
	cleanup_json json_t *update = question("UPDATE", pod, pod);
	cleanup_json json_t *answer = NULL;

	assert_int_equal(ask(create, &answer), 0);
	assert_true(allowed(answer));
	assert_non_null(json_object_get(json_object_get(answer, "response"), "patch"));
	replace_each(create, create);
	replace_each(update, update);
	assert_true(asked > 1000);
}

static void huge_pods(void **state)
{
	cleanup_json json_t *review = question("CREATE", pod, "null");
	json_t *object = json_object_get(json_object_get(review, "request"), "object");
	json_t *list = json_object_get(json_object_get(object, "spec"), "ephemeralContainers");
	json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
	json_t *answer = NULL;

	for (int i = 0; i < 20000; i++) {
		cleanup_free char *key = gs_asprintf("gpushare.k8s.io/vcpu.x%d", i);

		json_object_set_new(annotations, key, json_string("1"));
	}
	assert_int_equal(ask(review, &answer), 0);
	assert_false(allowed(answer));
	json_decref(answer);
	json_object_clear(annotations);
	assert_int_equal(ask(review, &answer), 0);
	assert_true(allowed(answer));
	json_decref(answer);
	while (json_array_size(list) < 513)
		json_array_append_new(list, json("{'name':'e'}"));
	assert_int_equal(ask(review, &answer), 0);
	assert_false(allowed(answer));
	json_decref(answer);
}

/* A long, unprintable name or value makes no broken message. */
static void names_in_messages(void **state)
{
	cleanup_json json_t *review = question("CREATE", pod, "null");
	json_t *object = json_object_get(json_object_get(review, "request"), "object");
	cleanup_free char *name = gs_malloc(100001);
	json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
	cleanup_json json_t *answer = NULL;
	const char *message;

	for (size_t i = 0; i < 50000; i++)
		memcpy(name + 2 * i, "\xc3\xa4", 2);
	name[100000] = '\0';
	json_object_set_new(annotations, "gpushare.k8s.io/lend", json_string(name));
	assert_int_equal(ask(review, &answer), 0);
	assert_false(allowed(answer));
	message = json_string_value(json_object_get(
		json_object_get(json_object_get(answer, "response"), "status"), "message"));
	assert_true(strlen(message) < 1100);
	assert_non_null(strstr(message, "gpushare.k8s.io/lend"));
}

/* What kubectl shows: short lines that move no cursor, and not more of them than one reads. */
static void warnings_are_bounded(void **state)
{
	static const char *const operations[] = { "CREATE", "UPDATE" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(operations); i++) {
		cleanup_json json_t *review = question(operations[i], pod, pod);
		json_t *object = json_object_get(json_object_get(review, "request"), "object");
		json_t *annotations =
			json_object_get(json_object_get(object, "metadata"), "annotations");
		cleanup_json json_t *answer = NULL;
		const json_t *warnings;
		json_t *v;
		size_t j;

		for (int k = 0; k < 1000; k++) {
			cleanup_free char *from = gs_asprintf(
				"gpushare.k8s.io/container-devices-from%s\x1b[2J\n\xc3\xa4%d%0200d",
				k % 2 ? "." : "", k, 0);
			cleanup_free char *near = gs_asprintf(
				"gpushare.k8s.io/container-device-from.\x1b[2J%d%0200d", k, 0);

			json_object_set_new(annotations, k % 3 ? from : near, json_string("x"));
		}
		assert_int_equal(ask(review, &answer), 0);
		assert_true(allowed(answer));
		warnings = json_object_get(json_object_get(answer, "response"), "warnings");
		assert_int_equal(json_array_size(warnings), 6);
		json_array_foreach(warnings, j, v) {
			const char *text = json_string_value(v);

			/* of what is longer the API server cuts the end off */
			assert_in_range(strlen(text), 1, 256);
			for (; *text; text++)
				assert_in_range(*text, 0x20, 0x7e);
		}
		assert_string_equal(json_string_value(json_array_get(warnings, 5)),
				    "gpushare: 995 more");
	}
}

static void keys_of_a_name_too_long(void **state)
{
	static const char format[] =
		"{'spec':{'priorityClassName':'data','containers':[{'name':'a','resources':{"
		"'limits':{'cpu':'2','memory':'1'}}},{'name':'%.*s','resources':{'limits':{"
		"'cpu':'%s','memory':'1'}}}]}}";
	static const char name[] =
		"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";
	cleanup_free char *fits = gs_asprintf(format, 58, name, "1");
	cleanup_free char *too_long = gs_asprintf(format, 59, name, "1");
	cleanup_free char *same = gs_asprintf(format, 63, name, "2");

	assert_true(may("CREATE", fits, "null"));
	assert_false(may("CREATE", too_long, "null"));
	assert_true(may("CREATE", same, "null"));
}

static void base64(void **state)
{
	static const char *const texts[] = { "[]", "[1]", "[10]", "[100]" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		cleanup_json json_t *want = json(texts[i]);
		cleanup_free char *text = patch_encode(want);
		cleanup_json json_t *got = patch_decode(text);

		assert_true(json_equal(got, want));
	}
}

static void pointers_are_escaped(void **state)
{
	cleanup_json json_t *before = json("{'metadata':{'annotations':{'x':'y'}}}");
	cleanup_json json_t *after = json("{'metadata':{'annotations':{'x':'y','a~/b~1':'z'}}}");
	cleanup_json json_t *patch = patch_make(before, after);

	patch_apply(before, patch);
	assert_true(json_equal(before, after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_question),
		cmocka_unit_test(too_long),
		cmocka_unit_test(too_deep),
		cmocka_unit_test(any_value_may_be_anything),
		cmocka_unit_test(huge_pods),
		cmocka_unit_test(names_in_messages),
		cmocka_unit_test(warnings_are_bounded),
		cmocka_unit_test(keys_of_a_name_too_long),
		cmocka_unit_test(base64),
		cmocka_unit_test(pointers_are_escaped),
	};

	return cmocka_run_group_tests_name("admission", tests, setup, teardown);
}
