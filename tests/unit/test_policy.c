// SPDX-License-Identifier: Apache-2.0
/* Who may receive from whom, and what a borrower may not be. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "runtime/policy.h"
#include "tests/unit/specs.h"
#include "tests/unit/tmpdir.h"

#define GRANT "0123456789abcdef0123456789abcdef"

static const struct who me = {
	.id = { (char[]){ "ns" }, (char[]){ "pod" }, (char[]){ "dind" } },
};

static int setup(void **state)
{
	*state = tmpdir_make();
	return 0;
}

static int teardown(void **state)
{
	tmpdir_remove(*state);
	return 0;
}

/* A source of that name with these annotations; everything is borrowed. */
static struct source source_of(const char *pod, bool same_pod, const char *annotations)
{
	static char ns[] = "ns", container[] = "main", name[64];

	(void)snprintf(name, sizeof(name), "ns/%s/main", pod);
	return (struct source){
		.name = name,
		.record = { .identity = { ns, (char *)pod, container },
			    .annotations = (char *)annotations },
		.same_pod = same_pod,
	};
}

static int check(enum gs_cross_pod cross_pod, const char *spec_text, const struct gs_grant *grant,
		 const struct source *source, struct gs_err *err)
{
	const struct gs_config config = { .cross_pod = cross_pod };
	cleanup_spec struct spec spec;

	spec_make(&spec, spec_text);
	return policy_check(&config, &spec, grant, source, 1, err);
}

static void same_pod_always(void **state)
{
	const struct source source = source_of("pod", true, NULL);
	const struct gs_grant none = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(check(GS_CROSS_POD_GRANT, "{}", &none, &source, &err), 0);
	assert_int_equal(check(GS_CROSS_POD_ANNOTATION, "{}", &none, &source, &err), 0);
}

static void another_pod_needs_a_grant(void **state)
{
	static const char both[] = "{\"annotations\":{\"gpushare.k8s.io/partition\":\"a\","
				   "\"gpushare.k8s.io/user_id\":\"u\"}}";
	const struct source source = source_of(
		"other", false,
		"{\"gpushare.k8s.io/partition\":\"a\",\"gpushare.k8s.io/user_id\":\"u\"}");
	struct gs_identity named = { (char[]){ "ns" }, (char[]){ "other" }, (char[]){ "main" } };
	struct gs_identity another = { (char[]){ "ns" }, (char[]){ "other" }, (char[]){ "side" } };
	struct gs_grant grant = { .sources = &named, .n_sources = 1 };
	struct gs_err err = { 0 };

	/* a name makes a grant; without one there is none */
	assert_int_equal(check(GS_CROSS_POD_GRANT, both, &grant, &source, &err), -EACCES);
	expect_words(&err, "source ns/other/main is in another pod", "needs a grant", NULL);
	(void)strcpy(grant.name, GRANT);
	assert_int_equal(check(GS_CROSS_POD_GRANT, "{}", &grant, &source, &err), 0);
	grant.sources = &another;
	assert_int_equal(check(GS_CROSS_POD_GRANT, both, &grant, &source, &err), -EACCES);
	expect_words(&err, "ns/other/main", "grant 012345... does not name it", NULL);
	assert_null(strstr(err.msg, "0123456"));
	/* a grant for something else is no way around the annotations either */
	assert_int_equal(check(GS_CROSS_POD_ANNOTATION, both, &grant, &source, &err), -EACCES);
}

