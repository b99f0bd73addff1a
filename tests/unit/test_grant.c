// SPDX-License-Identifier: Apache-2.0
/* Grants: what is one, when it is in force, who may use it, and that its name is never told. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
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
#include "common/grant.h"
#include "common/proc.h"
#include "tests/unit/tmpdir.h"

#define NAME "0123456789abcdef0123456789abcdef"
#define FILE_NAME "grants/" NAME ".json"
#define BOUND_NAME "grants/" NAME ".bound"
#define SHARE "{\"v\":1,\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"ns/pod/main\"]"

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

/* The names that a grant of the tests has. */
static struct gs_identity name_of(const char *pod)
{
	static char ns[] = "ns", container[] = "main";

	return (struct gs_identity){ ns, (char *)pod, container };
}

static void expect_error(int r, const struct gs_err *err, int code, const char *words)
{
	if (r != code || err->code != -code || !strstr(err->msg, words))
		fail_msg("%d, \"%s\" where \"%s\" was expected", r, err->msg, words);
	/* Six characters of a grant's name may be told, seven not. */
	if (strstr(err->msg, "0123456"))
		fail_msg("\"%s\" tells the name", err->msg);
}

static void names(void **state)
{
	static const char *const bad[] = { "",
					   "0123456789abcdef0123456789abcde",
					   "0123456789abcdef0123456789abcdef0",
					   "0123456789ABCDEF0123456789abcdef",
					   "0123456789abcdef0123456789abcdeg",
					   "../../../../../../../etc/passwd0",
					   "0123456789abcdef/123456789abcdef",
					   "0123456789abcdef0123456789abcde\n",
					   " 123456789abcdef0123456789abcdef" };
	struct gs_grant grant;
	struct gs_err err;
	char buf[10];

	assert_true(gs_grant_name_valid(NAME));
	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		assert_false(gs_grant_name_valid(bad[i]));
		err = (struct gs_err){ 0 };
		expect_error(gs_grant_read(*state, bad[i], &grant, &err), &err, -EINVAL,
			     "hex digits");
	}
	assert_string_equal(gs_grant_short(NAME, buf), "012345...");
	assert_string_equal(gs_grant_short("ab", buf), "ab...");
	assert_string_equal(gs_grant_short("", buf), "...");
}

