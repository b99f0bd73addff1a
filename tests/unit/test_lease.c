// SPDX-License-Identifier: Apache-2.0
/* agent/lease.c: when grants are revoked, and when they go. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "common/grant.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/grant.h"
#include "tests/unit/tmpdir.h"

/* The time after which grants are revoked, several times. */
#define WHILE_MS 300

static char name[33];

/* ---- Of the rest of the agent. */

/* So long after the boot; 0: what it is. */
static uint64_t uptime_ms;

uint64_t __real_gs_boottime_ms(void);
uint64_t __wrap_gs_boottime_ms(void);
uint64_t __wrap_gs_boottime_ms(void)
{
	return uptime_ms ? uptime_ms : __real_gs_boottime_ms();
}

/* ---- */

static int setup(void **state)
{
	struct agent *agent = gs_calloc(1, sizeof(*agent));
	struct gs_grant grant = { .kind = GS_GRANT_SPOT, .lease_boot_id = (char *)"x" };
	struct gs_err err = { 0 };

	agent->loop = gs_calloc(1, sizeof(*agent->loop));
	agent->config.lib_dir = tmpdir_make();
	agent->holds = gs_grow(agent->holds, 0, sizeof(*agent->holds));
	agent->holds[0] = (struct hold){ .state = GS_ACTIVE };
	agent->n_holds = 1;
	assert_int_equal(uv_loop_init(agent->loop), 0);
	(void)uv_timer_init(agent->loop, &agent->revoke_timer);
	agent->revoke_timer.data = agent;
	gs_strv_add(&grant.cards, "x-0");
	if (gs_grant_create(agent->config.lib_dir, &grant, name, &err) < 0)
		fail_msg("%s", err.msg);
	gs_strv_free(&grant.cards);
	uptime_ms = 0;
	*state = agent;
	return 0;
}

static int teardown(void **state)
{
	struct agent *agent = *state;

	uv_close((uv_handle_t *)&agent->revoke_timer, NULL);
	(void)uv_run(agent->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(agent->loop), 0);
	reconcile_free(agent);
	tmpdir_remove(agent->config.lib_dir);
	free(agent->loop);
	free(agent);
	return 0;
}

static bool is_revoked(const struct agent *agent)
{
	struct gs_grant grant = { 0 };
	bool yes;

	assert_int_equal(gs_grant_read(agent->config.lib_dir, name, &grant, NULL), 0);
	yes = grant.revoked;
	gs_grant_free(&grant);
	return yes;
}

static void revoke_card(struct agent *agent, const char *card)
{
	struct gs_strv cards = { 0 };

	gs_strv_add(&cards, card);
	lease_revoke(agent, &cards);
	gs_strv_free(&cards);
}

static void run(struct agent *agent)
{
	uint64_t end = gs_boottime_ms() + WHILE_MS;

	while (gs_boottime_ms() < end) {
		(void)uv_run(agent->loop, UV_RUN_NOWAIT);
		(void)usleep(1000);
	}
}

static void another_cards_grant_stays(void **state)
{
	struct agent *agent = *state;

	revoke_card(agent, "x-1");
	run(agent);
	assert_false(is_revoked(agent));
	revoke_card(agent, "x-0");
	assert_false(is_revoked(agent));
	run(agent);
	assert_true(is_revoked(agent));
}

/* A disk may be slow, and nothing else is done meanwhile. */
static void nothing_is_written_while_a_user_waits(void **state)
{
	struct agent *agent = *state;

	agent->holds[0].state = GS_RETURNING;
	revoke_card(agent, "x-0");
	run(agent);
	assert_false(is_revoked(agent));
	agent->holds[0].state = GS_ACTIVE;
	run(agent);
	assert_true(is_revoked(agent));
}

static void before_a_card_is_lent_all_is_written(void **state)
{
	struct agent *agent = *state;

	agent->holds[0].state = GS_RETURNING;
	revoke_card(agent, "x-0");
	lease_revoke_now(agent);
	assert_true(is_revoked(agent));
	assert_false(uv_is_active((uv_handle_t *)&agent->revoke_timer));
}