static void equal_annotations_where_that_is_configured(void **state)
{
#define BOTH(p, u) "{\"gpushare.k8s.io/partition\":" p ",\"gpushare.k8s.io/user_id\":" u "}"
	static const struct {
		const char *ours, *theirs, *words; /* NULL: allowed */
	} rows[] = {
		{ BOTH("\"a\"", "\"u\""), BOTH("\"a\"", "\"u\""), NULL },
		{ BOTH("\"a\"", "\"u\""), BOTH("\"\\u0061\"", "\"u\""), NULL },
		{ BOTH("\"a\"", "\"u\""), BOTH("\"b\"", "\"u\""), "partition" },
		{ BOTH("\"a\"", "\"u\""), BOTH("\"a\"", "\"v\""), "user_id" },
		{ BOTH("\"a\"", "\"u\""), "{\"gpushare.k8s.io/partition\":\"a\"}", "user_id" },
		{ BOTH("\"a\"", "\"u\""), "{\"gpushare.k8s.io/user_id\":\"u\"}", "partition" },
		{ "{\"gpushare.k8s.io/user_id\":\"u\"}", BOTH("\"a\"", "\"u\""), "partition" },
		{ "{\"gpushare.k8s.io/partition\":\"a\"}", BOTH("\"a\"", "\"u\""), "user_id" },
		/* nothing is not equal to nothing */
		{ "{}", "{}", "partition" },
		{ BOTH("\"\"", "\"\""), BOTH("\"\"", "\"\""), "partition" },
		{ BOTH("\"a\"", "\"\""), BOTH("\"a\"", "\"\""), "user_id" },
		{ BOTH("null", "null"), BOTH("null", "null"), "partition" },
		{ BOTH("\"a\"", "\"u\""), NULL, "partition" },
		{ BOTH("\"a\"", "\"u\""), "garbage", "partition" },
		{ BOTH("\"a\"", "\"u\""), "[]", "partition" },
		{ BOTH("\"a\"", "\"u\""), BOTH("7", "\"u\""), "partition" },
		{ BOTH("\"a\"", "\"u\""),
		  "{\"gpushare.k8s.io/partition\":\"b\",\"gpushare.k8s.io/partition\":\"a\","
		  "\"gpushare.k8s.io/user_id\":\"u\"}",
		  "partition" },
	};
	const struct gs_grant none = { 0 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		const struct source source = source_of("other", false, rows[i].theirs);
		cleanup_free char *spec = gs_asprintf("{\"annotations\":%s}", rows[i].ours);
		struct gs_err err = { 0 };
		int r = check(GS_CROSS_POD_ANNOTATION, spec, &none, &source, &err);

		if (r != (rows[i].words ? -EACCES : 0) ||
		    (rows[i].words && !strstr(err.msg, rows[i].words)))
			fail_msg("row %zu: %d, \"%s\"", i, r, err.msg);
		if (r == 0)
			assert_int_equal(check(GS_CROSS_POD_GRANT, spec, &none, &source, &err),
					 -EACCES);
	}
#undef BOTH
}

/* Every source is looked at, not the first alone. */
static void each_source_is_checked(void **state)
{
	const struct gs_config config = { .cross_pod = GS_CROSS_POD_GRANT };
	const struct source sources[] = { source_of("pod", true, NULL),
					  source_of("x", false, NULL) };
	const struct gs_grant none = { 0 };
	cleanup_spec struct spec spec;
	struct gs_err err = { 0 };

	spec_make(&spec, "{}");
	assert_int_equal(policy_check(&config, &spec, &none, sources, 1, &err), 0);
	assert_int_equal(policy_check(&config, &spec, &none, sources, 2, &err), -EACCES);
	assert_int_equal(policy_check(&config, &spec, &none, sources, 0, &err), 0);
}

/* Reads the grant of a request that names no source or, @asks, another one. */
static int read_grant(const char *dir, bool asks, struct request *req, struct gs_grant *grant,
		      struct gs_err *err)
{
	const struct gs_config config = { .lib_dir = (char *)dir };
	const struct gs_identity asked = { (char[]){ "a" }, (char[]){ "b" }, (char[]){ "c" } };

	*req = (struct request){ .grant = gs_strdup(GRANT) };
	if (asks)
		assert_int_equal(request_add_source(req, &asked, NULL), 0);
	return policy_read_grant(&config, &me, req, grant, err);
}

static void write_grant(const char *dir, const char *members)
{
	cleanup_free char *text = gs_asprintf("{\"v\":1,%s}", members);

	tmpdir_write(dir, "grants/" GRANT ".json", text);
}

#define SHARE "\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"ns/other/main\",\"x/y/z\"]"

static void grants_bring_their_sources_along(void **state)
{
	static const struct {
		const char *members;
		size_t n; /* sources of the request afterwards, where it named one */
		bool kept;
	} rows[] = {
		{ SHARE, 1, true }, /* just a permission */
		{ SHARE ",\"resource\":\"gpushare/share-gpu\"", 3, true },
		{ SHARE ",\"to\":\"ns/pod/dind\"", 3, true },
	};

	if (geteuid() != 0) {
		print_message("skipped: grants are root's\n");
		skip();
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_request struct request req = { 0 };
		cleanup_grant struct gs_grant grant = { 0 };
		struct gs_err err = { 0 };

		write_grant(*state, rows[i].members);
		if (read_grant(*state, true, &req, &grant, &err) != 0)
			fail_msg("%s: %s", rows[i].members, err.msg);
		assert_int_equal(req.n_sources, rows[i].n);
		assert_string_equal(req.sources[0].ns, "a");
		assert_int_equal(req.grant != NULL, rows[i].kept);
		assert_string_equal(grant.name, GRANT);
	}
}

