// SPDX-License-Identifier: Apache-2.0
/* agent/apply.c: what the kernel module is told so that it comes from a state to a plan. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/apply.h"
#include "common/buf.h"
#include "common/xalloc.h"

/* ---- The module, which writes down what it is told, and refuses what it is asked to. */

static struct gs_buf told;
static const char *refused_call; /* "del watch", ...; NULL: nothing is refused */
static uint64_t cgroup_id; /* of every cgroup; 0: it is gone */
static struct card_node nodes[] = { { (char *)"/dev/x0", 10, true, true, false },
				    { (char *)"/dev/xctl", 11, false, true, false },
				    { (char *)"/dev/xcap", 12, true, false, false } };
static struct card card = { .name = (char *)"x-0", .nodes = nodes };
static struct cards cards = { &card, 1 };

static int tell(struct gs_err *err, const char *call, const char *name, const char *what)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "%s %s%s%s\n", call, name, *what ? " " : "", what);
	gs_buf_adds(&told, line);
	return refused_call && strcmp(call, refused_call) == 0 ?
		       gs_err_set(err, EBUSY, "files are open") :
		       0;
}

const struct cards *__wrap_inventory_cards(const struct inventory *inventory);
const struct cards *__wrap_inventory_cards(const struct inventory *inventory)
{
	(void)inventory;
	return &cards;
}

int __wrap_gs_klink_holding_set(struct gs_klink *link, const struct gs_kholding_set *set,
				struct gs_err *err);
int __wrap_gs_klink_holding_set(struct gs_klink *link, const struct gs_kholding_set *set,
				struct gs_err *err)
{
	char what[64];

	(void)link;
	(void)snprintf(what, sizeof(what), "%zu nodes", set->n_devs);
	return tell(err, "set holding", set->name, set->devs ? what : "times");
}

int __wrap_gs_klink_holding_del(struct gs_klink *link, const char *name, struct gs_err *err);
int __wrap_gs_klink_holding_del(struct gs_klink *link, const char *name, struct gs_err *err)
{
	(void)link;
	return tell(err, "del holding", name, "");
}

int __wrap_gs_klink_withdraw(struct gs_klink *link, const char *name, struct gs_err *err);
int __wrap_gs_klink_withdraw(struct gs_klink *link, const char *name, struct gs_err *err)
{
	(void)link;
	return tell(err, "withdraw", name, "");
}

int __wrap_gs_klink_watch_set(struct gs_klink *link, const struct gs_kwatch_set *set,
			      struct gs_err *err);
int __wrap_gs_klink_watch_set(struct gs_klink *link, const struct gs_kwatch_set *set,
			      struct gs_err *err)
{
	(void)link;
	return tell(err, "set watch", set->name, set->n_holdings ? set->holdings[0] : "");
}

int __wrap_gs_klink_watch_del(struct gs_klink *link, const char *name, struct gs_err *err);
int __wrap_gs_klink_watch_del(struct gs_klink *link, const char *name, struct gs_err *err)
{
	(void)link;
	return tell(err, "del watch", name, "");
}

int __wrap_gs_kwho_cgroup(const char *path, struct gs_kwho *ret, struct gs_err *err);
int __wrap_gs_kwho_cgroup(const char *path, struct gs_kwho *ret, struct gs_err *err)
{
	if (!cgroup_id)
		return gs_err_set(err, ENOENT, "open the cgroup %s", path);
	*ret = (struct gs_kwho){ .cgroup_id = cgroup_id };
	return 0;
}

/* ---- A node: one container that is in a holding of two nodes, planned and known alike. */

