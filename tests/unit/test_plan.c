// SPDX-License-Identifier: Apache-2.0
/* agent/plan.c and policy.c: which holdings and watches containers and cards make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/plan.h"
#include "common/cleanup.h"
#include "common/kname.h"
#include "common/xalloc.h"

#define HOST_NS 1

static struct card_node nodes0[] = {
	{ (char *)"/dev/x0", 100, true, true, false },
	{ (char *)"/dev/xctl", 199, false, true, false },
};
static struct card_node nodes1[] = {
	{ (char *)"/dev/x1", 101, true, true, false },
	{ (char *)"/dev/xctl", 199, false, true, false },
};
static struct card two_cards[] = {
	{ .name = (char *)"x-0",
	  .id = (char *)"0",
	  .vendor = (char *)"x",
	  .nodes = nodes0,
	  .n_nodes = 2,
	  .settle_ms = 5 },
	{ .name = (char *)"x-1",
	  .id = (char *)"1",
	  .vendor = (char *)"x",
	  .nodes = nodes1,
	  .n_nodes = 2,
	  .settle_ms = 7 },
};
static const struct cards cards = { two_cards, 2 };

/* A node's containers, as a test puts them together. */
struct scene {
	struct containers containers;
	struct settings settings;
	struct gs_kstate kernel;
	struct gs_strv free;
	struct plan plan;
};

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	settings_init(&s->settings);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	plan_free(&s->plan);
	containers_free(&s->containers);
	settings_free(&s->settings);
	free(s);
	return 0;
}

/*
 * Adds a container: "<pod>/<container>" is also its id (with a dash), its pod's UID is uid-<pod>.
 * @cards_used: names with commas; @annotations: JSON or NULL.
 */
static struct container *add(struct scene *s, const char *pod, const char *name,
			     enum gs_record_role role, const char *cards_used,
			     const char *annotations)
{
	struct containers *all = &s->containers;
	struct container *c;
	char *list = gs_strdup(cards_used), *save = NULL;

	all->v = gs_grow(all->v, all->n, sizeof(*all->v));
	c = &all->v[all->n++];
	*c = (struct container){ .alive = true };
	c->rec.id = gs_asprintf("%s-%s", pod, name);
	c->rec.identity.ns = gs_strdup("default");
	c->rec.identity.pod = gs_strdup(pod);
	c->rec.identity.container = gs_strdup(name);
	c->rec.pod_uid = gs_asprintf("uid-%s", pod);
	c->rec.role = role;
	c->rec.annotations = annotations ? gs_strdup(annotations) : NULL;
	c->hook.pid = (pid_t)(1000 + all->n);
	c->hook.pid_ns = 5000 + all->n;
	for (char *at = strtok_r(list, ",", &save); at; at = strtok_r(NULL, ",", &save))
		gs_strv_add(&c->cards, at);
	free(list);
	return c;
}

static const struct plan *plan(struct scene *s)
{
	plan_free(&s->plan);
	plan_make(&s->containers, &cards, &s->settings, &s->kernel, HOST_NS, &s->free, &s->plan);
	return &s->plan;
}

#define LEND "{\"gpushare.k8s.io/lend\":\"true\"}"

static void assert_list(const struct gs_strv *list, const char *want)
{
	char *text = gs_strv_join(list);

	assert_string_equal(text, want);
	free(text);
}

static void source_and_target_are_one_holding(void **state)
{
	struct scene *s = *state;
	const struct plan *p;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", LEND);
	add(s, "a", "dind", GS_ROLE_TARGET, "x-0", LEND);
	add(s, "b", "main", GS_ROLE_HOLDER, "x-1", NULL);
	p = plan(s);
	assert_int_equal(p->n_holdings, 2);
	assert_non_null(plan_holding(p, "uid-a/main"));
	assert_list(&plan_holding(p, "uid-a/main")->members, "a-dind,a-main");
	assert_list(&plan_holding(p, "uid-a/main")->cards, "x-0");
	assert_int_equal(plan_holding(p, "uid-a/main")->n_devs, 2);
	assert_int_equal(plan_holding(p, "uid-a/main")->settle_ms, 5);
	assert_int_equal(p->n_watches, 3);
	assert_int_equal(plan_watch(p, "a-dind")->role, GS_MEMBER);
	assert_list(&plan_watch(p, "a-dind")->holdings, "uid-a/main");
	assert_list(&plan_watch(p, "b-main")->holdings, "uid-b/main");
}

