// SPDX-License-Identifier: Apache-2.0
/* What annotations ask for: every way to name sources, grants, limits, and to get them wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/sources.h"
#include "common/xalloc.h"
#include "runtime/request.h"
#include "tests/unit/specs.h"

#define FROM "gpushare.k8s.io/container-devices-from"
#define GRANT "0123456789abcdef0123456789abcdef"

static const struct who me = {
	.id = { (char[]){ "team-a" }, (char[]){ "devpod" }, (char[]){ "dind" } },
};

/* A spec with these members of "annotations". */
static void annotated(struct spec *spec, const char *members)
{
	cleanup_free char *text = gs_asprintf("{\"annotations\":{%s}}", members);

	spec_make(spec, text);
}

/* The sources, with blanks between them. */
static char *names(const struct request *req)
{
	struct gs_buf out = { 0 };

	for (size_t i = 0; i < req->n_sources; i++) {
		cleanup_free char *name = gs_identity_text(&req->sources[i]);

		gs_buf_addf(&out, "%s%s", i ? " " : "", name);
	}
	return gs_buf_steal(&out);
}

static void finds_sources(void **state)
{
	static const struct {
		const char *members, *want;
	} rows[] = {
		{ "", "" },
		{ "\"" FROM ".dind\":\"_/_/main\"", "team-a/devpod/main" },
		{ "\"" FROM ".dind\":\"ns/_/main,_/p.q-r.example/c2\"",
		  "ns/devpod/main team-a/p.q-r.example/c2" },
		{ "\"" FROM ".dind\":\"_/_/a,_/_/b,_/_/a,team-a/devpod/b\"",
		  "team-a/devpod/a team-a/devpod/b" },
		{ "\"" FROM ".other\":\"_/_/main\"", "" },
		{ "\"" FROM ".din\":\"_/_/main\",\"" FROM ".dind2\":\"x\"", "" },
		{ "\"" FROM "\":\"dind=_/_/main\"", "team-a/devpod/main" },
		{ "\"" FROM "\":\"other=garbage;dind=_/_/a,_/_/b;x=_/_/c\"",
		  "team-a/devpod/a team-a/devpod/b" },
		{ "\"" FROM "\":\"other=_/_/x\\n\\ndind=_/_/a\\n\"", "team-a/devpod/a" },
		{ "\"" FROM "\":\";;dind=_/_/a;\"", "team-a/devpod/a" },
		{ "\"" FROM "\":\"\"", "" },
		{ "\"" FROM "\":\"other=_/_/a\"", "" },
		{ "\"" FROM "\":\"din=_/_/a;dind2=_/_/b\"", "" },
		/* this container's own key, others' entries in the long form */
		{ "\"" FROM ".dind\":\"_/_/a\",\"" FROM "\":\"other=_/_/b\"", "team-a/devpod/a" },
		{ "\"" FROM ".dind\":null", "" },
		{ "\"" FROM ".dind\":\"_\\/_\\/\\u006dain\"", "team-a/devpod/main" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_request struct request req = { 0 };
		cleanup_free char *got = NULL;
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };

		annotated(&spec, rows[i].members);
		if (request_read(&spec, &me, &req, &err) != 0)
			fail_msg("%s: %s", rows[i].members, err.msg);
		got = names(&req);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s", rows[i].members, got);
		assert_null(req.grant);
		assert_true(req.vcpu_milli == 0 && req.vmem_bytes == 0);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *members;
		int code;
		const char *words;
	} rows[] = {
		{ "\"" FROM ".dind\":\"\"", EINVAL, FROM ".dind: \"\" is not" },
		{ "\"" FROM ".dind\":\"a/b\"", EINVAL, "\"a/b\"" },
		{ "\"" FROM ".dind\":\"a/b/c/d\"", EINVAL, "\"a/b/c/d\"" },
		{ "\"" FROM ".dind\":\"/b/c\"", EINVAL, "\"/b/c\"" },
		{ "\"" FROM ".dind\":\"a//c\"", EINVAL, "\"a//c\"" },
		{ "\"" FROM ".dind\":\"../../etc/x/y\"", EINVAL, "\"../../etc/x/y\"" },
		{ "\"" FROM ".dind\":\"../../etc\"", EINVAL, "\"../../etc\"" },
		{ "\"" FROM ".dind\":\"NS/pod/c\"", EINVAL, "\"NS/pod/c\"" },
		{ "\"" FROM ".dind\":\"ns/pod/c \"", EINVAL, "\"ns/pod/c \"" },
		{ "\"" FROM ".dind\":\"ns/pod/c\\n\"", EINVAL, "\"ns/pod/c?\"" },
		{ "\"" FROM ".dind\":\"_/_/_\"", EINVAL, "container" },
		{ "\"" FROM ".dind\":\"_/_/a,\"", EINVAL, "\"\"" },
		{ "\"" FROM ".dind\":\",_/_/a\"", EINVAL, "\"\"" },
		{ "\"" FROM ".dind\":\"_/_/a;_/_/b\"", EINVAL, "_/_/a;_/_/b" },
		{ "\"" FROM ".dind\":\"_/_/dind\"", EINVAL, "itself" },
		{ "\"" FROM ".dind\":\"_/_/a,team-a/devpod/dind\"", EINVAL, "itself" },
		{ "\"" FROM ".dind\":7", EINVAL, FROM ".dind: \"7\" is not a string" },
		{ "\"" FROM ".dind\":\"a\\u0000\"", EINVAL, FROM ".dind" },
		{ "\"" FROM ".dind\":\"_/_/a\",\"" FROM ".dind\":\"_/_/b\"", EEXIST, "twice" },
		{ "\"" FROM "\":\"garbage\"", EINVAL, "entry \"garbage\"" },
		{ "\"" FROM "\":\"=_/_/a\"", EINVAL, "entry \"=_/_/a\"" },
		{ "\"" FROM "\":\"Dind=_/_/a\"", EINVAL, "entry \"Dind=_/_/a\"" },
		{ "\"" FROM "\":\" dind=_/_/a\"", EINVAL, "entry \" dind=_/_/a\"" },
		{ "\"" FROM "\":\"dind=\"", EINVAL, FROM ": \"\" is not" },
		{ "\"" FROM "\":\"dind=_/_/a\\r\\n\"", EINVAL, "_/_/a?" },
		{ "\"" FROM "\":\"dind=a=b\"", EINVAL, "\"a=b\"" },
		{ "\"" FROM "\":\"dind=_/_/a;dind=_/_/b\"", EINVAL, "two entries" },
		{ "\"" FROM ".dind\":\"_/_/a\",\"" FROM "\":\"dind=_/_/b\"", EINVAL,
		  "two entries" },
		{ "\"" FROM "\":[]", EINVAL, FROM },
		{ "\"gpushare.k8s.io/grant\":\"x\"", EINVAL, "32 lower-case hex digits" },
		{ "\"gpushare.k8s.io/grant\":\"\"", EINVAL, "grant" },
		{ "\"gpushare.k8s.io/grant\":\"../../../../etc/shadow\"", EINVAL, "grant" },
		{ "\"gpushare.k8s.io/grant\":\"0123456789ABCDEF0123456789ABCDEF\"", EINVAL,
		  "grant" },
		{ "\"gpushare.k8s.io/grant\":\"" GRANT "0\"", EINVAL, "grant" },
		{ "\"gpushare.k8s.io/vcpu\":\"fast\"", EINVAL, "gpushare.k8s.io/vcpu: \"fast\"" },
		{ "\"gpushare.k8s.io/vcpu\":\"\"", EINVAL, "gpushare.k8s.io/vcpu" },
		{ "\"gpushare.k8s.io/vcpu\":\"0\"", EINVAL, "more than zero" },
		{ "\"gpushare.k8s.io/vcpu\":\"-1\"", EINVAL, "gpushare.k8s.io/vcpu: \"-1\"" },
		{ "\"gpushare.k8s.io/vcpu\":2", EINVAL, "gpushare.k8s.io/vcpu" },
		{ "\"gpushare.k8s.io/vmem\":\"1Xi\"", EINVAL, "gpushare.k8s.io/vmem: \"1Xi\"" },
		{ "\"gpushare.k8s.io/vmem\":\"0Gi\"", EINVAL, "more than zero" },
		{ "\"gpushare.k8s.io/vmem\":\"9000Ei\"", ERANGE, "gpushare.k8s.io/vmem" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		struct request req = { .n_sources = 4711 };
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };
		int r;

		annotated(&spec, rows[i].members);
		r = request_read(&spec, &me, &req, &err);
		if (r != -rows[i].code || !strstr(err.msg, rows[i].words))
			fail_msg("%s: %d, \"%s\"", rows[i].members, r, err.msg);
		assert_int_equal(req.n_sources, 4711);
	}
}