static void everything_is_read(void **state)
{
	struct gs_identity one = name_of("pod-1"), two = name_of("pod-2"), none = name_of("pod-3");
	cleanup_grant struct gs_grant grant = { 0 };
	struct gs_err err = { 0 };

	tmpdir_write(
		*state, FILE_NAME,
		"{\"v\":1,\"kind\":\"spot\",\"state\":\"revoked\",\"resource\":\"a.com/gpu\","
		"\"cards\":[\"GPU-1\",\"GPU-2\"],\"sources\":[\"ns/pod-1/main\","
		"\"ns/pod-2/main\"],\"free\":[\"GPU-2\"],\"devices\":[\"d\"],\"to\":\"x/y.z/w\","
		"\"lease\":{\"boot_id\":\"b\",\"deadline_ms\":77}}");
	if (gs_grant_read(*state, NAME, &grant, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(grant.name, NAME);
	assert_int_equal(grant.kind, GS_GRANT_SPOT);
	assert_true(grant.revoked);
	assert_string_equal(grant.resource, "a.com/gpu");
	assert_int_equal(grant.cards.n, 2);
	assert_string_equal(grant.cards.v[1], "GPU-2");
	assert_int_equal(grant.free.n, 1);
	assert_string_equal(grant.free.v[0], "GPU-2");
	assert_int_equal(grant.devices.n, 1);
	assert_int_equal(grant.n_sources, 2);
	assert_true(gs_grant_has_source(&grant, &one));
	assert_true(gs_grant_has_source(&grant, &two));
	assert_false(gs_grant_has_source(&grant, &none));
	assert_string_equal(grant.to.pod, "y.z");
	assert_string_equal(grant.lease_boot_id, "b");
	assert_int_equal(grant.lease_deadline_ms, 77);
}

static void the_least_is_read(void **state)
{
	cleanup_grant struct gs_grant grant = { 0 };

	tmpdir_write(*state, FILE_NAME, SHARE "}");
	assert_int_equal(gs_grant_read(*state, NAME, &grant, NULL), 0);
	assert_int_equal(grant.kind, GS_GRANT_SHARE);
	assert_false(grant.revoked);
	assert_null(grant.resource);
	assert_int_equal(grant.cards.n, 0);
	assert_false(gs_identity_is_set(&grant.to));
	assert_null(grant.lease_boot_id);
}

static void malformed_grants(void **state)
{
#define SPOT "{\"v\":1,\"kind\":\"spot\",\"state\":\"active\",\"sources\":[]"
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "", "grant 012345..." },
		{ "{", "grant 012345...:1:" },
		{ "[]", "object" },
		{ SHARE "}x", "grant 012345...:1:" },
		{ SHARE ",\"sources\":[\"a/b/c\"]}", "duplicate" },
		{ SHARE ",\"surprise\":1}", "surprise" },
		{ "{\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"n/p/c\"]}",
		  "v is missing" },
		{ "{\"v\":2,\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"n/p/c\"]}",
		  "v is 2" },
		{ "{\"v\":1,\"state\":\"active\",\"sources\":[\"n/p/c\"]}", "kind is missing" },
		{ "{\"v\":1,\"kind\":\"gift\",\"state\":\"active\",\"sources\":[\"n/p/c\"]}",
		  "kind must be" },
		{ "{\"v\":1,\"kind\":\"share\",\"sources\":[\"n/p/c\"]}", "state is missing" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"on\",\"sources\":[\"n/p/c\"]}",
		  "state must be" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"active\"}", "sources is missing" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"active\",\"sources\":[]}",
		  "sources must not be empty" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"n/p\"]}",
		  "sources" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"_/_/c\"]}",
		  "no meaning" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"active\",\"sources\":[\"n/p/c\","
		  "\"../x/c\"]}",
		  "namespace" },
		{ "{\"v\":1,\"kind\":\"share\",\"state\":\"active\",\"sources\":\"n/p/c\"}",
		  "sources must be" },
		{ SHARE ",\"cards\":\"x\"}", "cards" },
		{ SHARE ",\"cards\":[1]}", "cards" },
		{ SHARE ",\"resource\":1}", "resource" },
		{ SHARE ",\"free\":[\"x\"]}", "only a spot grant has free cards" },
		{ SHARE ",\"free\":{}}", "free must be" },
		{ SHARE ",\"devices\":[1]}", "devices must be" },
		{ SHARE ",\"to\":\"x\"}", "to: " },
		{ SHARE ",\"to\":[]}", "to must be" },
		{ SHARE ",\"lease\":{\"boot_id\":\"b\",\"deadline_ms\":1}}", "no lease" },
		{ SPOT "}", "lease is missing" },
		{ SPOT ",\"lease\":1}", "lease must be" },
		{ SPOT ",\"lease\":{\"boot_id\":\"b\"}}", "deadline_ms is missing" },
		{ SPOT ",\"lease\":{\"deadline_ms\":1}}", "boot_id is missing" },
		{ SPOT ",\"lease\":{\"boot_id\":\"b\",\"deadline_ms\":-1}}", "deadline_ms" },
		{ SPOT ",\"lease\":{\"boot_id\":\"b\",\"deadline_ms\":1.5}}", "deadline_ms" },
		{ SPOT ",\"lease\":{\"boot_id\":\"b\",\"deadline_ms\":1,\"x\":1}}", "lease" },
	};
#undef SPOT

	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		struct gs_grant grant = { 0 };
		struct gs_err err = { 0 };

		tmpdir_write(*state, FILE_NAME, bad[i].text);
		expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EINVAL,
			     bad[i].words);
		assert_non_null(strstr(err.msg, "grant 012345..."));
		assert_null(grant.sources);
		assert_int_equal(gs_grant_read(*state, NAME, &grant, NULL), -EINVAL);
	}
}

