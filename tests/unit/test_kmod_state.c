// SPDX-License-Identifier: GPL-2.0-only
/*
 * The states of a holding: every state, every happening, everything else that counts, compared with
 * the table of the design (6.3), which is written down here once more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kmod/state.c" /* NOLINT(bugprone-suspicious-include): it is what is tested */

#define FACTS 8 /* the combinations of three bits */

static const char *const state_names[__GS_STATE_MAX] = {
	[GS_UNKNOWN] = "UNKNOWN",	[GS_ACTIVE] = "ACTIVE", [GS_IDLE] = "IDLE",
	[GS_LENDING] = "LENDING",	[GS_LENT] = "LENT",	[GS_RETURNING] = "RETURNING",
	[GS_QUARANTINE] = "QUARANTINE",
};

static const char *const on_names[__GS_ON_MAX] = {
	[GS_ON_HOOKED] = "hooked",     [GS_ON_SILENCE] = "silence",   [GS_ON_TOUCH] = "touch",
	[GS_ON_LEND] = "LEND",	       [GS_ON_QUIET] = "quiet",	      [GS_ON_LOUD] = "loud",
	[GS_ON_WITHDRAW] = "WITHDRAW", [GS_ON_RELEASE] = "RELEASE",   [GS_ON_DRAINED] = "drained",
	[GS_ON_SETTLED] = "settled",   [GS_ON_HOLD_MAX] = "hold_max", [GS_ON_LOST] = "lost",
};

#define B GS_FACT_BORROWERS
#define F GS_FACT_FILES
#define U GS_FACT_UNHOOKED

/*
 * A row of the table: @on leads from @from to @to while the facts @with are true and @without are
 * not. What no row says changes nothing.
 */
static const struct row {
	enum gs_state from;
	enum gs_on on;
	unsigned int with, without;
	enum gs_state to;
} rows[] = {
	/* Every node of the vendor is hooked. */
	{ GS_UNKNOWN, GS_ON_HOOKED, 0, U | F, GS_ACTIVE },
	/* Borrowers whose return hold_max ended may outlive the hooks: nothing is lent. */
	{ GS_UNKNOWN, GS_ON_HOOKED, F, U, GS_QUARANTINE },

	{ GS_ACTIVE, GS_ON_SILENCE, 0, 0, GS_IDLE },

	/* Any touch. A WITHDRAW (a holder is starting) is as good as one, but touches nothing. */
	{ GS_IDLE, GS_ON_TOUCH, 0, 0, GS_ACTIVE },
	{ GS_IDLE, GS_ON_WITHDRAW, 0, 0, GS_ACTIVE },
	{ GS_IDLE, GS_ON_LEND, 0, 0, GS_LENDING },

	/* Any change of the counts -> ACTIVE, else -> LENT. */
	{ GS_LENDING, GS_ON_TOUCH, 0, 0, GS_ACTIVE },
	{ GS_LENDING, GS_ON_LOUD, 0, 0, GS_ACTIVE },
	{ GS_LENDING, GS_ON_WITHDRAW, 0, 0, GS_ACTIVE },
	{ GS_LENDING, GS_ON_QUIET, 0, 0, GS_LENT },

	/* A touch while there is no borrower: nothing to hold for. */
	{ GS_LENT, GS_ON_TOUCH, 0, B | F, GS_ACTIVE },
	{ GS_LENT, GS_ON_TOUCH, B, 0, GS_RETURNING },
	{ GS_LENT, GS_ON_TOUCH, F, B, GS_RETURNING },
	{ GS_LENT, GS_ON_WITHDRAW, 0, 0, GS_RETURNING },

	/* RELEASE by the agent; without it, the last borrower's last close plus settle_ms. */
	{ GS_RETURNING, GS_ON_RELEASE, 0, F | U, GS_ACTIVE },
	{ GS_RETURNING, GS_ON_SETTLED, 0, F | U, GS_ACTIVE },
	/* hold_max with live borrowers, and with none: it never holds a user for longer. */
	{ GS_RETURNING, GS_ON_HOLD_MAX, F, U, GS_QUARANTINE },
	{ GS_RETURNING, GS_ON_HOLD_MAX, 0, F | U, GS_ACTIVE },

	{ GS_QUARANTINE, GS_ON_DRAINED, 0, F | U, GS_ACTIVE },

	/* Any -> UNKNOWN; if LENT or RETURNING, after the borrowers' last close or hold_max. */
	{ GS_ACTIVE, GS_ON_LOST, 0, 0, GS_UNKNOWN },
	{ GS_IDLE, GS_ON_LOST, 0, 0, GS_UNKNOWN },
	{ GS_LENDING, GS_ON_LOST, 0, 0, GS_UNKNOWN },
	{ GS_QUARANTINE, GS_ON_LOST, 0, 0, GS_UNKNOWN },
	{ GS_LENT, GS_ON_LOST, 0, B | F, GS_UNKNOWN },
	{ GS_LENT, GS_ON_LOST, B, 0, GS_RETURNING },
	{ GS_LENT, GS_ON_LOST, F, B, GS_RETURNING },
	{ GS_RETURNING, GS_ON_LOST, U, F, GS_UNKNOWN },
	{ GS_RETURNING, GS_ON_DRAINED, U, F, GS_UNKNOWN },
	{ GS_RETURNING, GS_ON_RELEASE, U, F, GS_UNKNOWN },
	{ GS_RETURNING, GS_ON_SETTLED, U, F, GS_UNKNOWN },
	{ GS_RETURNING, GS_ON_HOLD_MAX, U, 0, GS_UNKNOWN },
	{ GS_QUARANTINE, GS_ON_DRAINED, U, F, GS_UNKNOWN },
};

