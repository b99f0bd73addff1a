// SPDX-License-Identifier: Apache-2.0
/* agent/orphans.c: who uses a card without a source that has it, and who waits for their end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/allocations.h"
#include "agent/lent.h"
#include "agent/orphans.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "gpushare/resources.h"
#include "tests/unit/tmpdir.h"

#define CARD "v-0"

static char *resources[] = { (char *)"v.com/gpu" };
static struct gs_vendor vendors[] = { { .name = (char *)"v", .resources = { resources, 1 } } };
static const struct gs_catalogue cat = { .v = vendors, .n = 1 };
static struct card card_v[] = {
	{ .name = (char *)CARD, .vendor = (char *)"v", .id = (char *)"GPU-0" },
	{ .name = (char *)"v-1", .vendor = (char *)"v", .id = (char *)"GPU-1" },
};
static const struct cards cards = { card_v, 2 };

/* ---- Of the rest of the agent. */

static unsigned int asked; /* questions to the kubelet */
static bool asking; /* one is on its way */
static const struct allocated *answer; /* the last one */
static int why; /* the last question had none */
static struct gs_strv evicted, marks;
static bool complete;

const struct cards *__wrap_inventory_cards(const struct inventory *inventory);
const struct cards *__wrap_inventory_cards(const struct inventory *inventory)
{
	return &cards;
}

const struct gs_catalogue *__wrap_inventory_catalogue(const struct inventory *inventory);
const struct gs_catalogue *__wrap_inventory_catalogue(const struct inventory *inventory)
{
	return &cat;
}

bool __wrap_inventory_complete(const struct inventory *inventory);
bool __wrap_inventory_complete(const struct inventory *inventory)
{
	return complete;
}

void __wrap_allocations_ask(struct agent *agent);
void __wrap_allocations_ask(struct agent *agent)
{
	asked++;
	asking = true;
}

bool __wrap_allocations_asking(const struct agent *agent);
bool __wrap_allocations_asking(const struct agent *agent)
{
	return asking;
}

const struct allocated *__wrap_allocations_answer(const struct agent *agent,
						  struct gs_err *ret_err);
const struct allocated *__wrap_allocations_answer(const struct agent *agent, struct gs_err *ret_err)
{
	if (why)
		(void)gs_err_set(ret_err, why, "no answer");
	return answer;
}

const struct allocated *__wrap_allocations_known(const struct agent *agent);
const struct allocated *__wrap_allocations_known(const struct agent *agent)
{
	return answer;
}

bool __wrap_evicting(const struct agent *agent, const struct container *c);
bool __wrap_evicting(const struct agent *agent, const struct container *c)
{
	return gs_strv_has(&evicted, c->rec.id);
}

void __wrap_evict(struct agent *agent, const struct container *c, const char *reason);
void __wrap_evict(struct agent *agent, const struct container *c, const char *reason)
{
	assert_string_equal(reason, "the pod that held its card is gone");
	/* once, whoever waits for it */
	assert_false(gs_strv_has(&evicted, c->rec.id));
	gs_strv_add(&evicted, c->rec.id);
}

void __wrap_card_file_names(const struct agent *agent, const char *folder, struct gs_strv *ret);
void __wrap_card_file_names(const struct agent *agent, const char *folder, struct gs_strv *ret)
{
	assert_string_equal(folder, GS_SHARED_DIR);
	gs_strv_merge(ret, &marks);
}

int __wrap_card_file_write(struct agent *agent, const char *folder, const struct card *card,
			   json_t *more, struct gs_err *err);
int __wrap_card_file_write(struct agent *agent, const char *folder, const struct card *card,
			   json_t *more, struct gs_err *err)
{
	assert_string_equal(folder, GS_SHARED_DIR);
	assert_false(gs_strv_has(&marks, card->name));
	gs_strv_add(&marks, card->name);
	return 0;
}

void __wrap_card_file_remove(struct agent *agent, const char *folder, const char *card);
void __wrap_card_file_remove(struct agent *agent, const char *folder, const char *card)
{
	assert_true(gs_strv_has(&marks, card));
	gs_strv_free(&marks);
}

/* ---- A node: the pod shadow has the card, share and another target have it from there. */

enum { SHADOW, SHARE, OTHER, N };

struct node {
	struct agent agent;
	struct container containers[N];
	char *made; /* folder of the grants */
	char grant[33];
};

static struct gs_identity of(const char *pod)
{
	return (struct gs_identity){ (char *)"ns", (char *)(uintptr_t)pod, (char *)"main" };
}