/* A pod annotation reaches all containers of the pod; the grant is one's. */
static void a_grant_for_another_container(void **state)
{
	cleanup_request struct request req = { 0 };
	struct gs_grant grant = { 0 };
	struct gs_err err = { 0 };

	if (geteuid() != 0) {
		print_message("skipped: grants are root's\n");
		skip();
	}
	write_grant(*state, SHARE ",\"to\":\"ns/pod/other\",\"resource\":\"r\"");
	assert_int_equal(read_grant(*state, false, &req, &grant, &err), 0);
	assert_null(req.grant);
	assert_int_equal(req.n_sources, 0);
	assert_string_equal(grant.name, "");
	assert_int_equal(read_grant(*state, true, &req, &grant, &err), -EACCES);
	expect_words(&err, "grant 012345... is for another container", NULL);
}

static void grants_out_of_force(void **state)
{
	cleanup_request struct request req = { 0 };
	struct gs_grant grant = { 0 };
	struct gs_err err = { 0 };
	cleanup_free char *spot = NULL;
	char boot_id[37];

	if (geteuid() != 0) {
		print_message("skipped: grants are root's\n");
		skip();
	}
	assert_int_equal(read_grant(*state, false, &req, &grant, &err), -ENOENT);
	expect_words(&err, "annotation gpushare.k8s.io/grant", "012345...", NULL);
	request_free(&req);
	write_grant(*state,
		    "\"kind\":\"share\",\"state\":\"revoked\",\"sources\":[\"ns/other/main\"]");
	assert_int_equal(read_grant(*state, false, &req, &grant, &err), -ECANCELED);
	expect_words(&err, "annotation gpushare.k8s.io/grant", "revoked", NULL);
	request_free(&req);
	assert_int_equal(gs_boot_id(boot_id, &err), 0);
	for (int late = 0; late < 2; late++) {
		uint64_t deadline = gs_boottime_ms() + (late ? 0 : 60000);

		free(spot);
		spot = gs_asprintf("\"kind\":\"spot\",\"state\":\"active\",\"sources\":[\"x/y/z\"],"
				   "\"resource\":\"r\",\"lease\":{\"boot_id\":\"%s\","
				   "\"deadline_ms\":%llu}",
				   boot_id, (unsigned long long)deadline);
		write_grant(*state, spot);
		assert_int_equal(read_grant(*state, false, &req, &grant, &err),
				 late ? -ECANCELED : 0);
		assert_int_equal(req.n_sources, !late);
		request_free(&req);
		if (!late)
			gs_grant_free(&grant);
	}
	expect_words(&err, "the GPU was reclaimed by its holder", NULL);
	/* no grant asked for: nothing is read */
	assert_int_equal(policy_read_grant(&(struct gs_config){ .lib_dir = NULL }, &me, &req,
					   &grant, &err),
			 0);
	assert_string_equal(grant.name, "");
}

static void who_is_a_borrower(void **state)
{
	struct source sources[] = { source_of("a", false, NULL), source_of("b", false, NULL) };
	struct gs_grant grant = { .kind = GS_GRANT_SPOT };

	assert_false(policy_is_borrower(&grant, sources, 2)); /* no name, no grant */
	(void)strcpy(grant.name, GRANT);
	assert_true(policy_is_borrower(&grant, sources, 2));
	grant.kind = GS_GRANT_SHARE;
	assert_false(policy_is_borrower(&grant, sources, 2));
	sources[0].record.role = GS_ROLE_TARGET;
	assert_false(policy_is_borrower(&grant, sources, 2));
	sources[1].record.role = GS_ROLE_BORROWER;
	assert_true(policy_is_borrower(&grant, sources, 2));
	assert_false(policy_is_borrower(&grant, sources, 1));
}