/* A grant's name is a secret; what is wrong in its place may be one with a typing error. */
static void a_grant_is_never_quoted(void **state)
{
	cleanup_spec struct spec spec;
	struct request req = { 0 };
	struct gs_err err = { 0 };

	annotated(&spec, "\"gpushare.k8s.io/grant\":\"0123456789abcdef0123456789abcdeg\"");
	assert_int_equal(request_read(&spec, &me, &req, &err), -EINVAL);
	assert_null(strstr(err.msg, "0123"));
}

static void grants_and_limits(void **state)
{
	static const struct {
		const char *vcpu, *vmem;
		int64_t milli, bytes;
	} rows[] = {
		{ "2", "1Gi", 2000, INT64_C(1) << 30 },
		{ "1500m", "512Mi", 1500, INT64_C(512) << 20 },
		{ "0.1", "1e3", 100, 1000 },
		{ "1u", "1m", 1, 1 }, /* rounded up */
		{ "64", "5Ei", 64000, INT64_C(5) << 60 },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *members = gs_asprintf("\"gpushare.k8s.io/grant\":\"" GRANT
							 "\",\"gpushare.k8s.io/vcpu\":\"%s\","
							 "\"gpushare.k8s.io/vmem\":\"%s\"",
							 rows[i].vcpu, rows[i].vmem);
		cleanup_request struct request req = { 0 };
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };

		annotated(&spec, members);
		if (request_read(&spec, &me, &req, &err) != 0)
			fail_msg("%s: %s", members, err.msg);
		assert_string_equal(req.grant, GRANT);
		assert_int_equal(req.n_sources, 0);
		if (req.vcpu_milli != rows[i].milli || req.vmem_bytes != rows[i].bytes)
			fail_msg("%s: %lld %lld", members, (long long)req.vcpu_milli,
				 (long long)req.vmem_bytes);
	}
}