/* Whichever of them comes first in the registry. */
static void two_cards_of_one_container_join_what_has_one(void **state)
{
	struct scene *s = *state;
	const struct plan *p;

	add(s, "a", "one", GS_ROLE_TARGET, "x-0", NULL);
	add(s, "a", "two", GS_ROLE_TARGET, "x-1", NULL);
	add(s, "a", "main", GS_ROLE_HOLDER, "x-0,x-1", NULL);
	p = plan(s);
	assert_int_equal(p->n_holdings, 1);
	assert_string_equal(p->holdings[0].name, "uid-a/main");
	assert_list(&p->holdings[0].cards, "x-0,x-1");
	assert_list(&p->holdings[0].members, "a-main,a-one,a-two");
	assert_int_equal(p->holdings[0].n_devs, 3);
	assert_int_equal(p->holdings[0].settle_ms, 7);
	assert_list(&plan_watch(p, "a-one")->holdings, "uid-a/main");
}

static void a_source_that_is_restarted_keeps_the_name(void **state)
{
	uint32_t devs[] = { 100, 199 };
	struct gs_kholding known = { .name = "uid-a/main", .devs = { devs, 2 } };
	struct scene *s = *state;
	const struct plan *p;

	s->kernel.holdings = &known;
	s->kernel.n_holdings = 1;
	add(s, "a", "dind", GS_ROLE_TARGET, "x-0", NULL);
	p = plan(s);
	assert_int_equal(p->n_holdings, 1);
	assert_string_equal(p->holdings[0].name, "uid-a/main");
	/* of other nodes it is another one */
	devs[0] = 101;
	assert_string_equal(plan(s)->holdings[0].name, "uid-a/dind");
}

static void a_borrower_names_all_its_lenders(void **state)
{
	struct scene *s = *state;
	const struct plan *p;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", NULL);
	add(s, "b", "main", GS_ROLE_HOLDER, "x-1", NULL);
	add(s, "spot", "job", GS_ROLE_BORROWER, "x-0,x-1", NULL);
	p = plan(s);
	assert_int_equal(p->n_holdings, 2);
	assert_list(&plan_holding(p, "uid-a/main")->members, "a-main");
	assert_int_equal(plan_watch(p, "spot-job")->role, GS_BORROWER);
	assert_list(&plan_watch(p, "spot-job")->holdings, "uid-a/main,uid-b/main");
}

static void a_borrower_alone_is_watched_by_nobody(void **state)
{
	struct scene *s = *state;

	add(s, "spot", "job", GS_ROLE_BORROWER, "x-0", NULL);
	assert_int_equal(plan(s)->n_holdings, 0);
	assert_null(plan_watch(&s->plan, "spot-job"));
}

static void who_is_not_there_is_no_member(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", NULL)->alive = false;
	assert_int_equal(plan(s)->n_holdings, 0);
	/* but one that is being created is, without a watch yet */
	s->containers.v[0].hook.pid = 0;
	s->containers.v[0].starting = true;
	assert_int_equal(plan(s)->n_holdings, 1);
	assert_int_equal(s->plan.n_watches, 0);
	s->containers.v[0].starting = false;
	assert_int_equal(plan(s)->n_holdings, 0);
}

static void an_exempt_container_is_watched_and_no_member(void **state)
{
	struct scene *s = *state;
	const struct plan *p;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", NULL);
	add(s, "a", "monitor", GS_ROLE_TARGET, "x-0", NULL)->exempt = true;
	p = plan(s);
	assert_list(&plan_holding(p, "uid-a/main")->members, "a-main");
	assert_int_equal(plan_watch(p, "a-monitor")->role, GS_EXEMPT);
	assert_int_equal(plan_watch(p, "a-monitor")->holdings.n, 0);
}

