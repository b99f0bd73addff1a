// SPDX-License-Identifier: Apache-2.0
/* A container's identity: which keys are believed, and when two are of one pod. */
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
#include "runtime/who.h"
#include "tests/unit/specs.h"

#define CONTAINERD                                            \
	"\"io.kubernetes.cri.container-name\":\"main\","      \
	"\"io.kubernetes.cri.container-type\":\"container\"," \
	"\"io.kubernetes.cri.sandbox-id\":\"fcf3716e\","      \
	"\"io.kubernetes.cri.sandbox-name\":\"devpod\","      \
	"\"io.kubernetes.cri.sandbox-namespace\":\"team-a\"," \
	"\"io.kubernetes.cri.sandbox-uid\":\"3c0ffee0-0000\""

#define CRIO                                                   \
	"\"io.kubernetes.container.name\":\"side\","           \
	"\"io.kubernetes.cri-o.ContainerType\":\"container\"," \
	"\"io.kubernetes.cri-o.SandboxID\":\"box\","           \
	"\"io.kubernetes.pod.name\":\"web-0\","                \
	"\"io.kubernetes.pod.namespace\":\"team-b\","          \
	"\"io.kubernetes.pod.uid\":\"uid-2\""

#define IDENTITY "\"gpushare.k8s.io/identity\":\"ns/pod/main\""

static int read_who(const char *members, enum gs_cri cri, struct who *ret, struct gs_err *err)
{
	cleanup_free char *text = gs_asprintf("{\"annotations\":{%s}}", members);
	cleanup_spec struct spec spec;

	spec_make(&spec, text);
	return who_read(&spec, cri, ret, err);
}

static void expect_name(const char *members, enum gs_cri cri, const char *want)
{
	cleanup_who struct who who = { 0 };
	cleanup_free char *got = NULL;
	struct gs_err err = { 0 };

	if (read_who(members, cri, &who, &err) != 0)
		fail_msg("%s: %s", members, err.msg);
	if (gs_identity_is_set(&who.id))
		got = gs_identity_text(&who.id);
	if ((got == NULL) != (want == NULL) || (want && strcmp(got, want) != 0))
		fail_msg("%s: %s, not %s", members, got, want);
}

static void vocabularies(void **state)
{
	cleanup_who struct who who = { 0 };

	expect_name(CONTAINERD, GS_CRI_CONTAINERD, "team-a/devpod/main");
	expect_name(CRIO, GS_CRI_CRIO, "team-b/web-0/side");
	expect_name(IDENTITY, GS_CRI_NONE, "ns/pod/main");
	assert_int_equal(read_who(CONTAINERD, GS_CRI_CONTAINERD, &who, NULL), 0);
	assert_false(who.sandbox);
	assert_string_equal(who.sandbox_id, "fcf3716e");
	assert_string_equal(who.pod_uid, "3c0ffee0-0000");
	who_free(&who);
	assert_int_equal(read_who(CRIO, GS_CRI_CRIO, &who, NULL), 0);
	assert_string_equal(who.sandbox_id, "box");
	assert_string_equal(who.pod_uid, "uid-2");
	who_free(&who);
	assert_int_equal(read_who(IDENTITY, GS_CRI_NONE, &who, NULL), 0);
	assert_null(who.sandbox_id);
	assert_null(who.pod_uid);
}

/* An author may write the other vocabulary's keys: they say nothing. */
static void one_vocabulary_is_believed(void **state)
{
	expect_name(CRIO "," IDENTITY, GS_CRI_CONTAINERD, NULL);
	expect_name(CONTAINERD "," IDENTITY, GS_CRI_CRIO, NULL);
	expect_name(CONTAINERD "," CRIO, GS_CRI_NONE, NULL);
	expect_name(CONTAINERD "," CRIO "," IDENTITY, GS_CRI_CONTAINERD, "team-a/devpod/main");
	expect_name(CONTAINERD "," CRIO "," IDENTITY, GS_CRI_CRIO, "team-b/web-0/side");
	expect_name(CONTAINERD "," CRIO "," IDENTITY, GS_CRI_NONE, "ns/pod/main");
	expect_name("", GS_CRI_CONTAINERD, NULL);
	expect_name("", GS_CRI_CRIO, NULL);
	expect_name("", GS_CRI_NONE, NULL);
}

/* The pause container carries the pod's annotations and no container's name. */
static void sandboxes(void **state)
{
	static const char *const members[] = {
		"\"io.kubernetes.cri.container-type\":\"sandbox\","
		"\"io.kubernetes.cri.sandbox-name\":\"devpod\","
		"\"io.kubernetes.cri.sandbox-namespace\":\"team-a\"",
		/* and were one to claim a name */
		"\"io.kubernetes.cri.container-type\":\"sandbox\","
		"\"io.kubernetes.cri.container-name\":\"main\","
		"\"io.kubernetes.cri.sandbox-name\":\"devpod\","
		"\"io.kubernetes.cri.sandbox-namespace\":\"team-a\"",
	};
	cleanup_who struct who crio = { 0 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(members); i++) {
		cleanup_who struct who who = { 0 };

		assert_int_equal(read_who(members[i], GS_CRI_CONTAINERD, &who, NULL), 0);
		assert_true(who.sandbox);
		assert_false(gs_identity_is_set(&who.id));
	}
	assert_int_equal(read_who("\"io.kubernetes.cri-o.ContainerType\":\"sandbox\"", GS_CRI_CRIO,
				  &crio, NULL),
			 0);
	assert_true(crio.sandbox);
}

