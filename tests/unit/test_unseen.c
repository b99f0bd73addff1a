// SPDX-License-Identifier: Apache-2.0
/* agent/unseen.c: what a reading of a lent card says of its user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/inventory_source.h"
#include "agent/unseen.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/*
 * A card that is lent since 10,000: its user's process 7 and a borrower's 8 are on it, both idle,
 * and so is the card.
 */
struct scene {
	struct load_process processes[2];
	struct load load;
	bool member[2];
	struct unseen_view view;
};

static void begin(struct scene *s)
{
	*s = (struct scene){
		.processes = { { .pid = 7, .busy_known = true }, { .pid = 8, .busy_known = true } },
		.load = { .at_ms = 20000,
			  .known = true,
			  .processes_known = true,
			  .processes_at_ms = 20000,
			  .busy_since_ms = 19000,
			  .n_processes = 2 },
		.member = { true, false },
	};
	s->load.processes = s->processes;
	s->view = (struct unseen_view){
		.load = &s->load, .member = s->member, .lent_ms = 10000, .from_ms = 9900
	};
}

#define expect(s, want) assert_int_equal(unseen_work(&(s)->view), (want))

static void a_members_process(void **state)
{
	struct scene s;

	begin(&s);
	expect(&s, UNSEEN_NONE);
	/* The least of it is a return, whoever else works. */
	s.processes[0].busy = 0.0001;
	expect(&s, UNSEEN_PROCESS);
	s.load.busy = 1;
	s.processes[1].busy = 1;
	s.view.borrowed_ms = 20000;
	expect(&s, UNSEEN_PROCESS);
	/* Also where nothing is known of the card as a whole. */
	s.load.known = false;
	s.load.busy = 0;
	expect(&s, UNSEEN_PROCESS);
	/* A borrower's work is none. */
	s.processes[0].busy = 0;
	expect(&s, UNSEEN_NONE);
	/* The list may be older than the reading that it came with. */
	s.processes[0].busy = 0.5;
	s.load.at_ms = 90000;
	expect(&s, UNSEEN_PROCESS);
}

static void a_process_that_worked_before(void **state)
{
	struct scene s;

	begin(&s);
	s.processes[0].busy = 0.5;
	s.view.borrowed_ms = 20000;
	s.load.busy_since_ms = 9900;
	expect(&s, UNSEEN_PROCESS);
	/* Some of that was before it was last seen to be idle, and lent. */
	s.load.busy_since_ms = 9899;
	expect(&s, UNSEEN_NONE);
	s.load.busy_since_ms = 0;
	s.view.from_ms = 0;
	expect(&s, UNSEEN_NONE);
	/* Not told at all. */
	s.load.busy_since_ms = 19000;
	s.processes[0].busy_known = false;
	expect(&s, UNSEEN_NONE);
}

static void a_card_without_borrower(void **state)
{
	struct scene s;

	begin(&s);
	s.load.busy = 0.01;
	expect(&s, UNSEEN_CARD);
	s.load.known = false;
	expect(&s, UNSEEN_NONE);
	s.load.known = true;
	/* A reading that is older than the lending, or of the same moment. */
	s.load.at_ms = 10000;
	expect(&s, UNSEEN_NONE);
	s.load.at_ms = 10001;
	expect(&s, UNSEEN_CARD);
	/* A borrower is there, or was a moment ago: utilisation is an average. */
	s.load.at_ms = 20000;
	s.view.borrowed_ms = 20500;
	expect(&s, UNSEEN_NONE);
	s.view.borrowed_ms = 19000;
	expect(&s, UNSEEN_NONE);
	s.view.borrowed_ms = 18999;
	expect(&s, UNSEEN_CARD);
}

/* Utilisation stays where it was, with nobody there who could be the reason. */
static void latched(void **state)
{
	struct scene s;

	begin(&s);
	s.load.busy = 1;
	s.member[0] = false;
	expect(&s, UNSEEN_NONE);
	s.load.n_processes = 0;
	expect(&s, UNSEEN_NONE);
	/* Who is there is not told: it may be the user. */
	s.load.processes_known = false;
	expect(&s, UNSEEN_CARD);
}

/* What a probe tells of processes; -1: that is rubbish. */
static int told(const char *text, struct load *load)
{
	cleanup_json json_t *json = json_loads(text, 0, NULL);
	struct gs_err err = { 0 };

	assert_non_null(json);
	return vendor_source_parse_load(json, load, &err) < 0 ? -1 : 0;
}

static void as_told_by_a_probe(void **state)
{
	struct load load = { 0 };

	assert_int_equal(told("{\"at_ms\":100,\"busy_since_ms\":90,\"processes\":["
			      "{\"pid\":7,\"memory\":5,\"busy\":0.25},{\"pid\":8}]}",
			      &load),
			 0);
	assert_false(load.known);
	assert_int_equal(load.n_processes, 2);
	assert_true(load.processes[0].busy_known && load.processes[0].busy == 0.25);
	assert_true(!load.processes[1].busy_known && load.processes[1].busy == 0);
	assert_int_equal((int)load.busy_since_ms, 90);
	/* Without a list the last one stays, and what belongs to it. */
	assert_int_equal(told("{\"at_ms\":200,\"busy\":0.5}", &load), 0);
	assert_true(load.known && load.processes[0].busy_known);
	assert_int_equal((int)load.busy_since_ms, 90);
	assert_int_equal((int)load.processes_at_ms, 100);
	/* A time that is not over. */
	assert_int_equal(told("{\"at_ms\":300,\"busy_since_ms\":400,\"processes\":[]}", &load), 0);
	assert_int_equal((int)load.busy_since_ms, 300);
	assert_int_equal(told("{\"at_ms\":1,\"processes\":[{\"pid\":7,\"busy\":1.5}]}", &load), -1);
	assert_int_equal(told("{\"at_ms\":1,\"processes\":[{\"pid\":7,\"busy\":-1}]}", &load), -1);
	assert_int_equal(told("{\"at_ms\":1,\"processes\":[{\"pid\":7,\"busy\":\"1\"}]}", &load),
			 -1);
	assert_int_equal(told("{\"at_ms\":1,\"busy_since_ms\":-1}", &load), -1);
	free(load.processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_members_process),
		cmocka_unit_test(a_process_that_worked_before),
		cmocka_unit_test(a_card_without_borrower),
		cmocka_unit_test(latched),
		cmocka_unit_test(as_told_by_a_probe),
	};

	return cmocka_run_group_tests_name("unseen", tests, NULL, NULL);
}