static void by_cgroup_where_the_namespace_is_shared(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", NULL);
	add(s, "a", "two", GS_ROLE_TARGET, "x-0", NULL)->rec.shared_pid = true;
	add(s, "a", "host", GS_ROLE_TARGET, "x-0", NULL)->hook.pid_ns = HOST_NS;
	plan(s);
	assert_false(plan_watch(&s->plan, "a-main")->by_cgroup);
	assert_true(plan_watch(&s->plan, "a-two")->by_cgroup);
	assert_true(plan_watch(&s->plan, "a-host")->by_cgroup);
}

/* ---- May it be lent? */

static const struct plan_holding *only(struct scene *s)
{
	assert_int_equal(plan(s)->n_holdings, 1);
	return &s->plan.holdings[0];
}

static void lending_is_the_pods_word(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0",
	    "{\"gpushare.k8s.io/lend\":\"true\",\"gpushare.k8s.io/lend-after\":\"90s\"}");
	assert_true(only(s)->lend);
	assert_int_equal(s->plan.holdings[0].lend_after_ms, 90000);
	/* what a target says does not count: it was not given the card */
	add(s, "a", "dind", GS_ROLE_TARGET, "x-0", "{\"gpushare.k8s.io/lend\":\"false\"}");
	assert_true(only(s)->lend);
	add(s, "a", "other", GS_ROLE_HOLDER, "x-0", "{\"gpushare.k8s.io/lend\":\"false\"}");
	assert_false(only(s)->lend);
	assert_string_equal(s->plan.holdings[0].why_not, "its pod does not allow it");
}

static void no_word_is_the_operators_default(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", NULL);
	assert_false(only(s)->lend);
	s->settings.lend = true;
	assert_true(only(s)->lend);
	assert_int_equal(s->plan.holdings[0].lend_after_ms, 600000);
}

static void nonsense_is_not_lent(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0",
	    "{\"gpushare.k8s.io/lend\":\"true\",\"gpushare.k8s.io/lend-after\":\"soon\"}");
	assert_false(only(s)->lend);
	assert_non_null(s->plan.holdings[0].why_not);
}

/* A user between two calls is not away, whatever his pod says. */
static void no_absence_is_shorter_than_the_shortest(void **state)
{
	static const struct {
		const char *after;
		unsigned int ms;
		bool too_short;
	} rows[] = {
		{ "0", 50, true },     { "0s", 50, true },    { "49ms", 50, true },
		{ "50ms", 50, false }, { "51ms", 51, false },
	};

	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", LEND);
	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		char annotations[128];

		(void)snprintf(annotations, sizeof(annotations),
			       "{\"gpushare.k8s.io/lend\":\"true\","
			       "\"gpushare.k8s.io/lend-after\":\"%s\"}",
			       rows[i].after);
		free(s->containers.v[0].rec.annotations);
		s->containers.v[0].rec.annotations = gs_strdup(annotations);
		assert_true(only(s)->lend);
		assert_int_equal(s->plan.holdings[0].lend_after_ms, rows[i].ms);
		assert_int_equal(s->plan.holdings[0].too_short, rows[i].too_short);
	}
}

static void a_shared_card_is_not_lent_unless_the_operator_says_so(void **state)
{
	struct scene *s = *state;

	add(s, "shadow", "main", GS_ROLE_HOLDER, "x-0", LEND);
	add(s, "share", "main", GS_ROLE_TARGET, "x-0", LEND);
	assert_false(only(s)->lend);
	assert_string_equal(s->plan.holdings[0].why_not, "other pods share it");
	s->settings.lend_shared = true;
	assert_true(only(s)->lend);
}

static void an_impostor_ends_the_lending(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", LEND);
	add(s, "thief", "main", GS_ROLE_HOLDER, "x-0", LEND);
	s->settings.lend_shared = true;
	assert_false(only(s)->lend);
	assert_true(s->plan.holdings[0].claimed_twice);
}

