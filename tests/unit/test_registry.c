// SPDX-License-Identifier: Apache-2.0
/* The registry: files, names, what is damaged, and who finds what. Life and death are apart. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "tests/unit/tmpdir.h"

#define SPEC                                                                         \
	"{\"linux\":{\"devices\":[{\"path\":\"/dev/x0\",\"major\":1"                 \
	"8446744073709551615000000000000000000000000000000000000000000000000000001," \
	" \"x\" : 1e3,\"\\u00e9\":\"\\ud83d\\ude00\"}]}}"

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

/* A record of @id named ns/@pod/main; borrowed strings, not to be freed. */
static struct gs_record record_of(const char *id, const char *pod)
{
	static char bundle[] = "/run/bundle", ns[] = "ns", container[] = "main", spec[] = "{}";

	return (struct gs_record){
		.id = (char *)id,
		.bundle = bundle,
		.identity = { ns, (char *)pod, container },
		.role = GS_ROLE_HOLDER,
		.spec = spec,
		.spec_len = 2,
	};
}

static void write_ok(const char *dir, const struct gs_record *record)
{
	struct gs_err err = { 0 };
	int r = gs_registry_write(dir, record, &err);

	if (r < 0)
		fail_msg("write %s: %s", record->id, err.msg);
}

static const char *name_entry(const struct gs_record *record)
{
	static char name[300];

	(void)snprintf(name, sizeof(name), "by-name/%016llx/%s",
		       (unsigned long long)gs_identity_hash(&record->identity), record->id);
	return name;
}

static void expect_mode(const char *dir, const char *name, mode_t mode)
{
	struct stat st;

	assert_int_equal(lstat(tmpdir_path(dir, name), &st), 0);
	assert_int_equal(st.st_mode, mode);
	assert_int_equal(st.st_uid, 0);
}

static void everything_comes_back(void **state)
{
	char *ids[] = { (char[]){ "src-1" }, (char[]){ "src-2" } };
	struct gs_record in = record_of("c1", "web-0");
	cleanup_record struct gs_record out = { 0 };
	struct gs_err err = { 0 };

	in.pid_file = (char[]){ "/run/b/init.pid" };
	in.sandbox_id = (char[]){ "sandbox" };
	in.pod_uid = (char[]){ "3c0ffee0-0000-4000-8000-000000000001" };
	in.annotations = (char[]){ "{ \"gpushare.k8s.io/user_id\":\"a\\\"\\u0001b\" }" };
	in.role = GS_ROLE_BORROWER;
	in.next = (char[]){ "/usr/bin/my \"runc\"" };
	in.cgroups_path = (char[]){ "/kubepods/p/c1" };
	in.boot_id = (char[]){ "11111111-2222-3333-4444-555555555555" };
	in.start_ticks = INT64_MAX;
	in.deadline_ms = 99;
	in.grant = (char[]){ "0123456789abcdef0123456789abcdef" };
	in.sources = (struct gs_strv){ ids, 2 };
	in.shared_pid = true;
	in.spec = (char[]){ SPEC };
	in.spec_len = strlen(SPEC);
	in.bundle = (char[]){ "/run/b\\\n\t\"\xc3\xa9" };
	write_ok(*state, &in);

	assert_int_equal(gs_registry_read(*state, "c1", &out, &err), 0);
	assert_string_equal(out.id, in.id);
	assert_string_equal(out.bundle, in.bundle);
	assert_string_equal(out.pid_file, in.pid_file);
	assert_true(gs_identity_equal(&out.identity, &in.identity));
	assert_string_equal(out.sandbox_id, in.sandbox_id);
	assert_string_equal(out.pod_uid, in.pod_uid);
	assert_string_equal(out.annotations, in.annotations);
	assert_int_equal(out.role, GS_ROLE_BORROWER);
	assert_string_equal(out.next, in.next);
	assert_string_equal(out.cgroups_path, in.cgroups_path);
	assert_string_equal(out.boot_id, in.boot_id);
	assert_true(out.start_ticks == INT64_MAX);
	assert_int_equal(out.deadline_ms, 99);
	assert_string_equal(out.grant, in.grant);
	assert_int_equal(out.sources.n, 2);
	assert_string_equal(out.sources.v[0], "src-1");
	assert_string_equal(out.sources.v[1], "src-2");
	assert_true(out.shared_pid);
	/* The slice is the same bytes, numbers that no library keeps included. */
	assert_string_equal(out.spec, SPEC);
	assert_int_equal(out.spec_len, strlen(SPEC));
}

