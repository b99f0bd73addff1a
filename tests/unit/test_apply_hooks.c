// SPDX-License-Identifier: Apache-2.0
/* agent/apply.c and unseen.c: which nodes are hooked, and whose mappings may be taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/apply.h"
#include "agent/unseen.h"
#include "common/buf.h"
#include "common/xalloc.h"

/* ---- The module, which writes down what it is told. */

static struct gs_buf told;
int __wrap_gs_klink_withdraw(struct gs_klink *link, const char *name, struct gs_err *err);
int __wrap_gs_klink_withdraw(struct gs_klink *link, const char *name, struct gs_err *err)
{
	gs_buf_adds(&told, "withdraw\n");
	return 0;
}

int __wrap_gs_klink_holding_del(struct gs_klink *link, const char *name, struct gs_err *err);
int __wrap_gs_klink_holding_del(struct gs_klink *link, const char *name, struct gs_err *err)
{
	gs_buf_adds(&told, "delete\n");
	return 0;
}

/* ---- A card with a node of its own, and one that is everybody's. */

static struct card_node nodes[] = {
	{ .path = (char *)"/dev/null", .own = true, .hook = true, .revocable = true },
	{ .path = (char *)"/dev/zero", .own = false, .hook = true, .revocable = true },
	{ .path = (char *)"/dev/full", .own = true, .hook = false, .revocable = true },
};
static struct card card = { .name = (char *)"x-0",
			    .vendor = (char *)"x",
			    .nodes = nodes,
			    .n_nodes = 3 };
static const struct cards cards = { .v = &card, .n = 1 };

const struct cards *__wrap_inventory_cards(const struct inventory *inventory);
const struct cards *__wrap_inventory_cards(const struct inventory *inventory)
{
	return &cards;
}

struct scene {
	bool revocable; /* the agent's word for the card */
	struct gs_knode known[2];
	struct gs_kholding holding;
	struct gs_kstate state;
};

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	nodes[0].dev = gs_kdev(1, 3);
	nodes[1].dev = gs_kdev(1, 5);
	nodes[2].dev = gs_kdev(1, 7);
	nodes[0].revocable = true;
	s->revocable = true;
	s->known[0].dev = nodes[0].dev;
	s->known[1].dev = nodes[1].dev;
	s->holding.devs = (struct gs_kdevs){ &nodes[0].dev, 1 };
	s->holding.state = GS_IDLE;
	s->state = (struct gs_kstate){ .nodes = s->known, .holdings = &s->holding };
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	gs_buf_free(&told);
	free(*state);
	return 0;
}

static void hook(const struct card *of, const struct card_node *node, bool takes, void *arg)
{
	assert_ptr_equal(of, &card);
	gs_buf_addf(&told, "hook %s%s\n", node->path, takes ? " revocable" : "");
}

static bool revocable(const struct card *asked, void *arg)
{
	const struct scene *s = arg;

	assert_ptr_equal(asked, &card);
	return s->revocable;
}

static void later(void *arg)
{
	gs_buf_adds(&told, "later\n");
}

static void expect(struct scene *s, const char *want)
{
	const struct apply_ops ops = {
		.hook = hook, .revocable = revocable, .later = later, .arg = s
	};
	static const struct containers nobody;
	static const struct plan plan;
	struct settings settings;
	char *text;

	settings_init(&settings);
	(void)apply_plan(NULL, NULL, &settings, &nobody, &plan, &s->state, &ops);
	settings_free(&settings);
	text = gs_buf_steal(&told);
	assert_string_equal(text ? text : "", want);
	free(text);
}

static void an_own_node_is_revocable(void **state)
{
	struct scene *s = *state;

	/* what is shared is not, whatever its entry says */
	expect(s, "hook /dev/null revocable\nhook /dev/zero\n");
	s->revocable = false;
	expect(s, "hook /dev/null\nhook /dev/zero\n");
	s->revocable = true;
	nodes[0].revocable = false;
	expect(s, "hook /dev/null\nhook /dev/zero\n");
}

static void hooked_otherwise_before(void **state)
{
	struct scene *s = *state;

	s->state.n_nodes = 2;
	expect(s, "hook /dev/null revocable\n");
	s->known[0].revocable = true;
	expect(s, "");
	s->revocable = false;
	expect(s, "hook /dev/null\n");
	s->revocable = true;
	s->known[1].revocable = true;
	expect(s, "hook /dev/zero\n");
}

/* What LEND took away, or did not, is to come back as it was. */
static void not_while_it_is_away(void **state)
{
	struct scene *s = *state;

	s->state.n_nodes = 2;
	s->state.n_holdings = 1;
	/* of a holding that nobody plans, and that therefore has to go */
	s->holding.state = GS_RETURNING;
	expect(s, "later\n");
	s->holding.state = GS_QUARANTINE;
	expect(s, "later\n");
	s->holding.state = GS_LENT;
	expect(s, "later\nwithdraw\n");
	s->known[0].revocable = true;
	expect(s, "withdraw\n");
	s->known[0].revocable = false;
	s->holding.state = GS_IDLE;
	expect(s, "hook /dev/null revocable\ndelete\n");
	s->holding.devs.v = &nodes[2].dev; /* another card's */
	s->holding.state = GS_RETURNING;
	expect(s, "hook /dev/null revocable\n");
}

static void what_is_not_held(void **state)
{
	struct scene *s = *state;

	assert_true(unseen_card(&s->state, &card));
	s->state.n_nodes = 2;
	assert_true(unseen_card(&s->state, &card));
	s->known[1].revocable = true; /* a shared node does not help */
	assert_true(unseen_card(&s->state, &card));
	s->known[0].revocable = true;
	s->known[1].revocable = false;
	assert_false(unseen_card(&s->state, &card));
	/* a slice of a card has no node of its own that is hooked */
	nodes[0].own = false;
	assert_true(unseen_card(&s->state, &card));
	nodes[0].own = true;
}

/* It is not lent while what it is told about mappings is on its way. */
static void what_is_on_its_way(void **state)
{
	struct scene *s = *state;
	struct seen_card seen = { .name = card.name };
	struct agent *agent = gs_calloc(1, sizeof(*agent));

	agent->cards = &seen;
	agent->n_cards = 1;
	agent->state = s->state;
	assert_true(unseen_settled(agent, &card));
	agent->state.n_nodes = 2;
	assert_true(unseen_settled(agent, &card)); /* the module can't */
	agent->state.status.features = GS_F_REVOKE;
	assert_false(unseen_settled(agent, &card));
	s->known[0].revocable = true;
	assert_true(unseen_settled(agent, &card));
	seen.unrevocable = (char *)"no";
	assert_false(unseen_settled(agent, &card));
	s->known[0].revocable = false;
	assert_true(unseen_settled(agent, &card));
	seen.unrevocable = NULL;
	nodes[0].revocable = false;
	assert_true(unseen_settled(agent, &card));
	free(agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(an_own_node_is_revocable), T(hooked_otherwise_before), T(not_while_it_is_away),
		T(what_is_not_held),	     T(what_is_on_its_way),
	};

	return cmocka_run_group_tests_name("apply_hooks", tests, NULL, NULL);
}