static void only_roots_files(void **state)
{
	struct gs_grant grant = { 0 };
	struct gs_err err = { 0 };
	const char *path = tmpdir_path(*state, FILE_NAME), *dir = tmpdir_path(*state, "grants");

	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -ENOENT, "no such grant");
	tmpdir_write(*state, "grants/other", SHARE "}");
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -ENOENT, "no such grant");
	assert_int_equal(symlink("other", path), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EPERM, "link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EINVAL, "regular");
	assert_int_equal(unlink(path), 0);
	tmpdir_write(*state, FILE_NAME, SHARE "}");
	assert_int_equal(chmod(path, 0620), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EPERM, "others than root");
	assert_int_equal(chmod(path, 0602), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EPERM, "others than root");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chown(path, 1000, 0), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EPERM, "others than root");
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(truncate(path, 65537), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EINVAL, "65536");
	tmpdir_write(*state, FILE_NAME, SHARE "}");
	assert_int_equal(chmod(dir, 0750), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EPERM, "0700");
	assert_int_equal(chmod(dir, 0700), 0);
	assert_int_equal(chown(dir, 1000, 0), 0);
	expect_error(gs_grant_read(*state, NAME, &grant, &err), &err, -EPERM, "grants");
	assert_int_equal(chown(dir, 0, 0), 0);
	assert_int_equal(gs_grant_read(*state, NAME, &grant, &err), 0);
	gs_grant_free(&grant);
}

static void in_force(void **state)
{
	char boot[37], other[] = "00000000-0000-0000-0000-000000000000";
	struct gs_grant grant = { .name = NAME, .kind = GS_GRANT_SHARE };
	struct gs_err err = { 0 };

	assert_int_equal(gs_grant_in_force(&grant, &err), 0);
	grant.revoked = true;
	expect_error(gs_grant_in_force(&grant, &err), &err, -ECANCELED, "was revoked");

	assert_int_equal(gs_boot_id(boot, NULL), 0);
	grant = (struct gs_grant){ .name = NAME, .kind = GS_GRANT_SPOT, .lease_boot_id = boot };
	grant.lease_deadline_ms = gs_boottime_ms() + 60000;
	assert_int_equal(gs_grant_in_force(&grant, &err), 0);
	grant.revoked = true;
	expect_error(gs_grant_in_force(&grant, &err), &err, -ECANCELED,
		     "the GPU was reclaimed by its holder");
	grant.revoked = false;
	grant.lease_deadline_ms = gs_boottime_ms();
	expect_error(gs_grant_in_force(&grant, &err), &err, -ECANCELED, "reclaimed");
	/* The clock begins anew with each boot, so an old deadline may lie far ahead. */
	grant.lease_deadline_ms = gs_boottime_ms() + 60000;
	grant.lease_boot_id = other;
	expect_error(gs_grant_in_force(&grant, &err), &err, -ECANCELED, "reclaimed");
}

static const struct gs_grant_user pod_user = { .pod_uid = "uid-1", .container = "dind" };