static void the_least_comes_back(void **state)
{
	struct gs_record in = { .id = (char[]){ "c" },
				.bundle = (char[]){ "/b" },
				.spec = (char[]){ " {} " },
				.spec_len = 4 };
	cleanup_record struct gs_record out = { 0 };
	cleanup_free char *text = NULL;

	write_ok(*state, &in);
	text = tmpdir_read(*state, "containers/c.json");
	assert_string_equal(text, "{\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\","
				  "\"spec\":{}}\n");
	assert_int_equal(gs_registry_read(*state, "c", &out, NULL), 0);
	assert_false(gs_identity_is_set(&out.identity));
	assert_null(out.pid_file);
	assert_null(out.next);
	assert_null(out.annotations);
	assert_int_equal(out.sources.n, 0);
	assert_false(out.shared_pid);
	/* No name, no entry. */
	assert_int_equal(tmpdir_count(*state, "by-name"), -1);
	assert_int_equal(tmpdir_count(*state, "containers"), 1);
	assert_null(gs_registry_next(*state, "c", NULL));
}

static void only_root_may_look(void **state)
{
	const char *run = tmpdir_path(*state, "run/gpushare");
	struct gs_record in = record_of("c1", "p");
	mode_t old = umask(0);

	in.next = (char[]){ "/usr/sbin/runc" };
	write_ok(run, &in);
	(void)umask(old);
	expect_mode(run, "containers", S_IFDIR | 0700);
	expect_mode(run, "by-name", S_IFDIR | 0700);
	expect_mode(run, "containers/c1.json", S_IFREG | 0600);
	expect_mode(run, name_entry(&in), S_IFREG | 0600);
	expect_mode(run, "containers/c1.next", S_IFLNK | 0777);
}

static void refuses_a_folder_of_others(void **state)
{
	struct gs_record in = record_of("c1", "p");
	struct gs_err err = { 0 };
	cleanup_record struct gs_record out = { 0 };

	write_ok(*state, &in);
	assert_int_equal(chmod(tmpdir_path(*state, "containers"), 0770), 0);
	assert_int_equal(gs_registry_write(*state, &in, &err), -EPERM);
	assert_int_equal(gs_registry_read(*state, "c1", &out, &err), -EPERM);
	assert_int_equal(chmod(tmpdir_path(*state, "containers"), 0700), 0);
	assert_int_equal(chown(tmpdir_path(*state, "containers"), 1000, 0), 0);
	assert_int_equal(gs_registry_read(*state, "c1", &out, &err), -EPERM);
	assert_non_null(strstr(err.msg, "containers"));
}

static void next_runtime(void **state)
{
	struct gs_record in = record_of("c1", "p");
	char *next;

	in.next = (char[]){ "/opt/a/runc" };
	write_ok(*state, &in);
	next = gs_registry_next(*state, "c1", NULL);
	assert_string_equal(next, "/opt/a/runc");
	free(next);
	in.next = (char[]){ "/opt/b/crun" };
	write_ok(*state, &in);
	next = gs_registry_next(*state, "c1", NULL);
	assert_string_equal(next, "/opt/b/crun");
	free(next);
	/* Written once, then not: the old one must not stay. */
	in.next = NULL;
	write_ok(*state, &in);
	assert_null(gs_registry_next(*state, "c1", NULL));
	assert_null(gs_registry_next(*state, "none", NULL));
	assert_null(gs_registry_next(*state, "../containers/c1", NULL));
	assert_null(gs_registry_next(*state, "", NULL));
	assert_null(gs_registry_next("/nonexistent", "c1", NULL));
	assert_int_equal(tmpdir_count(*state, "containers"), 1);
}

