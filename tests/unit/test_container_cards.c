// SPDX-License-Identifier: Apache-2.0
/* agent/container_cards.c: which cards a container uses, by the vendor slice of its spec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/container.h"
#include "common/cleanup.h"
#include "common/kmsg.h"
#include "tests/unit/tmpdir.h"

/* Two cards of a maker by device, two of one whose runtime injects by selector. */
static struct card_node node0[] = { { (char *)"/dev/x0", 0, true, true, false } };
static struct card_node node1[] = { { (char *)"/dev/x1", 0, true, true, false } };
static char *select0[] = { (char *)"GPU-0", (char *)"0" };
static char *select1[] = { (char *)"GPU-1", (char *)"1" };
static struct card all[] = {
	{ .name = (char *)"x-0", .vendor = (char *)"x", .nodes = node0, .n_nodes = 1 },
	{ .name = (char *)"x-1", .vendor = (char *)"x", .nodes = node1, .n_nodes = 1 },
	{ .name = (char *)"s-0", .vendor = (char *)"s", .select = { select0, 2 } },
	{ .name = (char *)"s-1", .vendor = (char *)"s", .select = { select1, 2 } },
};
static const struct cards cards = { all, 4 };

static struct gs_catalogue catalogue;
static bool all_is_each;

static int setup(void **state)
{
	cleanup_strv struct gs_strv dirs = { 0 };
	struct gs_err err = { 0 };
	char *dir = tmpdir_make();

	node0[0].dev = gs_kdev(240, 0);
	node1[0].dev = gs_kdev(240, 300);
	tmpdir_write(dir, "x.json",
		     "{\"name\":\"x\",\"title\":\"X\",\"nodes\":[{\"glob\":\"/dev/x[0-9]*\","
		     "\"kind\":\"card\"}]}");
	tmpdir_write(dir, "s.json",
		     "{\"name\":\"s\",\"title\":\"S\",\"nodes\":"
		     "[{\"glob\":\"/dev/s[0-9]*\",\"kind\":\"card\"}],"
		     "\"env\":[{\"name\":\"S_VISIBLE\",\"merge\":\"list\",\"selects\":true},"
		     "{\"name\":\"S_OTHER\",\"merge\":\"list\"}],"
		     "\"mounts\":[{\"to\":\"/var/run/s/*\",\"from\":[\"/dev/null\"],"
		     "\"selects\":true}],"
		     "\"next\":{\"runtimes\":[\"s-runtime\"]}}");
	gs_strv_add(&dirs, dir);
	if (gs_catalogue_load(&catalogue, &dirs, &err) < 0)
		fail_msg("%s", err.msg);
	*state = dir;
	return 0;
}

static int teardown(void **state)
{
	gs_catalogue_free(&catalogue);
	tmpdir_remove(*state);
	return 0;
}

static void uses(const char *spec, const char *next, const char *want)
{
	struct gs_record rec = { .spec = (char *)spec,
				 .spec_len = strlen(spec),
				 .next = (char *)next };
	cleanup_strv struct gs_strv list = { 0 };
	cleanup_free char *text = NULL;

	container_cards(&rec, &cards, &catalogue, all_is_each, &list);
	text = gs_strv_join(&list);
	assert_string_equal(text, want);
}

#define DEVICES(list, rules) \
	"{\"linux\":{\"devices\":[" list "],\"resources\":{\"devices\":[" rules "]}}}"
#define DEVICE(minor) "{\"path\":\"/dev/any\",\"type\":\"c\",\"major\":240,\"minor\":" #minor "}"

static void by_number(void **state)
{
	(void)state;
	uses(DEVICES(DEVICE(0), ""), "runc", "x-0");
	uses(DEVICES(DEVICE(300) "," DEVICE(0) "," DEVICE(0), ""), "runc", "x-0,x-1");
	uses(DEVICES(DEVICE(7), ""), "runc", "");
	uses(DEVICES("", ""), "runc", "");
}

/* A privileged container lists every device of the node, and was given none of them. */
static void not_where_all_is_allowed(void **state)
{
	(void)state;
	uses(DEVICES(DEVICE(0), "{\"allow\":true,\"access\":\"rwm\"}"), "runc", "");
	uses(DEVICES(DEVICE(0), "{\"allow\":true,\"major\":-1,\"minor\":-1,\"access\":\"rwm\"}"),
	     "runc", "");
	uses(DEVICES(DEVICE(0), "{\"allow\":false,\"access\":\"rwm\"},"
				"{\"allow\":true,\"type\":\"c\",\"major\":240,\"minor\":0}"),
	     "runc", "x-0");
}

#define ENV(list) "{\"process\":{\"env\":[" list "]}}"

static void by_selector(void **state)
{
	(void)state;
	uses(ENV("\"S_VISIBLE=GPU-1\""), "/usr/bin/s-runtime", "s-1");
	uses(ENV("\"S_VISIBLE=0,GPU-1\""), "/usr/bin/s-runtime", "s-0,s-1");
	/* in a runtime that does not act on it, it is a word */
	uses(ENV("\"S_VISIBLE=GPU-1\""), "/usr/bin/runc", "");
	/* every image has it: nobody says that those are his */
	uses(ENV("\"S_VISIBLE=all\""), "/usr/bin/s-runtime", "");
	uses(ENV("\"S_VISIBLE=GPU-\",\"S_VISIBLE\",\"S_OTHER=0\""), "/usr/bin/s-runtime", "");
}

/* `docker run --gpus all`: there it is the user's, who is given every card. */
static void all_is_each_where_no_cri_runs(void **state)
{
	(void)state;
	all_is_each = true;
	uses(ENV("\"S_VISIBLE=all\""), "/usr/bin/s-runtime", "s-0,s-1");
	uses(ENV("\"S_VISIBLE=all\""), "/usr/bin/runc", "");
	uses(ENV("\"S_VISIBLE=none\""), "/usr/bin/s-runtime", "");
	all_is_each = false;
}

static void by_selecting_mount(void **state)
{
	(void)state;
	uses("{\"mounts\":[{\"source\":\"/dev/null\",\"destination\":\"/var/run/s/GPU-0\"}]}",
	     "/usr/bin/s-runtime", "s-0");
	uses("{\"mounts\":[{\"source\":\"/etc\",\"destination\":\"/var/run/s/GPU-0\"}]}",
	     "/usr/bin/s-runtime", "");
}

static void nonsense(void **state)
{
	(void)state;
	uses("{", "runc", "");
	uses("[]", "runc", "");
	uses("{\"linux\":{\"devices\":[1,{},{\"major\":-1,\"minor\":0},"
	     "{\"major\":99999999999,\"minor\":0},{\"major\":240,\"minor\":\"0\"}]}}",
	     "runc", "");
	uses("{\"process\":{\"env\":{}},\"mounts\":[7,{\"source\":1}]}", NULL, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_number),
		cmocka_unit_test(not_where_all_is_allowed),
		cmocka_unit_test(by_selector),
		cmocka_unit_test(all_is_each_where_no_cri_runs),
		cmocka_unit_test(by_selecting_mount),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests_name("container_cards", tests, setup, teardown);
}