static void binds_once(void **state)
{
	const struct gs_grant_user others[] = {
		{ .pod_uid = "uid-2", .container = "dind" },
		{ .pod_uid = "uid-1", .container = "main" },
		{ .container_id = "uid-1" },
		{ .container_id = "dind" },
	};
	cleanup_free char *text = NULL, *uid = NULL;
	struct gs_err err = { 0 };
	struct stat st;

	tmpdir_write(*state, FILE_NAME, SHARE "}");
	assert_int_equal(gs_grant_bound_pod(*state, NAME, &uid, &err), 0);
	assert_null(uid);
	expect_error(gs_grant_bound(*state, NAME, &pod_user, &err), &err, -ENOENT, "not bound");
	assert_false(tmpdir_has(*state, BOUND_NAME));
	assert_false(gs_grant_is_bound(*state, NAME));
	assert_int_equal(gs_grant_bind(*state, NAME, &pod_user, &err), 0);
	assert_true(gs_grant_is_bound(*state, NAME));
	assert_int_equal(gs_grant_bound_pod(*state, NAME, &uid, &err), 0);
	assert_string_equal(uid, "uid-1");
	assert_int_equal(gs_grant_bind(*state, NAME, &pod_user, &err), 0);
	assert_int_equal(gs_grant_bound(*state, NAME, &pod_user, &err), 0);
	text = tmpdir_read(*state, BOUND_NAME);
	assert_string_equal(text, "{\"v\":1,\"pod_uid\":\"uid-1\",\"container\":\"dind\"}\n");
	assert_int_equal(stat(tmpdir_path(*state, BOUND_NAME), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_nlink, 1);
	for (size_t i = 0; i < GS_ARRAY_SIZE(others); i++) {
		expect_error(gs_grant_bind(*state, NAME, &others[i], &err), &err, -EACCES,
			     "bound to another");
		assert_null(strstr(err.msg, "uid"));
		assert_null(strstr(err.msg, "dind"));
		expect_error(gs_grant_bound(*state, NAME, &others[i], &err), &err, -EACCES,
			     "bound to another");
	}
	assert_int_equal(tmpdir_count(*state, "grants"), 2);
}

static void binds_to_a_container_id(void **state)
{
	const struct gs_grant_user user = { .container_id = "c\"1" },
				   other = { .container_id = "c2" },
				   /* An id beside the pod's name does not count. */
		both = { .pod_uid = "u", .container = "c", .container_id = "c\"1" };
	struct gs_err err = { 0 };
	char *uid = NULL;

	tmpdir_write(*state, FILE_NAME, SHARE "}");
	assert_int_equal(gs_grant_bind(*state, NAME, &user, &err), 0);
	assert_int_equal(gs_grant_bind(*state, NAME, &user, &err), 0);
	assert_int_equal(gs_grant_bound_pod(*state, NAME, &uid, &err), 0);
	assert_null(uid);
	expect_error(gs_grant_bind(*state, NAME, &other, &err), &err, -EACCES, "another");
	expect_error(gs_grant_bind(*state, NAME, &both, &err), &err, -EACCES, "another");
	expect_error(gs_grant_bind(*state, NAME, &pod_user, &err), &err, -EACCES, "another");
}

static void binds_only_what_is_there(void **state)
{
	const struct gs_grant_user nobody = { 0 }, half = { .pod_uid = "u" },
				   other_half = { .container = "c", .container_id = "x" },
				   no_utf8 = { .container_id = "\xff" };
	struct gs_err err = { 0 };

	assert_int_equal(gs_grant_bind(*state, NAME, &pod_user, &err), -ENOENT);
	tmpdir_write(*state, "grants/x", "");
	expect_error(gs_grant_bind(*state, NAME, &pod_user, &err), &err, -ENOENT, "no such grant");
	assert_false(tmpdir_has(*state, BOUND_NAME));
	tmpdir_write(*state, FILE_NAME, SHARE "}");
	expect_error(gs_grant_bind(*state, NAME, &nobody, &err), &err, -EINVAL, "nobody");
	expect_error(gs_grant_bind(*state, NAME, &half, &err), &err, -EINVAL, "nobody");
	expect_error(gs_grant_bind(*state, NAME, &other_half, &err), &err, -EINVAL, "nobody");
	expect_error(gs_grant_bind(*state, NAME, &no_utf8, &err), &err, -EINVAL, "binding");
	expect_error(gs_grant_bind(*state, "../x", &pod_user, &err), &err, -EINVAL, "hex");
	assert_false(tmpdir_has(*state, BOUND_NAME));
}

/* What can't be read binds nobody and frees nobody. */
static void damaged_bindings(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{\"v\":1}",
		"{\"v\":2,\"pod_uid\":\"uid-1\",\"container\":\"dind\"}",
		"{\"pod_uid\":\"uid-1\",\"container\":\"dind\"}",
		"{\"v\":1,\"pod_uid\":\"uid-1\"}",
		"{\"v\":1,\"container\":\"dind\"}",
		"{\"v\":1,\"pod_uid\":\"uid-1\",\"container\":\"dind\",\"container_id\":\"x\"}",
		"{\"v\":1,\"pod_uid\":\"uid-1\",\"container\":\"dind\",\"more\":1}",
		"{\"v\":1,\"pod_uid\":1,\"container\":\"dind\"}",
	};
	struct gs_err err = { 0 };
	const char *path = tmpdir_path(*state, BOUND_NAME);

	tmpdir_write(*state, FILE_NAME, SHARE "}");
	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		tmpdir_write(*state, BOUND_NAME, bad[i]);
		expect_error(gs_grant_bind(*state, NAME, &pod_user, &err), &err, -EINVAL,
			     "grant 012345...: its binding");
		expect_error(gs_grant_bound(*state, NAME, &pod_user, &err), &err, -EINVAL,
			     "grant 012345...: its binding");
	}
	tmpdir_write(*state, BOUND_NAME, "{\"v\":1,\"pod_uid\":\"uid-1\",\"container\":\"dind\"}");
	assert_int_equal(gs_grant_bind(*state, NAME, &pod_user, &err), 0);
	assert_int_equal(chmod(path, 0666), 0);
	expect_error(gs_grant_bind(*state, NAME, &pod_user, &err), &err, -EPERM, "others");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	expect_error(gs_grant_bind(*state, NAME, &pod_user, &err), &err, -EPERM, "link");
	assert_false(tmpdir_has(*state, "grants/elsewhere"));
}