/* ctr, nerdctl and runc by hand use one id below several roots. */
static void next_runtime_of_another_root(void **state)
{
	struct gs_record in = record_of("web", "p");
	char *next;

	in.next = (char[]){ "/opt/a/runc" };
	in.root = (char[]){ "/run/a" };
	write_ok(*state, &in);
	next = gs_registry_next(*state, "web", "/run/a");
	assert_string_equal(next, "/opt/a/runc");
	free(next);
	assert_null(gs_registry_next(*state, "web", "/run/b"));
	assert_null(gs_registry_next(*state, "web", "/run/"));
	assert_null(gs_registry_next(*state, "web", NULL));
	in.root = NULL;
	write_ok(*state, &in);
	assert_null(gs_registry_next(*state, "web", "/run/a"));
}

/* A container that gets no record must not be taken for the dead one whose id it has. */
static void drops_the_dead(void **state)
{
	struct gs_record in = record_of("web", "p"), out = { 0 };

	write_ok(*state, &in);
	gs_registry_drop_dead(*state, "web");
	assert_int_equal(gs_registry_read(*state, "web", &out, NULL), -ENOENT);
	assert_int_equal(tmpdir_count(*state, "containers"), 0);
	gs_registry_drop_dead(*state, "web");
	gs_registry_drop_dead(*state, "../web");
	gs_registry_drop_dead("/nonexistent", "web");
}

static void refuses_what_could_not_be_read(void **state)
{
	struct gs_record in = record_of("c1", "p");
	struct gs_hook_record hook = { .pid = 1, .cgroup = (char[]){ "/\xff" } };
	struct gs_err err = { 0 };

	in.spec = NULL;
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	in.spec = (char[]){ "[]" };
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "spec"));
	in.spec = (char[]){ "{},\"role\":\"target\"" };
	in.spec_len = strlen(in.spec);
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	in = record_of("c1", "p");
	in.annotations = (char[]){ "{\"a\":}" };
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "annotations"));
	in = record_of("c1", "p");
	in.bundle = NULL;
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "bundle"));
	in.bundle = (char[]){ "/b\xff" };
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "bundle is not UTF-8"));
	in = record_of("c1", "\xc0\x80");
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	in = record_of("c1", NULL);
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "pod is missing"));
	in = record_of("c1", "p");
	in.sources = (struct gs_strv){ &in.bundle, 1 };
	assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "sources"));
	assert_int_equal(gs_registry_write_hook(*state, "c1", &hook, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "cgroup"));
	/* Nothing was made. */
	assert_int_equal(tmpdir_count(*state, "."), 0);
}

static void ids_are_no_paths(void **state)
{
	static const char *const bad[] = { "", "..", "../c", "a/b", "/etc/passwd", ".x", "c.hook" };
	cleanup_record struct gs_record out = { 0 };
	struct gs_hook_record hook = { .pid = 1 };
	struct gs_err err = { 0 };

	tmpdir_write(*state, "outside.json", "{}");
	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		struct gs_record in = record_of(bad[i], "p");

		assert_int_equal(gs_registry_write(*state, &in, &err), -EINVAL);
		assert_int_equal(gs_registry_read(*state, bad[i], &out, &err), -EINVAL);
		assert_int_equal(gs_registry_write_hook(*state, bad[i], &hook, &err), -EINVAL);
		assert_int_equal(gs_registry_read_hook(*state, bad[i], &hook, &err), -EINVAL);
		assert_int_equal(gs_registry_mark_deleted(*state, bad[i], &err), 0);
		gs_registry_remove(*state, bad[i]);
		gs_registry_remove(*state, "../outside");
	}
	assert_int_equal(tmpdir_count(*state, "."), 1);
}