static struct container container(const char *id, enum gs_record_role role, const char *pod_uid)
{
	struct container c = { .alive = true };

	c.rec.id = (char *)(uintptr_t)id;
	c.rec.role = role;
	c.rec.pod_uid = (char *)(uintptr_t)pod_uid;
	c.rec.identity = of(id);
	gs_strv_add(&c.cards, CARD);
	return c;
}

static int setup(void **state)
{
	struct node *node = gs_calloc(1, sizeof(*node));

	asked = 0;
	asking = false;
	answer = NULL;
	why = 0;
	complete = true;
	node->containers[SHADOW] = container("shadow", GS_ROLE_HOLDER, "uid-shadow");
	node->containers[SHARE] = container("share", GS_ROLE_TARGET, "uid-share");
	node->containers[OTHER] = container("other", GS_ROLE_TARGET, "uid-other");
	for (int i = SHARE; i < N; i++)
		gs_strv_add(&node->containers[i].rec.sources, "shadow");
	node->agent.containers.v = node->containers;
	node->agent.containers.n = N;
	node->agent.config.lib_dir = node->made = tmpdir_make();
	*state = node;
	return 0;
}

static int teardown(void **state)
{
	struct node *node = *state;

	for (int i = 0; i < N; i++) {
		gs_strv_free(&node->containers[i].cards);
		gs_strv_free(&node->containers[i].rec.sources);
	}
	gs_strv_free(&evicted);
	gs_strv_free(&marks);
	tmpdir_remove(node->made);
	free(node);
	return 0;
}

/* The container's grant, of the share plugin, with shadow as its source. */
static void give_grant(struct node *node, struct container *c)
{
	struct gs_identity shadow = of("shadow");
	struct gs_grant grant = { .kind = GS_GRANT_SHARE,
				  .resource = (char *)GS_RESOURCE_SHARE,
				  .sources = &shadow,
				  .n_sources = 1 };
	struct gs_err err = { 0 };

	gs_strv_add(&grant.cards, CARD);
	if (gs_grant_create(node->made, &grant, node->grant, &err) < 0)
		fail_msg("%s", err.msg);
	gs_strv_free(&grant.cards);
	c->rec.grant = node->grant;
}

/* What the kubelet says: these pods have the card; of both cards it knows. NULL ends them. */
#define SAYS(...) says((const char *const[]){ __VA_ARGS__, NULL })

static const struct allocated *says(const char *const *pods)
{
	static char *ids[] = { (char *)"GPU-0", (char *)"GPU-1" };
	static struct kubelet_use uses[4],
		all = { .resource = (char *)"v.com/gpu", .ids = { ids, 2 } };
	static struct allocated allocated;

	allocated = (struct allocated){ .known = true, .uses = { uses, 0 }, .all = { &all, 1 } };
	for (size_t i = 0; pods[i]; i++)
		uses[allocated.uses.n++] = (struct kubelet_use){ .namespace = (char *)"ns",
								 .pod = (char *)(uintptr_t)pods[i],
								 .container = (char *)"main",
								 .resource = (char *)"v.com/gpu",
								 .ids = { ids, 1 } };
	return &allocated;
}

/* A container of that pod is about to start with the card, and the kubelet has answered. */
static bool waits(struct node *node, const char *pod)
{
	struct gs_identity asker = of(pod);

	return orphans_wait(&node->agent, &asker, CARD, false);
}

/* ---- */

static void it_is_asked_anew_for_a_card_that_is_shared(void **state)
{
	struct node *node = *state;
	struct gs_identity next = of("next"), nobody = { 0 };

	answer = SAYS("shadow");
	assert_true(orphans_wait(&node->agent, &next, CARD, true));
	assert_int_equal(asked, 1);
	/* that answer may not know the pod yet: there is another one on its way */
	answer = SAYS("next");
	assert_true(orphans_wait(&node->agent, &next, CARD, false));
	assert_int_equal(asked, 1);
	assert_int_equal(evicted.n, 0);
	asking = false;

	assert_false(orphans_wait(&node->agent, &next, "v-1", true));
	assert_false(orphans_wait(&node->agent, &next, "v-9", true));
	assert_false(orphans_wait(&node->agent, &nobody, CARD, true));
	node->containers[SHARE].alive = node->containers[OTHER].alive = false;
	assert_false(orphans_wait(&node->agent, &next, CARD, true));
	assert_int_equal(asked, 1);
}