/* A container's own key goes before that of the pod, and another container's says nothing. */
static void limits_of_one_container(void **state)
{
	cleanup_strv struct gs_strv unknown = { 0 };
	cleanup_request struct request req = { 0 };
	cleanup_spec struct spec spec;
	struct gs_err err = { 0 };

	annotated(&spec, "\"gpushare.k8s.io/vcpu\":\"4\",\"gpushare.k8s.io/vcpu.dind\":\"1\","
			 "\"gpushare.k8s.io/vmem\":\"4Ki\",\"gpushare.k8s.io/vmem.main\":\"1\"");
	request_unknown_keys(&spec, &unknown);
	assert_int_equal(unknown.n, 0);
	assert_int_equal(request_read(&spec, &me, &req, &err), 0);
	assert_int_equal(req.vcpu_milli, 1000);
	assert_int_equal(req.vmem_bytes, 4096);
	request_free(&req);
	spec_free(&spec);
	annotated(&spec, "\"gpushare.k8s.io/vcpu\":\"4\",\"gpushare.k8s.io/vcpu.dind\":\"fast\"");
	assert_int_equal(request_read(&spec, &me, &req, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "gpushare.k8s.io/vcpu.dind"));
}

/* Keys that are none of ours, and which of ours was meant. */
static void unknown_keys(void **state)
{
	static const struct {
		const char *key, *meant;
	} rows[] = {
		{ "container-devices-form.dind", "container-devices-from.dind" },
		{ "containers-devices-from", "container-devices-from" },
		{ "vcpus.main", "vcpu.main" },
		{ "userid", "user_id" },
		{ "User_id", "user_id" },
		{ "lend-atfer", "lend-after" },
		{ "shares", "share" },
		{ "lend.main", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "a-name-of-more-than-forty-characters-is-nothing-we-know", NULL },
	};
	cleanup_buf struct gs_buf many = { 0 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *members =
			gs_asprintf("\"gpushare.k8s.io/%s\":\"x\"", rows[i].key);
		cleanup_free char *end =
			gs_asprintf("the nearest is \"gpushare.k8s.io/%s\"", rows[i].meant);
		cleanup_strv struct gs_strv unknown = { 0 };
		cleanup_spec struct spec spec;

		annotated(&spec, members);
		request_unknown_keys(&spec, &unknown);
		assert_int_equal(unknown.n, 1);
		if (rows[i].meant ? !strstr(unknown.v[0], end) :
				    strstr(unknown.v[0], "nearest") != NULL)
			fail_msg("%s: %s", rows[i].key, unknown.v[0]);
	}
	for (int i = 0; i < 100; i++)
		gs_buf_addf(&many, "%s\"gpushare.k8s.io/x%d\":\"\"", i ? "," : "", i);
	{
		cleanup_strv struct gs_strv unknown = { 0 };
		cleanup_spec struct spec spec;

		annotated(&spec, many.data);
		request_unknown_keys(&spec, &unknown);
		assert_int_equal(unknown.n, REQUEST_UNKNOWN_MAX);
	}
}

