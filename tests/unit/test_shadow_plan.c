// SPDX-License-Identifier: Apache-2.0
/* Which shadow pods there should be: scenes of pods, and the plan as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/shadow_make.h"
#include "controller/shadow_plan.h"

#define POD_MAX 8
#define NO_ROOM "1 Insufficient gpushare/share-gpu"

static struct shadow_pod *shares[POD_MAX], *shadows[POD_MAX];
static size_t n_shares, n_shadows;
static struct shadow_rules rules;

static int setup(void **state)
{
	rules = (struct shadow_rules){ .share = 2, .account_cards = 8, .quiet_ms = 1000 };
	return 0;
}

static int teardown(void **state)
{
	while (n_shares)
		shadow_pod_free(shares[--n_shares]);
	while (n_shadows)
		shadow_pod_free(shadows[--n_shadows]);
	return 0;
}

static struct shadow_pod *pod(const char *uid, const char *node, unsigned int cards, const char *of,
			      const char *why)
{
	struct shadow_pod *p = gs_calloc(1, sizeof(*p));

	p->namespace = gs_strdup("ns");
	p->name = gs_strdup(uid);
	p->uid = gs_strdup(uid);
	p->node = gs_strdup(node);
	p->account = gs_strdup("alice");
	p->place = gs_strdup("here");
	p->made = gs_strdup("2026");
	p->why = gs_strdup(why);
	p->of = gs_strdup(of);
	p->cards = cards;
	return p;
}

static struct shadow_pod *share(const char *uid, const char *node, unsigned int n)
{
	return shares[n_shares++] = pod(uid, node, n, "", *node ? "" : NO_ROOM);
}

/* One that has a node runs there. */
static struct shadow_pod *shadow(const char *uid, const char *node, unsigned int n, const char *of)
{
	struct shadow_pod *p = pod(uid, node, n, of, "");

	p->runs = *node;
	return shadows[n_shadows++] = p;
}

static void set(char **s, const char *value)
{
	free(*s);
	*s = gs_strdup(value);
}

/* "make a; delete s; tell b; next N": the plan in one line. NULL: whatever it is. */
static void plans(uint64_t now, const char *wanted)
{
	static const char *const acts[] = { "make", "delete", "tell" };
	struct gs_buf text = { 0 };
	struct shadow_plan plan = { 0 };
	char *got;

	shadow_plan(shares, n_shares, shadows, n_shadows, &rules, now, &plan);
	for (size_t i = 0; i < plan.n; i++)
		gs_buf_addf(&text, "%s%s %s", text.len ? "; " : "", acts[plan.v[i].act],
			    plan.v[i].pod->uid);
	if (plan.next_ms)
		gs_buf_addf(&text, "%snext %llu", text.len ? "; " : "",
			    (unsigned long long)plan.next_ms);
	shadow_plan_free(&plan);
	got = gs_buf_steal(&text);
	if (wanted)
		assert_string_equal(got, wanted);
	free(got);
}

static void test_nothing(void **state)
{
	plans(1, "");
	share("a", "n1", 1);
	set(&share("b", "", 1)->why, "3 Insufficient cpu");
	set(&share("c", "", 1)->why, "");
	share("d", "", 1)->over = true;
	share("e", "", 0);
	share("f", "", 1)->ending = true;
	plans(1, "");
}

static void test_one_serves_two(void **state)
{
	share("b", "", 1);
	set(&share("a", "", 1)->made, "2025");
	plans(1, "make a");
	share("c", "", 1);
	plans(1, "make a; make c");
	/* the older ones first; the third has a card of its own */
	rules.share = 3;
	plans(1, "make a");
	set(&shares[0]->place, "elsewhere");
	plans(1, "make a; make b");
}

static void test_two_cards(void **state)
{
	share("a", "", 1);
	share("b", "", 2);
	plans(1, "make a; make b");
	shadow("s", "", 2, "b");
	/* the one for b has shares left */
	plans(1, "tell a; tell b");
	rules.share = 1;
	plans(1, "make a; tell b");
}