/* Damaged records: one wrong thing each, and the words that must name it. */
static void damaged_records(void **state)
{
#define HEAD "{\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{}"
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "c.json" },
		{ "{", "c.json" },
		{ "[1]", "object" },
		{ "null", "object" },
		{ HEAD "}{}", "c.json" },
		{ HEAD ",\"bundle\":\"/c\"}", "bundle" },
		{ HEAD ",\"Bundle\":\"/c\"}", "bundle" },
		{ "{\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{}}",
		  "v is missing" },
		{ "{\"v\":2,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{}}",
		  "v is 2" },
		{ "{\"v\":\"1\",\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{}}",
		  "v must be" },
		{ "{\"v\":1,\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{}}", "id is missing" },
		{ "{\"v\":1,\"id\":\"d\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":{}}",
		  "id must be" },
		{ "{\"v\":1,\"id\":\"c\",\"role\":\"holder\",\"spec\":{}}", "bundle is missing" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":null,\"role\":\"holder\",\"spec\":{}}",
		  "bundle is missing" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":7,\"role\":\"holder\",\"spec\":{}}",
		  "bundle must be a string" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":\"a\\u0000b\",\"role\":\"holder\",\"spec\":{}}",
		  "bundle must be a string" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"spec\":{}}", "role is missing" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"boss\",\"spec\":{}}",
		  "role must be" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\"}",
		  "spec is missing" },
		{ "{\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"holder\",\"spec\":[]}",
		  "spec must be" },
		{ HEAD ",\"pid_file\":1}", "pid_file" },
		{ HEAD ",\"identity\":\"a/b/c\"}", "identity" },
		{ HEAD ",\"identity\":{\"namespace\":\"n\",\"pod\":\"p\"}}",
		  "container is missing" },
		{ HEAD ",\"annotations\":[]}", "annotations" },
		{ HEAD ",\"start_ticks\":-1}", "start_ticks" },
		{ HEAD ",\"start_ticks\":1.0}", "start_ticks" },
		{ HEAD ",\"deadline_ms\":99999999999999999999}", "deadline_ms" },
		{ HEAD ",\"sources\":\"a\"}", "sources" },
		{ HEAD ",\"sources\":[1]}", "sources" },
		{ HEAD ",\"sources\":[\"../a\"]}", "sources" },
		{ HEAD ",\"shared_pid\":1}", "shared_pid" },
		{ HEAD ",\"x\":\"\xff\"}", "c.json" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		struct gs_record out = { 0 };
		struct gs_err err = { 0 };
		int r;

		tmpdir_write(*state, "containers/c.json", cases[i].text);
		r = gs_registry_read(*state, "c", &out, &err);
		if (r != -EINVAL || err.code != EINVAL || !strstr(err.msg, cases[i].words) ||
		    !strstr(err.msg, "containers/c.json") || out.id)
			fail_msg("%s: %d, \"%s\"", cases[i].text, r, err.msg);
		assert_int_equal(gs_registry_read(*state, "c", &out, NULL), -EINVAL);
	}
#undef HEAD
}

static void newer_members_are_ignored(void **state)
{
	cleanup_record struct gs_record out = { 0 };

	tmpdir_write(*state, "containers/c.json",
		     "{\"future\":[{}],\"v\":1,\"id\":\"c\",\"bundle\":\"/b\",\"role\":\"target\","
		     "\"spec\":{\"x\":1},\"pid_file\":null,\"identity\":{\"namespace\":\"n\","
		     "\"pod\":\"p\",\"container\":\"c\",\"cluster\":\"x\"}}");
	assert_int_equal(gs_registry_read(*state, "c", &out, NULL), 0);
	assert_int_equal(out.role, GS_ROLE_TARGET);
	assert_string_equal(out.identity.container, "c");
	assert_null(out.pid_file);
	assert_string_equal(out.spec, "{\"x\":1}");
}