static void make_old(const struct agent *agent, int age_s)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - age_s }, { .tv_nsec = UTIME_OMIT } };
	char file[64];

	times[1] = times[0];
	(void)snprintf(file, sizeof(file), "grants/%s.json", name);
	assert_int_equal(utimensat(AT_FDCWD, tmpdir_path(agent->config.lib_dir, file), times, 0),
			 0);
}

/* ---- Who is deleted. */

static unsigned int deleted;

void __wrap_pods_delete_uid(struct agent *agent, const char *uid, const char *why);
void __wrap_pods_delete_uid(struct agent *agent, const char *uid, const char *why)
{
	assert_string_equal(uid, "uid-1");
	deleted++;
}

/* The card of the grant is the first holding's; of a container, or of nobody. */
static void plan_card_of(struct agent *agent, const char *member)
{
	struct plan_holding *h = gs_calloc(1, sizeof(*h));

	memcpy(h->name, "h", 2);
	memcpy(agent->holds[0].name, "h", 2);
	gs_strv_add(&h->cards, "x-0");
	if (member)
		gs_strv_add(&h->members, member);
	agent->plan.holdings = h;
	agent->plan.n_holdings = 1;
}

static void plan_card(struct agent *agent)
{
	plan_card_of(agent, "c");
}

static void bind_to_pod(const struct agent *agent)
{
	const struct gs_grant_user user = { .pod_uid = "uid-1",
					    .container = "job",
					    .container_id = "c" };

	assert_int_equal(gs_grant_bind(agent->config.lib_dir, name, &user, NULL), 0);
}

static void a_pod_of_this_boot_stays(void **state)
{
	struct agent *agent = *state;

	deleted = 0;
	agent->kube = (struct kube *)agent;
	lease_renew(agent); /* nobody has it, and nobody's card is it */
	assert_false(is_revoked(agent));
	plan_card(agent);
	lease_renew(agent);
	assert_false(is_revoked(agent));
	bind_to_pod(agent);
	agent->holds[0].state = GS_LENT;
	lease_renew(agent); /* it is in force again, and of this boot */
	agent->holds[0].state = GS_ACTIVE;
	lease_renew(agent);
	assert_int_equal(deleted, 0);
	assert_false(is_revoked(agent));
}

static void a_pod_of_the_boot_before_goes(void **state)
{
	struct agent *agent = *state;

	deleted = 0;
	plan_card(agent);
	bind_to_pod(agent);
	lease_renew(agent); /* nobody would make another */
	assert_int_equal(deleted, 0);
	agent->kube = (struct kube *)agent;
	lease_renew(agent);
	assert_int_equal(deleted, 1);
	assert_true(is_revoked(agent));
	lease_renew(agent);
	assert_int_equal(deleted, 1);
}

/* In the place of the usual one: a grant of that card, which needs no lender, of another boot. */
static void grant_free_card(const struct agent *agent)
{
	struct gs_grant grant = { .kind = GS_GRANT_SPOT, .lease_boot_id = (char *)"x" };
	struct gs_err err = { 0 };

	assert_int_equal(gs_grant_revoke(agent->config.lib_dir, name, NULL), 0);
	gs_strv_add(&grant.cards, "x-0");
	gs_strv_add(&grant.free, "x-0");
	if (gs_grant_create(agent->config.lib_dir, &grant, name, &err) < 0)
		fail_msg("%s", err.msg);
	gs_strv_free(&grant.cards);
	gs_strv_free(&grant.free);
}

static bool is_in_force(const struct agent *agent)
{
	struct gs_grant grant = { 0 };
	bool yes;

	assert_int_equal(gs_grant_read(agent->config.lib_dir, name, &grant, NULL), 0);
	yes = gs_grant_in_force(&grant, NULL) == 0;
	gs_grant_free(&grant);
	return yes;
}