#define OWN_NS                                                                          \
	"\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"}," \
	"{\"type\":\"mount\"}]"

static void borrowers(void **state)
{
#define CAPS(set, cap)                                                              \
	"{\"process\":{\"capabilities\":{\"" set "\":[\"CAP_KILL\",\"" cap "\"]}}," \
	"\"linux\":{" OWN_NS "}}"
	static const struct {
		const char *spec, *words; /* NULL: allowed */
	} rows[] = {
		{ "{\"linux\":{" OWN_NS "}}", NULL },
		{ CAPS("bounding", "CAP_CHOWN"), NULL },
		{ CAPS("bounding", "CAP_SYS_ADMIN"), "CAP_SYS_ADMIN" },
		{ CAPS("effective", "CAP_SYS_MODULE"), "CAP_SYS_MODULE" },
		{ CAPS("permitted", "CAP_NET_ADMIN"), "CAP_NET_ADMIN" },
		{ CAPS("inheritable", "CAP_SYS_RAWIO"), "CAP_SYS_RAWIO" },
		{ CAPS("ambient", "CAP_SYS_PTRACE"), "CAP_SYS_PTRACE" },
		{ CAPS("bounding", "cap_sys_admin"), "CAP_SYS_ADMIN" },
		{ CAPS("bounding", "SYS_ADMIN"), "CAP_SYS_ADMIN" },
		{ CAPS("bounding", "CAP_SYS_\\u0041DMIN"), "CAP_SYS_ADMIN" },
		{ CAPS("bounding\":[],\"bounding", "CAP_SYS_ADMIN"), "twice" },
		{ CAPS("Bounding", "CAP_SYS_ADMIN"), "case" },
		{ "{\"linux\":{" OWN_NS ",\"resources\":{\"devices\":[{\"allow\":true,"
		  "\"access\":\"rwm\"}]}}}",
		  "privileged" },
		{ "{\"linux\":{}}", "host's pid namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"}]}}",
		  "host's network namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"}]}}",
		  "host's ipc namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"path\":\"/proc/1/ns/pid\"},"
		  "{\"type\":\"network\"},{\"type\":\"ipc\"}]}}",
		  "host's pid namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"path\":\"/proc/self/ns/pid\"},"
		  "{\"type\":\"network\"},{\"type\":\"ipc\"}]}}",
		  "host's pid namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\","
		  "\"path\":\"/proc/1/ns/net\"},{\"type\":\"ipc\"}]}}",
		  "host's network namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},"
		  "{\"type\":\"ipc\",\"path\":\"/nowhere\"}]}}",
		  "host's ipc namespace" },
		/* an empty path is a new namespace; one that Go would read elsewhere is none */
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"path\":\"\"},"
		  "{\"type\":\"network\"},{\"type\":\"ipc\"}]}}",
		  NULL },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"Path\":\"/proc/1/ns/pid\"},"
		  "{\"type\":\"network\"},{\"type\":\"ipc\"}]}}",
		  "host's pid namespace" },
		{ "{\"linux\":{\"namespaces\":[{\"type\":\"pid\",\"path\":\"\",\"path\":"
		  "\"/proc/1/ns/pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"}]}}",
		  "host's pid namespace" },
	};
	struct source source = source_of("other", false, NULL);

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		const struct slice none = { 0 };
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };
		int r;

		spec_make(&spec, rows[i].spec);
		r = policy_check_borrower(&spec, &none, &source, 1, &err);
		if ((r < 0) != (rows[i].words != NULL) ||
		    (rows[i].words && !strstr(err.msg, rows[i].words)))
			fail_msg("%s: %d, \"%s\"", rows[i].spec, r, err.msg);
	}
#undef CAPS
}

/* Member and borrower at once: cards of one's own, or of a holder in the own pod. */
static void borrowers_hold_nothing(void **state)
{
	struct source source = source_of("pod", true, NULL);
	cleanup_slice struct slice own = { 0 };
	const struct slice none = { 0 };
	cleanup_catalogue struct gs_catalogue cat = { 0 };
	cleanup_spec struct spec spec, with_card;
	struct gs_err err = { 0 };

	catalogue_make(&cat, *state);
	spec_make(&spec, "{\"linux\":{" OWN_NS "}}");
	spec_make(&with_card, "{\"linux\":{" OWN_NS ",\"devices\":[{\"path\":\"/dev/zero\","
			      "\"type\":\"c\",\"major\":1,\"minor\":5}]}}");
	assert_int_equal(policy_check_borrower(&spec, &none, &source, 1, &err), -EACCES);
	expect_words(&err, "ns/pod/main", "member and borrower", NULL);
	source.record.role = GS_ROLE_BORROWER;
	assert_int_equal(policy_check_borrower(&spec, &none, &source, 1, &err), 0);
	slice_find(&with_card, &cat, &own);
	assert_int_equal(policy_check_borrower(&with_card, &own, &source, 1, &err), -EACCES);
	expect_words(&err, "/dev/zero", NULL);
}

