// SPDX-License-Identifier: Apache-2.0
/* agent/allocated.c: what the kubelet's answers say of cards and containers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/allocated.h"
#include "common/xalloc.h"

static char *whole[] = { (char *)"nvidia.com/gpu" };
static char *slices[] = { (char *)"nvidia.com/gpu", (char *)"nvidia.com/mig-*" };
static struct gs_vendor vendors[] = {
	{ .name = (char *)"nvidia", .resources = { slices, 2 } },
	{ .name = (char *)"other", .resources = { whole, 1 } },
};
static const struct gs_catalogue cat = { .v = vendors, .n = 2 };
static struct card v[] = {
	{ .name = (char *)"nvidia-0", .vendor = (char *)"nvidia", .id = (char *)"GPU-0" },
	{ .name = (char *)"nvidia-1",
	  .vendor = (char *)"nvidia",
	  .id = (char *)"1",
	  .uuid = (char *)"GPU-1" },
	{ .name = (char *)"nvidia-mig", .vendor = (char *)"nvidia", .id = (char *)"MIG-7" },
	{ .name = (char *)"nvidia-00", .vendor = (char *)"nvidia", .id = (char *)"GPU-00" },
};
static const struct cards cards = { v, 4 };

static struct kubelet_use use(const char *pod, const char *resource, const char *id)
{
	struct kubelet_use one = { .resource = (char *)(uintptr_t)resource };

	if (pod) {
		one.namespace = (char *)"ns";
		one.pod = (char *)(uintptr_t)pod;
		one.container = (char *)"main";
	}
	gs_strv_add(&one.ids, id);
	return one;
}

static struct gs_identity of(const char *pod)
{
	return (struct gs_identity){ (char *)"ns", (char *)(uintptr_t)pod, (char *)"main" };
}

/* @uses end with one that has no resource; all of them are to be had, and GPU-00. */
static bool set(struct allocated *a, struct kubelet_use *uses, uint64_t asked_ms)
{
	struct kubelet_use all[8] = { 0 };
	struct kubelet_uses has = { .v = uses }, can = { .v = all };
	bool changed;

	while (uses[has.n].resource) {
		all[can.n++] = use(NULL, uses[has.n].resource, uses[has.n].ids.v[0]);
		has.n++;
	}
	all[can.n++] = use(NULL, "nvidia.com/gpu", "GPU-00");
	changed = allocated_set(a, &has, &can, asked_ms);
	for (size_t i = 0; i < can.n; i++)
		gs_strv_free(&all[i].ids);
	for (size_t i = 0; i < has.n; i++)
		gs_strv_free(&uses[i].ids);
	return changed;
}

static void whose_a_card_is(void **state)
{
	struct kubelet_use uses[] = { use("a", "nvidia.com/gpu", "GPU-0"),
				      use("b", "nvidia.com/gpu", "GPU-1::3"),
				      use("c", "nvidia.com/mig-1g.10gb", "MIG-7"),
				      { 0 } };
	struct gs_identity a = of("a"), b = of("b"), c = of("c");
	struct allocated all = { 0 };

	(void)state;
	assert_int_equal(allocated_state(&all, &cat, &v[0]), ALLOCATED_UNKNOWN);
	assert_true(set(&all, uses, 5));
	assert_true(all.known);
	assert_int_equal(allocated_state(&all, &cat, &v[0]), ALLOCATED_TAKEN);
	assert_int_equal(allocated_state(&all, &cat, &v[1]), ALLOCATED_TAKEN); /* by its UUID */
	assert_int_equal(allocated_state(&all, &cat, &v[2]), ALLOCATED_TAKEN);
	assert_int_equal(allocated_state(&all, &cat, &v[3]), ALLOCATED_FREE); /* GPU-0 is another */
	assert_true(allocated_has(&all, &cat, &a, &v[0]));
	assert_false(allocated_has(&all, &cat, &b, &v[0]));
	assert_true(allocated_pod_has(&all, &cat, &a, &v[0]));
	assert_true(allocated_pod_alone(&all, &cat, &a, &v[0]));
	assert_false(allocated_pod_alone(&all, &cat, &b, &v[0]));
	assert_false(allocated_pod_alone(&all, &cat, &b, &v[3]));
	a.container = (char *)"init"; /* of the same pod */
	assert_false(allocated_has(&all, &cat, &a, &v[0]));
	assert_true(allocated_pod_has(&all, &cat, &a, &v[0]));
	assert_false(allocated_pod_has(&all, &cat, &a, &v[1]));
	a.ns = (char *)"other";
	assert_false(allocated_pod_has(&all, &cat, &a, &v[0]));
	assert_true(allocated_has(&all, &cat, &b, &v[1]));
	assert_true(allocated_has(&all, &cat, &c, &v[2]));
	assert_string_equal(allocated_ids(&all, &c, "nvidia.com/mig-1g.10gb")->v[0], "MIG-7");
	assert_null(allocated_ids(&all, &c, "nvidia.com/gpu"));
	allocated_free(&all);
}