static void what_is_no_file(void **state)
{
	cleanup_record struct gs_record out = { 0 };
	struct gs_err err = { 0 };
	const char *path = tmpdir_path(*state, "containers/c.json");

	assert_int_equal(gs_registry_read(*state, "c", &out, &err), -ENOENT);
	assert_int_equal(gs_registry_read("/nonexistent", "c", &out, &err), -ENOENT);
	tmpdir_write(*state, "containers/real", "{}");
	assert_int_equal(symlink("real", path), 0);
	assert_int_equal(gs_registry_read(*state, "c", &out, &err), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(gs_registry_read(*state, "c", &out, &err), -EINVAL);
	assert_int_equal(unlink(path), 0);
	tmpdir_write(*state, "containers/c.json", "{");
	assert_int_equal(truncate(path, GS_RECORD_MAX + 1), 0);
	assert_int_equal(gs_registry_read(*state, "c", &out, &err), -EFBIG);
	assert_non_null(strstr(err.msg, "c.json"));
}

static void hook_records(void **state)
{
	struct gs_hook_record in = { .pid = 4711,
				     .start_ticks = 99,
				     .pid_ns = 4026531836,
				     .cgroup = (char[]){ "/k/\"c\"" } };
	cleanup_hook_record struct gs_hook_record out = { 0 };
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "{\"v\":1,\"id\":\"c\",\"start_ticks\":1}", "pid is missing" },
		{ "{\"v\":1,\"id\":\"c\",\"pid\":1}", "start_ticks is missing" },
		{ "{\"v\":1,\"id\":\"c\",\"pid\":0,\"start_ticks\":1}", "pid must be" },
		{ "{\"v\":1,\"id\":\"c\",\"pid\":2147483648,\"start_ticks\":1}", "pid must be" },
		{ "{\"v\":1,\"id\":\"d\",\"pid\":1,\"start_ticks\":1}", "id must be" },
		{ "{\"v\":3,\"id\":\"c\",\"pid\":1,\"start_ticks\":1}", "v is 3" },
		{ "{\"v\":1,\"id\":\"c\",\"pid\":1,\"start_ticks\":1,\"cgroup\":1}", "cgroup" },
		{ "", "c.hook.json" },
	};
	struct gs_err err = { 0 };

	assert_int_equal(gs_registry_read_hook(*state, "c", &out, &err), -ENOENT);
	assert_int_equal(gs_registry_write_hook(*state, "c", &in, &err), 0);
	expect_mode(*state, "containers/c.hook.json", S_IFREG | 0600);
	assert_int_equal(gs_registry_read_hook(*state, "c", &out, &err), 0);
	assert_int_equal(out.pid, 4711);
	assert_int_equal(out.start_ticks, 99);
	assert_true(out.pid_ns == 4026531836);
	assert_string_equal(out.cgroup, "/k/\"c\"");
	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		struct gs_hook_record none = { 0 };

		tmpdir_write(*state, "containers/c.hook.json", bad[i].text);
		assert_int_equal(gs_registry_read_hook(*state, "c", &none, &err), -EINVAL);
		if (!strstr(err.msg, bad[i].words) || !strstr(err.msg, "c.hook.json"))
			fail_msg("%s: \"%s\"", bad[i].text, err.msg);
	}
}

struct found {
	char ids[256];
	int stop_at, n;
};

static int collect(const struct gs_record *record, void *arg)
{
	struct found *found = arg;

	(void)strcat(found->ids, record->id);
	return ++found->n == found->stop_at ? 77 : 0;
}

static void finds_by_name(void **state)
{
	struct gs_record a = record_of("a", "p"), b = record_of("b", "p"), c = record_of("c", "q");
	struct gs_identity nobody = { (char[]){ "ns" }, (char[]){ "r" }, (char[]){ "main" } };
	struct found found = { 0 };
	char where[64], name[128];
	unsigned int broken = 9;

	assert_int_equal(gs_registry_each_named(*state, &a.identity, collect, &found, &broken), 0);
	assert_int_equal(found.n, 0);
	assert_int_equal(broken, 0);
	write_ok(*state, &a);
	write_ok(*state, &b);
	write_ok(*state, &c);
	assert_int_equal(gs_registry_each_named(*state, &a.identity, collect, &found, &broken), 0);
	assert_int_equal(found.n, 2);
	assert_true(strcmp(found.ids, "ab") == 0 || strcmp(found.ids, "ba") == 0);
	found = (struct found){ 0 };
	assert_int_equal(gs_registry_each_named(*state, &nobody, collect, &found, &broken), 0);
	assert_int_equal(found.n, 0);
	/* Stops where it is told to, with what it was told. */
	found = (struct found){ .stop_at = 1 };
	assert_int_equal(gs_registry_each_named(*state, &a.identity, collect, &found, &broken), 77);
	assert_int_equal(found.n, 1);

	/*
	 * One broken record, one entry without a record, one of another container (two names can
	 * share a hash), one whose name is none: the good one is found all the same.
	 */
	(void)snprintf(where, sizeof(where), "by-name/%016llx",
		       (unsigned long long)gs_identity_hash(&a.identity));
	tmpdir_write(*state, "containers/b.json", "{\"v\":1");
	(void)snprintf(name, sizeof(name), "%s/ghost", where);
	tmpdir_write(*state, name, "");
	(void)snprintf(name, sizeof(name), "%s/c", where);
	tmpdir_write(*state, name, "");
	(void)snprintf(name, sizeof(name), "%s/.x", where);
	tmpdir_write(*state, name, "");
	found = (struct found){ 0 };
	assert_int_equal(gs_registry_each_named(*state, &a.identity, collect, &found, &broken), 0);
	assert_string_equal(found.ids, "a");
	assert_int_equal(broken, 1);

	assert_int_equal(chmod(tmpdir_path(*state, "containers"), 0777), 0);
	found = (struct found){ 0 };
	assert_int_equal(gs_registry_each_named(*state, &a.identity, collect, &found, &broken), 0);
	assert_int_equal(found.n, 0);
	assert_int_equal(broken, 1);
}