static void pid_namespaces(void **state)
{
	static const struct {
		const char *namespaces;
		bool shared;
	} rows[] = {
		{ "", true }, /* the host's */
		{ "{\"type\":\"pid\"}", false },
		{ "{\"type\":\"pid\",\"path\":\"\"}", false },
		{ "{\"type\":\"pid\",\"path\":\"/proc/7/ns/pid\"}", true },
		{ "{\"type\":\"network\"}", true },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *text =
			gs_asprintf("{\"linux\":{\"namespaces\":[%s]}}", rows[i].namespaces);
		cleanup_spec struct spec spec;

		spec_make(&spec, text);
		assert_int_equal(policy_shares_pid_namespace(&spec), rows[i].shared);
	}
}

static void user_namespaces(void **state)
{
	static const struct {
		const char *linux_obj;
		int want;
	} rows[] = {
		{ "{}", 0 },
		{ "{\"namespaces\":[{\"type\":\"pid\"}]}", 0 },
		{ "{\"uidMappings\":[]}", 0 },
		{ "{\"uidMappings\":null}", 0 },
		{ "{\"namespaces\":[{\"type\":\"user\"}]}", -EPERM },
		{ "{\"namespaces\":[{\"type\":\"user\",\"path\":\"/proc/7/ns/user\"}]}", -EPERM },
		{ "{\"uidMappings\":[{\"containerID\":0,\"hostID\":1000,\"size\":1}]}", -EPERM },
	};

	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *text = gs_asprintf("{\"linux\":%s}", rows[i].linux_obj);
		cleanup_spec struct spec spec;
		struct gs_err err = { 0 };

		spec_make(&spec, text);
		if (policy_check_user_namespace(&spec, &err) != rows[i].want)
			fail_msg("%s: %s", text, err.msg);
		if (rows[i].want)
			expect_words(&err, "user namespace", NULL);
	}
}

/* A caller may have no use for the message. */
static void without_a_message(void **state)
{
	static const char *const twice[] = {
		"{\"linux\":{" OWN_NS "},\"process\":{\"capabilities\":{},\"capabilities\":{}}}",
		"{\"linux\":{" OWN_NS "},\"process\":{\"capabilities\":{\"bounding\":[],"
		"\"Bounding\":[]}}}",
	};
	struct slice none = { 0 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(twice); i++) {
		cleanup_spec struct spec spec;

		spec_make(&spec, twice[i]);
		assert_int_equal(policy_check_borrower(&spec, &none, NULL, 0, NULL), -EEXIST);
	}
	if (geteuid() == 0) {
		cleanup_spec struct spec spec;

		spec_make(&spec, "{\"linux\":{\"uidMappings\":[],\"uidMappings\":[]}}");
		assert_int_equal(policy_check_user_namespace(&spec, NULL), -EEXIST);
	}
}

/* As who calls a rootless runtime: another user, or root of another user namespace. */
static void rootless_callers(void **state)
{
	for (int i = 0; i < 2; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			cleanup_spec struct spec spec;
			struct gs_err err = { 0 };

			spec_make(&spec, "{\"linux\":{}}");
			if (i == 0 ? unshare(CLONE_NEWUSER) < 0 :
				     geteuid() == 0 && setuid(1000) < 0)
				_exit(77);
			_exit(policy_check_user_namespace(&spec, &err) == -EPERM &&
					      strstr(err.msg, "rootless") ?
				      0 :
				      1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77) {
			print_message("skipped: no user namespace can be made here\n");
			skip();
		}
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_message),
		cmocka_unit_test(same_pod_always),
		cmocka_unit_test(another_pod_needs_a_grant),
		cmocka_unit_test(equal_annotations_where_that_is_configured),
		cmocka_unit_test(each_source_is_checked),
		cmocka_unit_test_setup_teardown(grants_bring_their_sources_along, setup, teardown),
		cmocka_unit_test_setup_teardown(a_grant_for_another_container, setup, teardown),
		cmocka_unit_test_setup_teardown(grants_out_of_force, setup, teardown),
		cmocka_unit_test(who_is_a_borrower),
		cmocka_unit_test(borrowers),
		cmocka_unit_test_setup_teardown(borrowers_hold_nothing, setup, teardown),
		cmocka_unit_test(pid_namespaces),
		cmocka_unit_test(user_namespaces),
		cmocka_unit_test(rootless_callers),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