static void what_is_no_news(void **state)
{
	struct kubelet_use one[] = { use("a", "nvidia.com/gpu", "GPU-0"), { 0 } };
	struct kubelet_use same[] = { use("a", "nvidia.com/gpu", "GPU-0"), { 0 } };
	struct kubelet_use other[] = { use("b", "nvidia.com/gpu", "GPU-0"), { 0 } };
	struct kubelet_use none[] = { { 0 } };
	struct allocated all = { 0 };

	(void)state;
	assert_true(set(&all, one, 1));
	assert_false(set(&all, same, 2));
	assert_int_equal(all.asked_ms, 2);
	assert_true(set(&all, other, 3));
	assert_true(set(&all, none, 4));
	allocated_free(&all);
	/* an answer without anything is one */
	assert_true(set(&all, none, 4));
	allocated_free(&all);
}

static struct container holder(const char *pod, const char *card)
{
	struct container c = { .alive = true };

	c.rec.role = GS_ROLE_HOLDER;
	c.rec.pod_uid = (char *)"uid";
	c.rec.identity = of(pod);
	c.rec.start_ticks = 100; /* a second */
	gs_strv_add(&c.cards, card);
	gs_strv_add(&c.cards, "nvidia-gone");
	return c;
}

static void names_make_no_holder(void **state)
{
	struct kubelet_use first[] = { use("a", "nvidia.com/gpu", "GPU-0"), { 0 } };
	struct kubelet_use second[] = { use("b", "nvidia.com/gpu", "GPU-0"), { 0 } };
	struct container list[] = { holder("a", "nvidia-0"), holder("b", "nvidia-0"),
				    holder("c", "nvidia-0"), holder("d", "nvidia-0"),
				    holder("e", "nvidia-mig") };
	struct containers containers = { .v = list, .n = 5 };
	struct allocated all = { 0 };

	(void)state;
	list[2].rec.pod_uid = NULL; /* no pod's: not the kubelet's to tell */
	list[3].rec.role = GS_ROLE_TARGET;
	allocated_confirm(&all, &cat, &cards, &containers);
	assert_int_equal(list[1].cards.n, 2);
	/* Younger than the answer. */
	(void)set(&all, first, 500);
	allocated_confirm(&all, &cat, &cards, &containers);
	assert_int_equal(list[1].cards.n, 2);
	/* So soon after it began to say so it may not know its pods yet. */
	all.asked_ms = 5000;
	assert_false(allocated_settled(&all));
	allocated_confirm(&all, &cat, &cards, &containers);
	assert_int_equal(list[1].cards.n, 2);
	all.asked_ms = 9000;
	assert_true(allocated_settled(&all));
	allocated_confirm(&all, &cat, &cards, &containers);
	assert_int_equal(list[0].cards.n, 2);
	assert_int_equal(list[1].cards.n, 1);
	assert_string_equal(list[1].denied.v[0], "nvidia-0");
	assert_string_equal(list[1].cards.v[0], "nvidia-gone");
	assert_int_equal(list[2].cards.n, 2);
	assert_int_equal(list[3].cards.n, 2);
	assert_int_equal(list[4].cards.n, 2); /* the kubelet knows no such card */
	/* It is given to the other one: his at once, and the first one's until that has settled. */
	(void)set(&all, second, 10000);
	allocated_confirm(&all, &cat, &cards, &containers);
	assert_int_equal(list[0].cards.n, 2);
	all.asked_ms = 20000;
	allocated_confirm(&all, &cat, &cards, &containers);
	assert_int_equal(list[0].cards.n, 1);
	assert_int_equal(list[1].cards.n, 2);
	assert_string_equal(list[1].cards.v[0], "nvidia-0");
	assert_int_equal(list[1].denied.n, 0);
	for (size_t i = 0; i < containers.n; i++) {
		gs_strv_free(&list[i].cards);
		gs_strv_free(&list[i].denied);
	}
	allocated_free(&all);
}

/* One that has just started, and has not heard from the API server. */
static void who_knows_its_pods(void **state)
{
	struct container list[] = { holder("a", "nvidia-0"), holder("b", "nvidia-1") };
	struct containers containers = { .v = list, .n = 2 };
	struct kubelet_uses uses = { 0 };

	(void)state;
	assert_false(allocated_knows_pods(&uses, &containers));
	gs_strv_add(&uses.pods, "ns/static");
	gs_strv_add(&uses.pods, "other/a");
	assert_false(allocated_knows_pods(&uses, &containers));
	gs_strv_add(&uses.pods, "ns/b");
	assert_true(allocated_knows_pods(&uses, &containers));
	/* who does not run, or is of no pod, has none that it could know */
	list[1].alive = false;
	assert_false(allocated_knows_pods(&uses, &containers));
	list[0].rec.pod_uid = NULL;
	assert_true(allocated_knows_pods(&uses, &containers));
	containers.n = 0;
	assert_true(allocated_knows_pods(&uses, &containers));
	for (size_t i = 0; i < 2; i++)
		gs_strv_free(&list[i].cards);
	gs_strv_free(&uses.pods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whose_a_card_is),
		cmocka_unit_test(what_is_no_news),
		cmocka_unit_test(names_make_no_holder),
		cmocka_unit_test(who_knows_its_pods),
	};

	return cmocka_run_group_tests_name("allocated", tests, NULL, NULL);
}