static void test_its_own(void **state)
{
	shadow("s", "", 1, "a");
	share("a", "", 1);
	plans(1, "tell a");
	/* placed, it stays its own for as long as that may take */
	set(&shadows[0]->node, "n1");
	plans(10, "tell a; next 300010");
	plans(60009, "tell a; next 300010");
	shadows[0]->runs = true;
	plans(60010, "tell a; next 120010");
	plans(120009, "tell a; next 120010");
	set(&shares[0]->node, "n1");
	plans(1000000, "");
}

static void test_no_help(void **state)
{
	shadow("s", "n1", 1, "a");
	share("a", "", 1);
	plans(10, "tell a; next 60010");
	/* its node takes no more pods, perhaps: the card goes, then another one is looked for */
	plans(60010, "tell a; next 61010");
	plans(61009, "tell a; next 61010");
	plans(61010, "tell a; delete s");
	/* one that can't even start is not waited for for ever */
	shadows[0]->runs = shadows[0]->ran = false;
	shadows[0]->since = 0;
	plans(61010, "tell a; next 361010");
	plans(361010, "tell a; next 362010");
	/* while somebody else uses it, it stays */
	share("b", "n1", 1);
	plans(362010, "tell a");
}

/* Whoever can't ever run has no card for most of the time. */
static void test_in_vain(void **state)
{
	static const unsigned int pauses[] = { 0, 60, 120, 240, 480, 960, 960, 960 };
	uint64_t now = 1;

	share("a", "", 1);
	plans(now, "make a");
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		cleanup_free char *wait = NULL;

		shadow("s", "n1", 1, "a");
		plans(now, i ? NULL : "tell a; next 60001");
		now += 60000;
		plans(now, NULL);
		now += 1000;
		plans(now, "tell a; delete s");
		shadow_pod_free(shadows[--n_shadows]);
		wait = gs_asprintf("tell a; next %u", (unsigned int)now + pauses[i] * 1000);
		for (unsigned int s = 0; s < pauses[i]; s++, now += 1000)
			plans(now, wait);
		plans(now, "make a");
	}
	/* what others brought serves it meanwhile */
	shares[0]->later = now + 1;
	shadow("t", "", 1, "b");
	plans(now, "tell a");
	/* one whose own went before it could help waits for nothing */
	teardown(NULL);
	share("a", "", 1);
	shadow("s", "n1", 1, "a");
	plans(1, "tell a; next 60001");
	shadow_pod_free(shadows[--n_shadows]);
	plans(2, "make a");
}

/* tells WORDS: the plan's first step is an Event that has them. */
static void tells(uint64_t now, const char *words)
{
	struct shadow_plan plan = { 0 };

	shadow_plan(shares, n_shares, shadows, n_shadows, &rules, now, &plan);
	assert_int_equal(plan.v[0].act, SHADOW_TELL);
	assert_non_null(strstr(plan.v[0].text, words));
	shadow_plan_free(&plan);
}

static void test_words(void **state)
{
	shadow("s", "", 1, "a");
	share("a", "", 1);
	tells(1, "is being looked for");
	set(&shadows[0]->why, "3 Insufficient nvidia.com/gpu");
	tells(1, "no card is free to be shared: 3 Insufficient");
	set(&shadows[0]->node, "n1");
	tells(1, "held on node n1, by a pod that does not run yet");
	shadows[0]->runs = true;
	tells(2, "held on node n1");
	tells(60002, "held on node n1, where it still finds no room");
}

static void test_ending(void **state)
{
	shadow("s", "n1", 1, "a");
	/* it shuts down, with the card */
	share("a", "n1", 1)->ending = true;
	plans(1, "");
	shares[0]->over = true;
	plans(2, "next 1002");
}

static void test_settles(void **state)
{
	shadow("s", "n1", 1, "gone");
	share("a", "", 1);
	plans(1, "tell a; next 60001");
	/* it can't be used by this one, it seems */
	plans(60001, "make a; next 61001");
	set(&shadows[0]->place, "elsewhere");
	plans(60002, "make a; next 61001");
	plans(61001, "make a; delete s");
}

static void test_full(void **state)
{
	shadow("s", "n1", 1, "a");
	share("a", "n1", 1);
	share("b", "n1", 1);
	share("c", "", 1);
	plans(1, "make c");
	/* a second card on that node */
	shadow("t", "n1", 1, "x");
	plans(2, "tell c; next 60001");
}