/* Its process hangs in a driver, say, and the same pod is there anew. */
static void a_pod_that_was_deleted_is_no_impostor(void **state)
{
	struct scene *s = *state;

	add(s, "a", "main", GS_ROLE_HOLDER, "x-0", LEND)->deleted = true;
	add(s, "b", "main", GS_ROLE_HOLDER, "x-0", LEND);
	assert_false(only(s)->lend);
	assert_false(s->plan.holdings[0].claimed_twice);
	assert_string_equal(s->plan.holdings[0].why_not,
			    "a container that was deleted has not ended");
	s->containers.v[0].alive = false;
	assert_true(only(s)->lend);
}

static void without_its_holder_nothing_is_lent(void **state)
{
	struct scene *s = *state;

	add(s, "a", "dind", GS_ROLE_TARGET, "x-0", LEND);
	s->settings.lend = true;
	assert_false(only(s)->lend);
}

static void long_names_stay_apart(void **state)
{
	char a[200], b[200];
	const struct gs_record of_a = { .id = a }, of_b = { .id = b };
	gs_kname x, y;

	memset(a, 'a', sizeof(a) - 1);
	a[sizeof(a) - 1] = '\0';
	memcpy(b, a, sizeof(b));
	b[sizeof(b) - 2] = 'b';
	gs_kname_watch(&of_a, x);
	gs_kname_watch(&of_b, y);
	assert_string_not_equal(x, y);
	assert_true(strlen(x) <= GS_NAME_MAX);
}

/* So that spot containers can have it, and be guarded. */
static void a_card_that_nobody_holds_is_a_holding_of_its_own(void **state)
{
	struct scene *s = *state;
	const struct plan *p;

	gs_strv_add(&s->free, "x-0");
	gs_strv_add(&s->free, "x-1");
	gs_strv_add(&s->free, "x-9"); /* is not on this node */
	add(s, "a", "main", GS_ROLE_HOLDER, "x-1", NULL);
	add(s, "spot", "one", GS_ROLE_BORROWER, "x-0", NULL);
	p = plan(s);
	assert_int_equal(p->n_holdings, 2);
	assert_non_null(plan_holding(p, "uid-a/main"));
	assert_non_null(plan_holding(p, "free/x-0"));
	assert_int_equal(plan_holding(p, "free/x-0")->members.n, 0);
	assert_true(plan_holding(p, "free/x-0")->lend);
	assert_int_equal(plan_holding(p, "free/x-0")->lend_after_ms, 1);
	assert_int_equal(plan_holding(p, "free/x-0")->n_devs, 2);
	assert_int_equal(plan_holding(p, "free/x-0")->settle_ms, 5);
	assert_list(&plan_watch(p, "spot-one")->holdings, "free/x-0");
	/* Whoever comes to hold it is its holder, with all that his pod says. */
	add(s, "b", "main", GS_ROLE_HOLDER, "x-0", NULL);
	p = plan(s);
	assert_null(plan_holding(p, "free/x-0"));
	assert_false(plan_holding(p, "uid-b/main")->lend);
	assert_list(&plan_watch(p, "spot-one")->holdings, "uid-b/main");
	gs_strv_free(&s->free);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(source_and_target_are_one_holding),
		TEST(two_cards_of_one_container_join_what_has_one),
		TEST(a_source_that_is_restarted_keeps_the_name),
		TEST(a_borrower_names_all_its_lenders),
		TEST(a_borrower_alone_is_watched_by_nobody),
		TEST(who_is_not_there_is_no_member),
		TEST(an_exempt_container_is_watched_and_no_member),
		TEST(by_cgroup_where_the_namespace_is_shared),
		TEST(lending_is_the_pods_word),
		TEST(no_word_is_the_operators_default),
		TEST(nonsense_is_not_lent),
		TEST(no_absence_is_shorter_than_the_shortest),
		TEST(a_shared_card_is_not_lent_unless_the_operator_says_so),
		TEST(an_impostor_ends_the_lending),
		TEST(a_pod_that_was_deleted_is_no_impostor),
		TEST(without_its_holder_nothing_is_lent),
		TEST(a_card_that_nobody_holds_is_a_holding_of_its_own),
		TEST(long_names_stay_apart),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