static void it_waits_until_they_are_dead(void **state)
{
	struct node *node = *state;

	give_grant(node, &node->containers[SHARE]);
	answer = SAYS("next");
	for (int i = 0; i < 3; i++)
		assert_true(waits(node, "next"));
	assert_int_equal(evicted.n, 2);
	assert_false(gs_strv_has(&evicted, "shadow"));
	node->containers[SHARE].alive = false;
	assert_true(waits(node, "next"));
	node->containers[OTHER].alive = false;
	assert_false(waits(node, "next"));
	assert_int_equal(asked, 0);
}

/* Whoever can't be told from the kubelet's answer stays. */
static void nobody_is_ended_for_an_impostor(void **state)
{
	struct node *node = *state;

	assert_false(waits(node, "next")); /* it never answered */
	answer = SAYS("next");
	assert_false(waits(node, "impostor"));
	answer = SAYS("next", "impostor");
	assert_false(waits(node, "impostor"));
	assert_false(waits(node, "next"));
	answer = SAYS("next");
	why = EAGAIN; /* that was before */
	assert_false(waits(node, "next"));
	assert_int_equal(evicted.n, 0);
}

static void who_has_it_rightly_stays(void **state)
{
	struct node *node = *state;

	/* a container of the holder's starts anew */
	answer = SAYS("shadow");
	assert_false(waits(node, "shadow"));
	/* a second container of its pod, from its first one: its author's affair */
	answer = SAYS("next");
	node->containers[OTHER].rec.pod_uid = (char *)"uid-shadow";
	node->containers[SHARE].exempt = true;
	assert_false(waits(node, "next"));
	node->containers[SHARE].exempt = false;
	/* it was given the card itself meanwhile */
	answer = SAYS("share");
	assert_false(waits(node, "share"));
	assert_int_equal(evicted.n, 0);
	/* another one is not */
	answer = SAYS("next");
	assert_true(waits(node, "next"));
	assert_int_equal(evicted.n, 1);
	assert_string_equal(evicted.v[0], "share");
}

static void they_end_without_anybody_who_asks(void **state)
{
	struct node *node = *state;

	orphans_end(&node->agent); /* it never answered */
	answer = SAYS("shadow");
	orphans_end(&node->agent);
	assert_int_equal(evicted.n, 0);
	/* of a card that nobody has only share pods: their source was the kubelet's */
	give_grant(node, &node->containers[SHARE]);
	answer = SAYS(NULL);
	orphans_end(&node->agent);
	assert_int_equal(evicted.n, 1);
	assert_string_equal(evicted.v[0], "share");
	answer = SAYS("next");
	orphans_end(&node->agent);
	orphans_end(&node->agent);
	assert_int_equal(evicted.n, 2);
	assert_true(gs_strv_has(&evicted, "other"));
}

/* Of a grant's source too, though its container is in no registry. */
static void a_grants_source_is_one(void **state)
{
	struct node *node = *state;

	give_grant(node, &node->containers[SHARE]);
	gs_strv_free(&node->containers[SHARE].rec.sources);
	node->containers[OTHER].alive = false;
	answer = SAYS("shadow");
	orphans_end(&node->agent);
	assert_int_equal(evicted.n, 0);
	answer = SAYS("next");
	orphans_end(&node->agent);
	assert_int_equal(evicted.n, 1);
}

static void what_is_shared_is_marked(void **state)
{
	struct node *node = *state;

	orphans_mark(&node->agent); /* no kubelet is there */
	node->agent.allocations = (struct allocations *)node;
	complete = false; /* and then: what is not known yet may be shared */
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 0);
	complete = true;
	orphans_mark(&node->agent);
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 1);
	assert_string_equal(marks.v[0], CARD);
	complete = false;
	node->containers[SHARE].alive = node->containers[OTHER].alive = false;
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 1);
	complete = true;
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 0);

	/* from a container of its own pod it is none; from one that is gone it may be */
	node->containers[OTHER].alive = true;
	node->containers[OTHER].rec.pod_uid = (char *)"uid-shadow";
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 0);
	gs_strv_free(&node->containers[OTHER].rec.sources);
	gs_strv_add(&node->containers[OTHER].rec.sources, "gone");
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 1);
	gs_strv_free(&node->containers[OTHER].rec.sources);
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 0);
	give_grant(node, &node->containers[OTHER]);
	orphans_mark(&node->agent);
	assert_int_equal(marks.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_asked_anew_for_a_card_that_is_shared, setup,
						teardown),
		cmocka_unit_test_setup_teardown(it_waits_until_they_are_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_is_ended_for_an_impostor, setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_it_rightly_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(they_end_without_anybody_who_asks, setup, teardown),
		cmocka_unit_test_setup_teardown(a_grants_source_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_shared_is_marked, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
