// SPDX-License-Identifier: Apache-2.0
/* Events of the kernel module, told with the names that the registry has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "ctl/kmod.h"
#include "tests/unit/tmpdir.h"

#define HOLDER "aaaaaaaaaaaaaaaa"
#define BORROWER "bbbbbbbbbbbbbbbb"

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

/* Records the container @id named team-a/@pod/main of a pod with that UID (NULL: none). */
static void record(const char *dir, const char *id, const char *pod, const char *uid)
{
	struct gs_record rec = {
		.id = (char *)id,
		.bundle = (char[]){ "/run/b" },
		.identity = { (char[]){ "team-a" }, (char *)pod, (char[]){ "main" } },
		.pod_uid = (char *)uid,
		.role = GS_ROLE_HOLDER,
		.spec = (char[]){ "{}" },
		.spec_len = 2,
	};
	struct gs_err err = { 0 };

	if (gs_registry_write(dir, &rec, &err) < 0)
		fail_msg("%s", err.msg);
}

static void expect_label(struct ctl_names *names, const char *name, const char *label)
{
	assert_string_equal(ctl_names_label(names, name), label);
	assert_int_equal(ctl_names_find(names, name) != NULL, strcmp(name, label) != 0);
}

static void watches_and_holdings_have_names(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = *state };

	record(*state, HOLDER, "dev", "uid-1");
	record(*state, BORROWER, "spot", NULL);
	expect_label(&names, HOLDER, "team-a/dev/main");
	expect_label(&names, "uid-1/main", "team-a/dev/main");
	expect_label(&names, BORROWER, "team-a/spot/main");
	expect_label(&names, "uid-1/other", "uid-1/other");
	expect_label(&names, "", "");
}

/* As the agent cuts it; the hash is FNV-1a 64 of the whole id. */
static void a_long_id_is_found_by_its_hash(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = *state };
	char id[161] = { 0 }, name[100] = { 0 };

	memset(id, 'x', 160);
	record(*state, id, "dev", NULL);
	memset(name, 'x', 64);
	(void)snprintf(name + 64, sizeof(name) - 64, "-%016llx", (unsigned long long)gs_hash(id));
	expect_label(&names, name, "team-a/dev/main");
	name[65] = name[65] == '0' ? '1' : '0';
	expect_label(&names, name, name);
}

static void a_container_that_comes_later_is_found(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = *state };

	record(*state, HOLDER, "dev", "uid-1");
	expect_label(&names, HOLDER, "team-a/dev/main");
	record(*state, BORROWER, "spot", "uid-2");
	expect_label(&names, BORROWER, "team-a/spot/main");
}

static void one_that_went_is_still_known(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = *state };

	record(*state, HOLDER, "dev", "uid-1");
	record(*state, BORROWER, "spot", "uid-2");
	expect_label(&names, HOLDER, "team-a/dev/main");
	gs_registry_remove(*state, BORROWER);
	gs_registry_remove(*state, HOLDER);
	expect_label(&names, BORROWER, "team-a/spot/main");
	expect_label(&names, "uid-1/main", "team-a/dev/main");
}

static void without_a_registry_the_names_are_the_modules(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = "/nonexistent" };

	expect_label(&names, HOLDER, HOLDER);
	assert_string_equal(ctl_names_label(NULL, HOLDER), HOLDER);
	assert_null(ctl_names_find(NULL, HOLDER));
}

/* ---- Events. */

static struct gs_kevent touched(void)
{
	return (struct gs_kevent){
		.event = GS_EV_STATE,
		.event_seq = 7,
		.name = "uid-1/main",
		.watch = HOLDER,
		.from = GS_LENT,
		.state = GS_RETURNING,
		.cause = GS_BY_TOUCH,
		.has_kind = true,
		.kind = GS_IOCTL,
		.pid = 42,
	};
}

static void expect_text(const struct gs_kevent *event, struct ctl_names *names, const char *text)
{
	cleanup_free char *got = ctl_kmod_event_text(event, names);

	assert_string_equal(got, text);
}

static void events_say_who_it_was(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = *state };
	struct gs_kevent e = touched();

	record(*state, HOLDER, "dev", "uid-1");
	record(*state, BORROWER, "spot", "uid-2");
	expect_text(&e, NULL,
		    "holding uid-1/main: lent -> returning (touch: ioctl by pid 42, watch " HOLDER
		    ")");
	expect_text(&e, &names,
		    "holding team-a/dev/main: lent -> returning (touch: ioctl by pid 42 of "
		    "team-a/dev/main)");
	e = (struct gs_kevent){ .event = GS_EV_REVOKED, .watch = BORROWER, .killed = true };
	expect_text(&e, &names,
		    "borrower team-a/spot/main may touch nothing any more, and was killed");
	e = (struct gs_kevent){ .event = GS_EV_STOLEN, .watch = BORROWER };
	expect_text(&e, &names,
		    "a file of borrower team-a/spot/main was used outside it, and refused");
	e = (struct gs_kevent){ .event = GS_EV_DRAINED, .name = "uid-1/main" };
	expect_text(&e, &names,
		    "holding team-a/dev/main: the last file of its borrowers is closed");
	e = (struct gs_kevent){ .event = GS_EV_RELEASED, .name = "uid-1/main", .held = 1 };
	expect_text(&e, &names,
		    "holding team-a/dev/main: 1 held call goes on, the longest after 0");
}

static void expect_member(const json_t *json, const char *key, const char *value)
{
	const char *got = json_string_value(json_object_get(json, key));

	if (value)
		assert_string_equal(got, value);
	else
		assert_null(got);
}

static void json_has_both_names(void **state)
{
	cleanup_names struct ctl_names names = { .run_dir = *state };
	struct gs_kevent e = touched();
	cleanup_json json_t *plain = NULL, *named = NULL;

	record(*state, HOLDER, "dev", "uid-1");
	plain = ctl_kmod_event_json(&e, NULL);
	expect_member(plain, "holder", NULL);
	expect_member(plain, "container", NULL);
	named = ctl_kmod_event_json(&e, &names);
	expect_member(named, "holding", "uid-1/main");
	expect_member(named, "watch", HOLDER);
	expect_member(named, "holder", "team-a/dev/main");
	expect_member(named, "container", "team-a/dev/main");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(watches_and_holdings_have_names),
		TEST(a_long_id_is_found_by_its_hash),
		TEST(a_container_that_comes_later_is_found),
		TEST(one_that_went_is_still_known),
		TEST(without_a_registry_the_names_are_the_modules),
		TEST(events_say_who_it_was),
		TEST(json_has_both_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