static void test_quiet(void **state)
{
	shadow("s", "n1", 1, "a");
	plans(5, "next 1005");
	share("b", "n1", 1);
	plans(900, "");
	teardown(NULL);
	shadow("s", "n1", 1, "a")->quiet = 5;
	plans(1004, "next 1005");
	plans(1005, "delete s");
	shadows[0]->asked = true;
	plans(1006, "");
}

static void test_ended(void **state)
{
	shadow("s", "n1", 1, "a")->over = true;
	shadow("t", "", 1, "b");
	share("a", "", 1);
	/* the one that ended serves nobody, the other one may */
	plans(1, "tell a; delete s");
	set(&shadows[1]->place, "elsewhere");
	plans(1, "make a; delete s; delete t");
	shares[0]->over = true;
	plans(1, "delete s; delete t");
}

static void test_cap(void **state)
{
	rules.account_cards = 2;
	share("a", "", 1);
	share("b", "", 1);
	share("c", "", 1);
	set(&shares[0]->place, "1");
	set(&shares[1]->place, "2");
	set(&shares[2]->place, "3");
	plans(1, "make a; make b; tell c");
	shares[0]->asked = true;
	plans(1, "make b; tell c");
	shadow("s", "n9", 2, "x")->quiet = 1;
	plans(1, "tell b; tell c; next 1001");
	set(&shadows[0]->account, "bob");
	plans(1, "make b; tell c; next 1001");
	rules.account_cards = 0;
	plans(1, "make b; make c; next 1001");
}

static void test_later(void **state)
{
	share("a", "", 1)->later = 50;
	plans(10, "next 50");
	plans(50, "make a");
}

static void test_too_large(void **state)
{
	share("a", "", 1)->too_large = true;
	plans(1, "tell a");
	/* what others brought serves it all the same */
	shadow("s", "", 1, "b");
	plans(1, "tell a");
	teardown(NULL);
	/* one that could not be deleted is let be for a time */
	shadow("s", "n1", 1, "a")->later = 50;
	shadows[0]->over = true;
	plans(10, "next 50");
	plans(50, "delete s");
}

/* Whoever may make pods may make many: each plan is done in a moment. */
static void test_crowd(void **state)
{
	enum { SHARES = 20000, SHADOWS = 5000 };
	struct shadow_pod **many = gs_calloc(SHARES, sizeof(void *));
	struct shadow_pod **cards = gs_calloc(SHADOWS, sizeof(void *));
	struct shadow_plan plan = { 0 };
	size_t made = 0;
	clock_t begin;

	for (int i = 0; i < SHARES; i++) {
		cleanup_free char *name = gs_asprintf("u%d", i);

		many[i] = pod(name, "", 1, "", NO_ROOM);
		set(&many[i]->account, name);
	}
	for (int i = 0; i < SHADOWS; i++) {
		cleanup_free char *name = gs_asprintf("s%d", i);
		cleanup_free char *node = gs_asprintf("n%d", i);

		cards[i] = pod(name, node, 1, "x", "");
		set(&cards[i]->place, i % 2 ? "elsewhere" : "here");
	}
	begin = clock();
	shadow_plan(many, SHARES, cards, SHADOWS, &rules, 1, &plan);
	assert_true(clock() - begin < CLOCKS_PER_SEC);
	/* each that is there and has the place serves two of them, and so does each that is made */
	assert_int_equal(plan.waiting, SHARES);
	for (size_t i = 0; i < plan.n; i++)
		made += plan.v[i].act == SHADOW_MAKE;
	assert_int_equal(made, (SHARES - SHADOWS) / 2);
	shadow_plan_free(&plan);
	for (int i = 0; i < SHARES; i++)
		shadow_pod_free(many[i]);
	for (int i = 0; i < SHADOWS; i++)
		shadow_pod_free(cards[i]);
	free(many);
	free(cards);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_serves_two, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_cards, setup, teardown),
		cmocka_unit_test_setup_teardown(test_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_help, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_vain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ending, setup, teardown),
		cmocka_unit_test_setup_teardown(test_settles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quiet, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