/* A key of its own ends at 40 characters of the name; the long form has no such end. */
static void long_container_names(void **state)
{
	char name[64], near[64];
	struct who who = { .id = { (char[]){ "n" }, (char[]){ "p" }, name } };
	cleanup_request struct request req = { 0 };
	cleanup_free char *members = NULL, *got = NULL;
	cleanup_spec struct spec spec;
	struct gs_err err = { 0 };

	memset(name, 'a', 63);
	name[63] = '\0';
	memcpy(near, name, sizeof(near));
	near[62] = 'b';
	members = gs_asprintf("\"" FROM "\":\"%s=_/_/other;%.62s=_/_/shorter;%s=_/_/mine\"", near,
			      name, name);
	annotated(&spec, members);
	assert_int_equal(request_read(&spec, &who, &req, &err), 0);
	got = names(&req);
	assert_string_equal(got, "n/p/mine");
}

static void values_are_bounded(void **state)
{
	static const char *const keys[] = { FROM ".dind", FROM };

	for (size_t i = 0; i < GS_ARRAY_SIZE(keys); i++) {
		cleanup_buf struct gs_buf text = { 0 };
		struct request req = { 0 };
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };

		gs_buf_addf(&text, "\"%s\":\"", keys[i]);
		for (int n = 0; n <= GS_SOURCES_VALUE_MAX; n++)
			gs_buf_addc(&text, ';');
		gs_buf_addc(&text, '"');
		annotated(&spec, text.data);
		assert_int_equal(request_read(&spec, &me, &req, &err), -E2BIG);
		expect_words(&err, keys[i], "16385", NULL);
	}
}

static void sources_are_bounded(void **state)
{
	cleanup_buf struct gs_buf text = { 0 };

	for (int n = 0; n <= REQUEST_SOURCES_MAX; n++) {
		cleanup_free char *members = NULL;
		cleanup_request struct request req = { 0 };
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };

		gs_buf_addf(&text, "%s_/_/c%d", n ? "," : "", n);
		/* repeats are not counted */
		members = gs_asprintf("\"" FROM ".dind\":\"%s,%s\"", text.data, text.data);
		annotated(&spec, members);
		if (n < REQUEST_SOURCES_MAX) {
			assert_int_equal(request_read(&spec, &me, &req, &err), 0);
			assert_int_equal(req.n_sources, n + 1);
		} else {
			assert_int_equal(request_read(&spec, &me, &req, &err), -E2BIG);
			expect_words(&err, "more than 16 sources", FROM ".dind", NULL);
		}
	}
}

/* A message quotes what was written, but never more than fits into an event. */
static void long_garbage_is_cut(void **state)
{
	cleanup_buf struct gs_buf text = { 0 };
	struct request req = { 0 };
	cleanup_spec struct spec spec;
	struct gs_err err = { 0 };

	gs_buf_adds(&text, "\"" FROM ".dind\":\"");
	for (int i = 0; i < 300; i++)
		gs_buf_adds(&text, "\\u001b[31mevil");
	gs_buf_addc(&text, '"');
	annotated(&spec, text.data);
	assert_int_equal(request_read(&spec, &me, &req, &err), -EINVAL);
	assert_true(strlen(err.msg) < 400);
	assert_null(strchr(err.msg, '\x1b'));
	expect_words(&err, "?[31mevil", "...\"", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_sources),	   cmocka_unit_test(refuses),
		cmocka_unit_test(a_grant_is_never_quoted), cmocka_unit_test(grants_and_limits),
		cmocka_unit_test(limits_of_one_container), cmocka_unit_test(unknown_keys),
		cmocka_unit_test(long_container_names),	   cmocka_unit_test(values_are_bounded),
		cmocka_unit_test(sources_are_bounded),	   cmocka_unit_test(long_garbage_is_cut),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