struct scene {
	struct settings settings;
	struct container container;
	struct plan_holding holding;
	struct plan_watch watch;
	uint32_t devs[3];
	struct gs_kholding kholding;
	uint32_t kdevs[2];
	struct gs_kwatch kwatch;
	struct plan plan;
	struct gs_kstate state;
};

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	settings_init(&s->settings);
	s->container.hook = (struct gs_hook_record){ .pid = 100, .pid_ns = 5001 };
	s->container.cgroup = (char *)"/sys/fs/cgroup/a/c";
	s->container.alive = true;
	s->container.rec.id = (char *)"c";
	s->container.cards = (struct gs_strv){ 0 };
	for (uint32_t i = 0; i < 3; i++)
		s->devs[i] = 10 + i;
	for (uint32_t i = 0; i < 2; i++)
		s->kdevs[i] = 10 + i;
	(void)strcpy(s->holding.name, "h");
	s->holding.devs = s->devs;
	s->holding.n_devs = 2;
	s->holding.lend_after_ms = s->kholding.lend_after_ms = 1000;
	s->kholding.hold_max_ms = s->settings.hold_max_ms;
	(void)strcpy(s->kholding.name, "h");
	s->kholding.state = GS_IDLE;
	s->kholding.devs.v = s->kdevs;
	s->kholding.devs.n = 2;
	(void)strcpy(s->watch.name, "w");
	s->watch.container = &s->container;
	s->watch.role = s->kwatch.role = GS_MEMBER;
	gs_strv_add(&s->watch.holdings, "h");
	(void)strcpy(s->kwatch.name, "w");
	s->kwatch.pid = 100;
	s->kwatch.pidns = 5001;
	gs_strv_add(&s->kwatch.holdings, "h");
	s->plan = (struct plan){
		.holdings = &s->holding, .watches = &s->watch, .n_holdings = 1, .n_watches = 1
	};
	s->state.holdings = &s->kholding;
	s->state.watches = &s->kwatch;
	s->state.n_holdings = s->state.n_watches = 1;
	refused_call = NULL;
	cgroup_id = 77;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	gs_strv_free(&s->watch.holdings);
	gs_strv_free(&s->kwatch.holdings);
	settings_free(&s->settings);
	gs_buf_free(&told);
	free(s);
	return 0;
}

static void hook(const struct card *of, const struct card_node *node, bool revocable, void *arg)
{
	(void)of;
	(void)arg;
	gs_buf_adds(&told, "hook ");
	gs_buf_adds(&told, node->path);
	gs_buf_adds(&told, "\n");
}

static void refused(const char *what, const struct gs_err *err, void *arg)
{
	(void)arg;
	gs_buf_adds(&told, "refused ");
	gs_buf_adds(&told, what);
	gs_buf_adds(&told, ": ");
	gs_buf_adds(&told, err->msg);
	gs_buf_adds(&told, "\n");
}

static void unlawful(const struct container *borrower, const char *why, void *arg)
{
	(void)arg;
	gs_buf_adds(&told, "unlawful ");
	gs_buf_adds(&told, borrower->rec.id);
	gs_buf_adds(&told, ": ");
	gs_buf_adds(&told, why);
	gs_buf_adds(&told, "\n");
}

/* Applies the plan: the module must be told just that. */
static void expect(struct scene *s, const char *want)
{
	static const struct apply_ops ops = { .hook = hook,
					      .refused = refused,
					      .unlawful = unlawful };
	const struct containers containers = { .v = &s->container, .n = 1 };
	char *text;
	bool any;

	any = apply_plan(NULL, NULL, &s->settings, &containers, &s->plan, &s->state, &ops);
	text = gs_buf_steal(&told);
	assert_string_equal(text ? text : "", want);
	/* the picture is old where something was set, and not where nothing was said */
	assert_true(any || !strstr(want, "set "));
	assert_false(any && !*want);
	free(text);
}

static void what_fits_is_left_alone(void **state)
{
	struct scene *s = *state;

	expect(s, "");
	s->watch.by_cgroup = true;
	s->kwatch.pid = s->kwatch.pidns = 0;
	s->kwatch.cgroup_id = 77;
	expect(s, "");
}

static void everything_anew(void **state)
{
	struct scene *s = *state;

	s->state.n_holdings = s->state.n_watches = 0;
	expect(s, "set holding h 2 nodes\nset watch w h\n");
}

static void times_alone_are_changed(void **state)
{
	struct scene *s = *state;

	s->holding.lend_after_ms = 2000;
	expect(s, "set holding h times\n");
}

/* Its touches would be nobody's else, and its card lent while it works. */
static void a_container_made_anew_under_its_id(void **state)
{
	struct scene *s = *state;

	s->container.hook.pid_ns = 5002;
	expect(s, "del watch w\nset watch w h\n");
	s->container.hook.pid_ns = 5001;
	/* the same by cgroup: a new folder of the same name, none, or a namespace before */
	s->watch.by_cgroup = true;
	expect(s, "del watch w\nset watch w h\n");
	s->kwatch.pid = s->kwatch.pidns = 0;
	s->kwatch.cgroup_id = 76;
	expect(s, "del watch w\nset watch w h\n");
	s->kwatch.cgroup_id = 77;
	cgroup_id = 0;
	expect(s, "del watch w\nrefused watch w: open the cgroup /sys/fs/cgroup/a/c\n");
}