/* The table's answer. No two rows may speak of the same case. */
static enum gs_state wanted(enum gs_state from, enum gs_on on, unsigned int facts)
{
	enum gs_state to = from;
	unsigned int found = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];

		if (row->from != from || row->on != on || (facts & row->with) != row->with ||
		    facts & row->without)
			continue;
		to = row->to;
		found++;
	}
	assert_in_range(found, 0, 1);
	return to;
}

static void test_every_case(void **state)
{
	unsigned int wrong = 0;

	for (unsigned int from = 0; from < __GS_STATE_MAX; from++)
		for (unsigned int on = 0; on < __GS_ON_MAX; on++)
			for (unsigned int facts = 0; facts < FACTS; facts++) {
				enum gs_state is = gs_state_next(from, on, facts);
				enum gs_state should = wanted(from, on, facts);

				if (is == should)
					continue;
				wrong++;
				print_error("%s, %s%s%s%s: %s, not %s\n", state_names[from],
					    on_names[on], facts & B ? ", borrowers" : "",
					    facts & F ? ", files" : "",
					    facts & U ? ", not hooked" : "", state_names[is],
					    state_names[should]);
			}
	assert_int_equal(wrong, 0);
}

/* What no table of single steps shows: where a holding can have come from. */
static void test_ways(void **state)
{
	for (unsigned int from = 0; from < __GS_STATE_MAX; from++)
		for (unsigned int on = 0; on < __GS_ON_MAX; on++)
			for (unsigned int facts = 0; facts < FACTS; facts++) {
				enum gs_state to = gs_state_next(from, on, facts);

				assert_in_range(to, 0, __GS_STATE_MAX - 1);
				/* Lent only by a LEND that found all quiet. */
				if (to == GS_LENT && from != GS_LENT) {
					assert_int_equal(from, GS_LENDING);
					assert_int_equal(on, GS_ON_QUIET);
				}
				if (to == GS_LENDING && from != GS_LENDING) {
					assert_int_equal(from, GS_IDLE);
					assert_int_equal(on, GS_ON_LEND);
				}
				if (to == GS_IDLE && from != GS_IDLE)
					assert_int_equal(from, GS_ACTIVE);
				/* Callers are held only for somebody who was lent to. */
				if (to == GS_RETURNING && from != GS_RETURNING)
					assert_int_equal(from, GS_LENT);
				/* Nobody is let go over a borrower's open file, but by hold_max. */
				if (from == GS_RETURNING && to != GS_RETURNING && facts & F)
					assert_int_equal(on, GS_ON_HOLD_MAX);
				/* hold_max always ends it. */
				if (from == GS_RETURNING && on == GS_ON_HOLD_MAX)
					assert_int_not_equal(to, GS_RETURNING);
				/* Silence without hooks is no evidence. */
				if (from == GS_UNKNOWN && facts & U)
					assert_int_equal(to, GS_UNKNOWN);
			}
}

/* A number that a newer or a broken caller may bring changes nothing. */
static void test_unknown_numbers(void **state)
{
	assert_int_equal(gs_state_next(__GS_STATE_MAX, GS_ON_TOUCH, 0), __GS_STATE_MAX);
	for (unsigned int from = 0; from < __GS_STATE_MAX; from++)
		for (unsigned int facts = 0; facts < FACTS; facts++)
			assert_int_equal(gs_state_next(from, __GS_ON_MAX, facts), from);
}

static void test_causes(void **state)
{
	static const enum gs_cause causes[__GS_ON_MAX] = {
		[GS_ON_HOOKED] = GS_BY_HOOKED,	   [GS_ON_SILENCE] = GS_BY_SILENCE,
		[GS_ON_TOUCH] = GS_BY_TOUCH,	   [GS_ON_LEND] = GS_BY_LEND,
		[GS_ON_QUIET] = GS_BY_LEND,	   [GS_ON_LOUD] = GS_BY_TOUCH,
		[GS_ON_WITHDRAW] = GS_BY_WITHDRAW, [GS_ON_RELEASE] = GS_BY_RELEASE,
		[GS_ON_DRAINED] = GS_BY_DRAINED,   [GS_ON_SETTLED] = GS_BY_SETTLED,
		[GS_ON_HOLD_MAX] = GS_BY_HOLD_MAX, [GS_ON_LOST] = GS_BY_LOST,
	};

	for (unsigned int on = 0; on < __GS_ON_MAX; on++)
		assert_int_equal(gs_state_cause(on), causes[on]);
	assert_int_equal(gs_state_cause(__GS_ON_MAX), GS_BY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_case),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_unknown_numbers),
		cmocka_unit_test(test_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
