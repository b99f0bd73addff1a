// SPDX-License-Identifier: Apache-2.0
/* agent/sample.c: when mappings of an idle card's users are taken away, and what that proves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sample.h"
#include "agent/unseen.h"

/* ---- The module, the cards and the clock. */

static uint64_t now_ms;
static bool loaded;
static int answer;
static unsigned int asked, counted, refused;

uint64_t __wrap_gs_boottime_ms(void);
uint64_t __wrap_gs_boottime_ms(void)
{
	return now_ms;
}

struct gs_klink *__wrap_kernel_link(struct kernel *kernel);
struct gs_klink *__wrap_kernel_link(struct kernel *kernel)
{
	static char link;

	return loaded ? (struct gs_klink *)&link : NULL;
}

int __wrap_gs_klink_sample(struct gs_klink *link, const char *name, uint64_t seq,
			   struct gs_err *err);
int __wrap_gs_klink_sample(struct gs_klink *link, const char *name, uint64_t seq,
			   struct gs_err *err)
{
	assert_string_equal(name, "h");
	assert_int_equal(seq, 7);
	asked++;
	return answer ? gs_err_set(err, -answer, "no") : 0;
}

void __wrap_observe_sample(struct agent *agent);
void __wrap_observe_sample(struct agent *agent)
{
	counted++;
}

void __wrap_unseen_refused(struct agent *agent, const struct plan_holding *plan, const char *why);
void __wrap_unseen_refused(struct agent *agent, const struct plan_holding *plan, const char *why)
{
	refused++;
}

static struct card_node node = { .path = (char *)"/dev/null", .own = true, .hook = true };
static struct card card = { .name = (char *)"x-0",
			    .vendor = (char *)"x",
			    .nodes = &node,
			    .n_nodes = 1 };
static const struct cards cards = { .v = &card, .n = 1 };

const struct cards *__wrap_inventory_cards(const struct inventory *inventory);
const struct cards *__wrap_inventory_cards(const struct inventory *inventory)
{
	return &cards;
}

struct scene {
	struct agent agent;
	struct hold hold;
	struct plan_holding plan;
	struct gs_knode known;
	char *names[1];
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	node.dev = gs_kdev(1, 3);
	s->known = (struct gs_knode){ .dev = node.dev, .revocable = true };
	s->agent.state.nodes = &s->known;
	s->agent.state.n_nodes = 1;
	s->agent.state.status.features = GS_F_REVOKE | GS_F_SAMPLE;
	s->agent.settings.sample_ms = 10000;
	s->names[0] = card.name;
	s->plan.cards = (struct gs_strv){ .v = s->names, .n = 1 };
	s->plan.lend = true;
	memcpy(s->hold.name, "h", 2);
	s->hold.state = GS_IDLE;
	s->hold.seq = 7;
	now_ms = 1000;
	loaded = true;
	answer = 0;
	asked = counted = refused = 0;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* At that time; how often the module has been asked by then, and whether that proves anything. */
static void at(struct scene *s, uint64_t ms, unsigned int want, bool proves)
{
	now_ms = ms;
	sample_idle(&s->agent, &s->hold, &s->plan);
	assert_int_equal(asked, want);
	assert_int_equal(sample_proves(&s->agent, &s->hold, &s->plan), proves);
}

static void every_period(void **state)
{
	struct scene *s = *state;

	at(s, 1000, 1, false);
	at(s, 1001, 1, false);
	at(s, 10999, 1, false);
	at(s, 11000, 2, true);
	at(s, 20999, 2, true);
	at(s, 21000, 3, true);
	assert_int_equal(counted, 3);
}

static void again_soon_where_it_failed(void **state)
{
	struct scene *s = *state;

	answer = -EBUSY;
	at(s, 1000, 1, false);
	at(s, 1999, 1, false);
	at(s, 2000, 2, false);
	answer = 0;
	at(s, 3000, 3, false);
	at(s, 12999, 3, false);
	at(s, 13000, 4, true);
	/* what was proved stays so, as the holding was not touched */
	answer = -EBUSY;
	at(s, 23000, 5, true);
	assert_int_equal(counted, 2);
	assert_int_equal(refused, 0);
}

static void what_can_not_be_taken_away(void **state)
{
	struct scene *s = *state;

	answer = -EOPNOTSUPP;
	at(s, 1000, 1, false);
	assert_int_equal(refused, 1);
	s->known.revocable = false; /* as it is then hooked */
	at(s, 5000, 1, true);
	s->known.revocable = true;
	s->agent.state.status.features = GS_F_REVOKE; /* an older module */
	at(s, 9000, 1, true);
}

static void not_asked(void **state)
{
	struct scene *s = *state;

	s->hold.state = GS_ACTIVE;
	at(s, 1000, 0, false);
	s->hold.state = GS_LENT;
	at(s, 1000, 0, false);
	s->hold.state = GS_IDLE;
	s->plan.lend = false;
	at(s, 1000, 0, false);
	s->plan.lend = true;
	loaded = false;
	at(s, 1000, 0, false);
	loaded = true;
	s->agent.settings.sample_ms = 0;
	at(s, 1000, 0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(every_period),
		T(again_soon_where_it_failed),
		T(what_can_not_be_taken_away),
		T(not_asked),
	};

	return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