/* Many containers that know one name use it at the same moment: exactly one gets it. */
static void one_of_many_wins(void **state)
{
	enum { RACERS = 12, ROUNDS = 15 };

	for (int round = 0; round < ROUNDS; round++) {
		int go[2], winners = 0, losers = 0;
		pid_t pids[RACERS];

		tmpdir_write(*state, FILE_NAME, SHARE "}");
		assert_int_equal(pipe(go), 0);
		for (int i = 0; i < RACERS; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (pids[i] == 0) {
				char uid[16], c;
				struct gs_grant_user user = { .pod_uid = uid, .container = "c" };
				int r;

				(void)snprintf(uid, sizeof(uid), "uid-%d", i);
				(void)close(go[1]);
				(void)!read(go[0], &c, 1);
				r = gs_grant_bind(*state, NAME, &user, NULL);
				/* Whoever lost stays a loser, whoever won may come again. */
				if (gs_grant_bind(*state, NAME, &user, NULL) != r ||
				    gs_grant_bound(*state, NAME, &user, NULL) != r)
					_exit(3);
				_exit(r == 0 ? 0 : r == -EACCES ? 1 : 2);
			}
		}
		(void)close(go[0]);
		(void)close(go[1]);
		for (int i = 0; i < RACERS; i++) {
			int status;

			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_true(WIFEXITED(status));
			winners += WEXITSTATUS(status) == 0;
			losers += WEXITSTATUS(status) == 1;
		}
		assert_int_equal(winners, 1);
		assert_int_equal(losers, RACERS - 1);
		assert_int_equal(tmpdir_count(*state, "grants"), 2);
		assert_int_equal(unlink(tmpdir_path(*state, BOUND_NAME)), 0);
	}
}