static void lists_ids(void **state)
{
	cleanup_strv struct gs_strv ids = { 0 };
	struct gs_record a = record_of("zeta", "p"), b = record_of("alpha", "p");
	struct gs_hook_record hook = { .pid = 1 };

	assert_int_equal(gs_registry_ids(*state, &ids, NULL), 0);
	assert_int_equal(ids.n, 0);
	a.next = (char[]){ "/x" };
	write_ok(*state, &a);
	write_ok(*state, &b);
	assert_int_equal(gs_registry_write_hook(*state, "zeta", &hook, NULL), 0);
	tmpdir_write(*state, "containers/.hidden.json", "");
	tmpdir_write(*state, "containers/.json", "");
	tmpdir_write(*state, "containers/x.json.gpushare-0123", "");
	assert_int_equal(gs_registry_ids(*state, &ids, NULL), 0);
	assert_int_equal(ids.n, 2);
	assert_string_equal(ids.v[0], "alpha");
	assert_string_equal(ids.v[1], "zeta");
}

static void a_failed_write_leaves_nothing(void **state)
{
	struct gs_record in = record_of("c1", "p");
	struct gs_err err = { 0 };

	in.next = (char[]){ "/x" };
	tmpdir_write(*state, "by-name", "in the way");
	assert_true(gs_registry_write(*state, &in, &err) < 0);
	assert_non_null(strstr(err.msg, "by-name"));
	assert_int_equal(tmpdir_count(*state, "containers"), 0);
}

/* Somebody who can write into by-name/ is root; all the same nothing is made outside. */
static void links_are_not_followed(void **state)
{
	struct gs_record in = record_of("c1", "p");
	char name[64];
	struct gs_err err = { 0 };

	(void)snprintf(name, sizeof(name), "by-name/%016llx",
		       (unsigned long long)gs_identity_hash(&in.identity));
	tmpdir_write(*state, "elsewhere/x", "");
	tmpdir_write(*state, "by-name/x", "");
	assert_int_equal(symlink("../elsewhere", tmpdir_path(*state, name)), 0);
	assert_true(gs_registry_write(*state, &in, &err) < 0);
	assert_int_equal(tmpdir_count(*state, "elsewhere"), 1);
}

static void role_names(void **state)
{
	assert_string_equal(gs_role_name(GS_ROLE_HOLDER), "holder");
	assert_string_equal(gs_role_name(GS_ROLE_TARGET), "target");
	assert_string_equal(gs_role_name(GS_ROLE_BORROWER), "borrower");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(the_least_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(only_root_may_look, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_a_folder_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(next_runtime, setup, teardown),
		cmocka_unit_test_setup_teardown(next_runtime_of_another_root, setup, teardown),
		cmocka_unit_test_setup_teardown(drops_the_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_what_could_not_be_read, setup, teardown),
		cmocka_unit_test_setup_teardown(ids_are_no_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_records, setup, teardown),
		cmocka_unit_test_setup_teardown(newer_members_are_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(hook_records, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failed_write_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(links_are_not_followed, setup, teardown),
		cmocka_unit_test(role_names),
	};

	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