/* What it did so far nobody saw: the card is not lent to anybody meanwhile. */
static void who_joins_what_is_lent(void **state)
{
	struct scene *s = *state;

	s->kholding.state = GS_LENT;
	expect(s, "");
	s->state.n_watches = 0;
	expect(s, "withdraw h\nset watch w h\n");
	s->kholding.state = GS_RETURNING;
	expect(s, "set watch w h\n");
	s->kholding.state = GS_LENT;
	s->state.n_watches = 1;
	s->container.hook.pid_ns = 5002;
	expect(s, "withdraw h\ndel watch w\nset watch w h\n");
	s->container.hook.pid_ns = 5001;
	gs_strv_free(&s->kwatch.holdings);
	gs_strv_add(&s->kwatch.holdings, "g");
	gs_strv_add(&s->watch.holdings, "g");
	expect(s, "withdraw h\nset watch w h\n");
	refused_call = "withdraw";
	expect(s, "withdraw h\nrefused take back holding h: files are open\nset watch w h\n");
}

static void a_borrower_made_anew_under_its_id(void **state)
{
	struct scene *s = *state;

	s->watch.role = s->kwatch.role = GS_BORROWER;
	s->kholding.state = GS_LENT;
	expect(s, "");
	s->kwatch.revoked = true;
	expect(s, "unlawful c: a lender is back\n");
	s->container.hook.pid_ns = 5002;
	expect(s, "del watch w\nset watch w h\n");
	refused_call = "set watch";
	expect(s, "del watch w\nset watch w h\nrefused watch w: files are open\n"
		  "unlawful c: files are open\n");
}

/* Files of the one before are open: the new one is ended, and the old one's watch stays. */
static void a_borrower_whose_forerunner_is_not_gone(void **state)
{
	struct scene *s = *state;

	s->watch.role = s->kwatch.role = GS_BORROWER;
	s->kholding.state = GS_LENT;
	s->container.hook.pid_ns = 5002;
	refused_call = "del watch";
	expect(s, "del watch w\nunlawful c: files are open\n");
}

static void a_holding_gets_a_card(void **state)
{
	struct scene *s = *state;

	s->holding.n_devs = 3;
	/* who is linked to the old one has to join the new one */
	expect(s, "del holding h\nset holding h 3 nodes\nset watch w h\n");
	/* not while it is away: it comes back first */
	s->kholding.state = GS_LENT;
	expect(s, "withdraw h\n");
	s->kholding.state = GS_RETURNING;
	expect(s, "");
	s->kholding.state = GS_QUARANTINE;
	expect(s, "");
	s->kholding.state = GS_ACTIVE;
	refused_call = "del holding";
	expect(s, "del holding h\n"); /* files of borrowers are open: in the next round */
	refused_call = NULL;
	/* other numbers, as many */
	s->holding.n_devs = 2;
	s->devs[1] = 99;
	expect(s, "del holding h\nset holding h 2 nodes\nset watch w h\n");
	/* none: the inventory does not know the card now */
	s->holding.n_devs = 0;
	expect(s, "");
}

static void nodes_are_hooked_once(void **state)
{
	struct scene *s = *state;
	struct gs_knode known = { .dev = 10 };

	card.n_nodes = 3;
	expect(s, "hook /dev/x0\nhook /dev/xctl\n");
	s->state.nodes = &known;
	s->state.n_nodes = 1;
	expect(s, "hook /dev/xctl\n");
	card.n_nodes = 0;
}

static void what_nobody_plans_goes(void **state)
{
	struct scene *s = *state;

	s->plan.n_holdings = s->plan.n_watches = 0;
	expect(s, "del watch w\ndel holding h\n");
	s->kholding.state = GS_LENDING;
	expect(s, "del watch w\nwithdraw h\n");
	s->kholding.state = GS_RETURNING;
	expect(s, "del watch w\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_fits_is_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(everything_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(times_alone_are_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_container_made_anew_under_its_id, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_joins_what_is_lent, setup, teardown),
		cmocka_unit_test_setup_teardown(a_borrower_made_anew_under_its_id, setup, teardown),
		cmocka_unit_test_setup_teardown(a_borrower_whose_forerunner_is_not_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_holding_gets_a_card, setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_are_hooked_once, setup, teardown),
		cmocka_unit_test_setup_teardown(what_nobody_plans_goes, setup, teardown),
	};

	return cmocka_run_group_tests_name("apply", tests, NULL, NULL);
}