/* Who lent it did not come back with the node, and only from him the pod could receive it. */
static void a_pod_whose_lender_is_gone_goes(void **state)
{
	struct agent *agent = *state;

	deleted = 0;
	agent->kube = (struct kube *)agent;
	agent->registry_read_ms = 1;
	bind_to_pod(agent);
	uptime_ms = 299000;
	lease_renew(agent); /* he may come yet */
	assert_int_equal(deleted, 0);
	uptime_ms = 300000;
	agent->registry_read_ms = 0;
	lease_renew(agent); /* or be there: nobody has looked */
	assert_int_equal(deleted, 0);
	agent->registry_read_ms = 1;
	lease_renew(agent);
	assert_int_equal(deleted, 1);
	assert_true(is_revoked(agent));
}

/* He is not, but his card is nobody's, and so lent: that is not from whom the pod received it. */
static void a_free_card_is_no_lender(void **state)
{
	struct agent *agent = *state;

	deleted = 0;
	agent->kube = (struct kube *)agent;
	agent->registry_read_ms = 1;
	bind_to_pod(agent);
	plan_card_of(agent, NULL);
	agent->holds[0].state = GS_LENT;
	uptime_ms = 300000;
	lease_renew(agent);
	assert_int_equal(deleted, 1);
	assert_true(is_revoked(agent));
}

/* A card that nobody holds needs no lender: whoever had it has it again after a restart. */
static void a_free_card_is_its_borrowers_again(void **state)
{
	struct agent *agent = *state;

	deleted = 0;
	agent->kube = (struct kube *)agent;
	agent->registry_read_ms = 1;
	grant_free_card(agent);
	bind_to_pod(agent);
	lease_renew(agent); /* whose it is is not known yet */
	assert_false(is_in_force(agent));
	plan_card_of(agent, NULL);
	agent->holds[0].state = GS_UNKNOWN;
	lease_renew(agent); /* nobody guards it yet */
	assert_false(is_in_force(agent));
	agent->holds[0].state = GS_LENT;
	lease_renew(agent);
	assert_true(is_in_force(agent));
	assert_int_equal(deleted, 0);
}

/* It is somebody's by now. */
static void a_card_that_was_free_is_its_holders(void **state)
{
	struct agent *agent = *state;

	deleted = 0;
	agent->kube = (struct kube *)agent;
	agent->registry_read_ms = 1;
	grant_free_card(agent);
	bind_to_pod(agent);
	plan_card(agent);
	lease_renew(agent);
	assert_int_equal(deleted, 1);
	assert_true(is_revoked(agent));
}

static void old_ones_go(void **state)
{
	struct agent *agent = *state;
	struct gs_grant_user user = { .container_id = "c" };

	assert_int_equal(gs_grant_bind(agent->config.lib_dir, name, &user, NULL), 0);
	make_old(agent, 100000);
	lease_renew(agent); /* it is not revoked */
	assert_int_equal(tmpdir_count(agent->config.lib_dir, "grants"), 2);
	assert_int_equal(gs_grant_revoke(agent->config.lib_dir, name, NULL), 0);
	agent->forget_ms = 0;
	lease_renew(agent); /* it was right now */
	assert_int_equal(tmpdir_count(agent->config.lib_dir, "grants"), 2);
	make_old(agent, 100000);
	lease_renew(agent); /* it looks for them once in a while */
	assert_int_equal(tmpdir_count(agent->config.lib_dir, "grants"), 2);
	agent->forget_ms = 0;
	lease_renew(agent);
	assert_int_equal(tmpdir_count(agent->config.lib_dir, "grants"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(another_cards_grant_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_written_while_a_user_waits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(before_a_card_is_lent_all_is_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_pod_of_this_boot_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pod_of_the_boot_before_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pod_whose_lender_is_gone_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_free_card_is_no_lender, setup, teardown),
		cmocka_unit_test_setup_teardown(a_free_card_is_its_borrowers_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_card_that_was_free_is_its_holders, setup,
						teardown),
		cmocka_unit_test_setup_teardown(old_ones_go, setup, teardown),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