static void creates_and_lists(void **state)
{
	struct gs_identity sources[] = { name_of("a"), name_of("b.c") };
	char *cards[] = { (char[]){ "GPU-\"1\"" } }, first[33] = "", second[33] = "";
	struct gs_grant in = { .sources = sources, .n_sources = 2 };
	cleanup_grant struct gs_grant out = { 0 };
	cleanup_strv struct gs_strv list = { 0 };
	const char *lib = tmpdir_path(*state, "var/lib");
	struct gs_err err = { 0 };
	struct stat st;

	assert_int_equal(gs_grant_list(lib, &list, &err), 0);
	assert_int_equal(list.n, 0);
	in.cards = (struct gs_strv){ cards, 1 };
	in.resource = (char[]){ "gpushare/share-gpu" };
	in.to = name_of("web-0");
	if (gs_grant_create(lib, &in, first, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(gs_grant_name_valid(first));
	assert_int_equal(gs_grant_read(lib, first, &out, &err), 0);
	assert_int_equal(out.kind, GS_GRANT_SHARE);
	assert_false(out.revoked);
	assert_string_equal(out.resource, "gpushare/share-gpu");
	assert_string_equal(out.cards.v[0], "GPU-\"1\"");
	assert_int_equal(out.n_sources, 2);
	assert_true(gs_identity_equal(&out.sources[1], &sources[1]));
	assert_true(gs_identity_equal(&out.to, &in.to));
	assert_int_equal(stat(tmpdir_path(lib, "grants"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);

	in = (struct gs_grant){ .sources = sources, .n_sources = 1 };
	assert_int_equal(gs_grant_create(lib, &in, second, &err), 0);
	assert_string_not_equal(first, second);
	assert_int_equal(gs_grant_bind(lib, first, &pod_user, &err), 0);
	tmpdir_write(lib, "grants/README.json", "");
	tmpdir_write(lib, "grants/" NAME ".json.gpushare-1", "");
	assert_int_equal(gs_grant_list(lib, &list, &err), 0);
	assert_int_equal(list.n, 2);
	assert_true(strcmp(list.v[0], list.v[1]) < 0);
	assert_true(gs_strv_has(&list, first));
	assert_true(gs_strv_has(&list, second));
}

/* A name that was told to somebody before the file was there. */
static void creates_what_was_promised(void **state)
{
	struct gs_identity source = name_of("a");
	char *list[] = { (char[]){ "x-0" } };
	struct gs_grant in = {
		.kind = GS_GRANT_SPOT,
		.cards = { list, 1 },
		.free = { list, 1 },
		.devices = { list, 1 },
		.lease_boot_id = (char[]){ "b" },
	};
	cleanup_grant struct gs_grant out = { 0 };
	const char *lib = tmpdir_path(*state, "var/lib");
	struct gs_err err = { 0 };
	char name[33];

	assert_int_equal(gs_grant_name_new(name, &err), 0);
	assert_true(gs_grant_name_valid(name));
	assert_int_equal(gs_grant_read(lib, name, &out, &err), -ENOENT);
	if (gs_grant_create_as(lib, name, &in, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(gs_grant_read(lib, name, &out, &err), 0);
	assert_string_equal(out.free.v[0], "x-0");
	assert_string_equal(out.devices.v[0], "x-0");
	/* Once: neither its state nor what it is about is changed by saying it again. */
	in = (struct gs_grant){ .sources = &source, .n_sources = 1 };
	assert_int_equal(gs_grant_create_as(lib, name, &in, &err), -EEXIST);
	expect_error(gs_grant_create_as(lib, "../x", &in, &err), &err, -EINVAL, "hex digits");
}

static void creates_nothing_unusable(void **state)
{
	struct gs_identity source = name_of("a"), bad = name_of("../b");
	char *cards[] = { (char[]){ "\xff" } }, name[33] = "unchanged";
	struct gs_grant in = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(gs_grant_create(*state, &in, name, &err), -EINVAL);
	in = (struct gs_grant){ .sources = &bad, .n_sources = 1 };
	assert_int_equal(gs_grant_create(*state, &in, name, &err), -EINVAL);
	in = (struct gs_grant){ .sources = &source, .n_sources = 1, .cards = { cards, 1 } };
	assert_int_equal(gs_grant_create(*state, &in, name, &err), -EINVAL);
	in = (struct gs_grant){ .sources = &source, .n_sources = 1, .kind = GS_GRANT_SPOT };
	assert_int_equal(gs_grant_create(*state, &in, name, &err), -EINVAL);
	assert_string_equal(name, "unchanged");
	assert_int_equal(tmpdir_count(*state, "."), 0);
}

static int taken_back(const char *dir, const char *resource, const char *device)
{
	char *one[] = { (char *)device };
	const struct gs_strv devices = { one, 1 };
	struct gs_err err = { 0 };

	return gs_grant_taken_back(dir, resource, &devices, &err);
}

static void what_was_taken_back(void **state)
{
	struct gs_identity source = name_of("a");
	char *both[] = { (char[]){ "card-0" }, (char[]){ "card-1" } };
	struct gs_grant in = { .sources = &source,
			       .n_sources = 1,
			       .resource = (char[]){ "gpushare/spot-gpu" },
			       .devices = { both, 2 } };
	struct gs_err err = { 0 };
	char old[33], new[33];

	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-0"), 0);
	assert_int_equal(gs_grant_create(*state, &in, old, &err), 0);
	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-0"), 0);
	assert_int_equal(gs_grant_revoke(*state, old, &err), 0);
	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-0"), 1);
	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-1"), 1);
	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-2"), 0);
	assert_int_equal(taken_back(*state, "gpushare/share-gpu", "card-0"), 0);
	/* And given again. */
	in.devices.n = 1;
	assert_int_equal(gs_grant_create(*state, &in, new, &err), 0);
	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-0"), 0);
	assert_int_equal(taken_back(*state, "gpushare/spot-gpu", "card-1"), 1);
	/* One that can't be read may hold. */
	tmpdir_write(*state, FILE_NAME, "{");
	assert_true(taken_back(*state, "gpushare/spot-gpu", "card-1") < 0);
}

static void revokes(void **state)
{
	struct gs_identity source = name_of("a");
	struct gs_grant in = { .sources = &source, .n_sources = 1, .to = name_of("b") };
	cleanup_grant struct gs_grant out = { 0 };
	struct gs_err err = { 0 };
	char name[33];

	assert_int_equal(gs_grant_create(*state, &in, name, &err), 0);
	assert_int_equal(gs_grant_bind(*state, name, &pod_user, &err), 0);
	assert_int_equal(gs_grant_revoke(*state, name, &err), 0);
	assert_int_equal(gs_grant_read(*state, name, &out, &err), 0);
	assert_true(out.revoked);
	assert_true(gs_grant_has_source(&out, &source));
	assert_true(gs_identity_equal(&out.to, &in.to));
	assert_int_equal(gs_grant_in_force(&out, NULL), -ECANCELED);
	assert_int_equal(gs_grant_bound(*state, name, &pod_user, &err), 0);
	assert_int_equal(gs_grant_revoke(*state, name, &err), 0);
	expect_error(gs_grant_revoke(*state, NAME, &err), &err, -ENOENT, "no such grant");
	expect_error(gs_grant_revoke(*state, "*", &err), &err, -EINVAL, "hex");
	/* A spot grant keeps its lease. */
	gs_grant_free(&out);
	tmpdir_write(*state, FILE_NAME,
		     "{\"v\":1,\"kind\":\"spot\",\"state\":\"active\",\"sources\":[],"
		     "\"lease\":{\"boot_id\":\"b\\\"\",\"deadline_ms\":9223372036854775807}}");
	assert_int_equal(gs_grant_revoke(*state, NAME, &err), 0);
	assert_int_equal(gs_grant_read(*state, NAME, &out, &err), 0);
	assert_true(out.revoked);
	assert_string_equal(out.lease_boot_id, "b\"");
	assert_true(out.lease_deadline_ms == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(the_least_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(malformed_grants, setup, teardown),
		cmocka_unit_test_setup_teardown(only_roots_files, setup, teardown),
		cmocka_unit_test(in_force),
		cmocka_unit_test_setup_teardown(binds_once, setup, teardown),
		cmocka_unit_test_setup_teardown(binds_to_a_container_id, setup, teardown),
		cmocka_unit_test_setup_teardown(binds_only_what_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_bindings, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_many_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(creates_and_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(creates_what_was_promised, setup, teardown),
		cmocka_unit_test_setup_teardown(creates_nothing_unusable, setup, teardown),
		cmocka_unit_test_setup_teardown(revokes, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_taken_back, setup, teardown),
	};

	return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