static void refuses(void **state)
{
	static const struct {
		const char *members;
		enum gs_cri cri;
		int code;
		const char *words;
	} rows[] = {
		{ CONTAINERD ",\"io.kubernetes.cri.container-name\":\"x\"", GS_CRI_CONTAINERD,
		  EEXIST, "io.kubernetes.cri.container-name" },
		{ CONTAINERD ",\"io.kubernetes.cri.container\\u002dname\":\"x\"", GS_CRI_CONTAINERD,
		  EEXIST, "io.kubernetes.cri.container-name" },
		{ CONTAINERD ",\"io.kubernetes.cri.sandbox-uid\":\"x\"", GS_CRI_CONTAINERD, EEXIST,
		  "sandbox-uid" },
		{ "\"io.kubernetes.cri.container-name\":\"../x\","
		  "\"io.kubernetes.cri.sandbox-name\":\"p\","
		  "\"io.kubernetes.cri.sandbox-namespace\":\"n\"",
		  GS_CRI_CONTAINERD, EINVAL, "the container's own identity" },
		{ "\"io.kubernetes.cri.container-name\":7", GS_CRI_CONTAINERD, EINVAL,
		  "io.kubernetes.cri.container-name" },
		{ "\"io.kubernetes.cri.container-type\":[]", GS_CRI_CONTAINERD, EINVAL,
		  "io.kubernetes.cri.container-type" },
		{ "\"gpushare.k8s.io/identity\":\"_/_/main\"", GS_CRI_NONE, EINVAL,
		  "gpushare.k8s.io/identity" },
		{ "\"gpushare.k8s.io/identity\":\"main\"", GS_CRI_NONE, EINVAL,
		  "gpushare.k8s.io/identity" },
		{ IDENTITY "," IDENTITY, GS_CRI_NONE, EEXIST, "twice" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct who who = { .sandbox_id = NULL };
		struct gs_err err = { 0 };
		int r = read_who(rows[i].members, rows[i].cri, &who, &err);

		if (r != -rows[i].code || !strstr(err.msg, rows[i].words))
			fail_msg("%s: %d, \"%s\"", rows[i].members, r, err.msg);
		assert_null(who.id.ns);
		assert_null(who.pod_uid);
	}
}

static void same_pod(void **state)
{
	const struct gs_identity devpod = { (char[]){ "ns" }, (char[]){ "pod" },
					    (char[]){ "main" } };
	const struct gs_identity other_pod = { (char[]){ "ns" }, (char[]){ "pod2" },
					       (char[]){ "main" } };
	const struct gs_identity other_ns = { (char[]){ "ns2" }, (char[]){ "pod" },
					      (char[]){ "main" } };
	const struct gs_identity unset = { 0 };
	static const struct {
		const char *box_a, *uid_a, *box_b, *uid_b;
		bool same;
	} rows[] = {
		{ NULL, NULL, NULL, NULL, true }, { "s", "u", "s", "u", true },
		{ "s", "u", "s2", "u", false }, /* the sandbox was made anew */
		{ "s", "u", "s", "u2", true },	  { "s", NULL, NULL, NULL, false },
		{ NULL, NULL, "s", NULL, false }, { "s", "u", NULL, "u", false },
		{ NULL, "u", NULL, "u", true },	  { NULL, "u", NULL, "u2", false },
		{ NULL, "u", NULL, NULL, false }, { NULL, NULL, NULL, "u", false },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		const struct who me = { .id = devpod,
					.sandbox_id = (char *)rows[i].box_a,
					.pod_uid = (char *)rows[i].uid_a };

		if (who_same_pod(&me, &devpod, rows[i].box_b, rows[i].uid_b) != rows[i].same)
			fail_msg("row %zu", i);
		assert_false(who_same_pod(&me, &other_pod, rows[i].box_a, rows[i].uid_a));
		assert_false(who_same_pod(&me, &other_ns, rows[i].box_a, rows[i].uid_a));
		assert_false(who_same_pod(&me, &unset, rows[i].box_a, rows[i].uid_a));
	}
	assert_false(who_same_pod(&(struct who){ 0 }, &devpod, NULL, NULL));
	assert_false(who_same_pod(&(struct who){ 0 }, &unset, NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vocabularies), cmocka_unit_test(one_vocabulary_is_believed),
		cmocka_unit_test(sandboxes),	cmocka_unit_test(refuses),
		cmocka_unit_test(same_pod),
	};

	return cmocka_run_group_tests_name("who", tests, NULL, NULL);
}
