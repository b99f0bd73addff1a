// SPDX-License-Identifier: Apache-2.0
/* ctl/view.c and what it is shown by: rubbish in ConfigMaps, ages, totals, YAML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/totals.h"
#include "ctl/view.h"
#include "ctl/yaml.h"

/* 2026-11-30T13:00:00Z */
#define NOW_MS 1796043600000LL

/* A list with one ConfigMap, whose picture is @picture with ' for ". */
static char *list_of(const char *name, const char *picture)
{
	cleanup_free char *text = gs_strdup(picture);
	struct gs_buf out = { 0 };

	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	gs_buf_addf(&out,
		    "{\"kind\":\"List\",\"items\":[{\"metadata\":{\"name\":\"%s\"},"
		    "\"data\":{\"status.json\":",
		    name);
	gs_buf_add_json(&out, text);
	gs_buf_adds(&out, "}}]}");
	return gs_buf_steal(&out);
}

static int read_one(const char *picture, struct view *view)
{
	cleanup_free char *text = list_of("gpushare-node-n1", picture);

	return view_read(text, strlen(text), NOW_MS, view, NULL);
}

#define HELD                                                                                      \
	"{'v':1,'time':'2026-11-30T12:59:00Z','cards':[{'card':'a','holding':'h','busy':0.5},"    \
	"{'card':'b','holding':'h'},{'card':'c'}],'holdings':[{'holding':'h','state':'lent',"     \
	"'since_ms':1000,'cards':['a','b'],'members':[{'id':'1','name':'ns/p/x','role':'holder'," \
	"'cards':['a','b'],'user_id':'u','partition':'g','memory_used':100},{'id':'2','name':"    \
	"'ns/p/y','role':'target','cards':['a'],'user_id':'u','partition':'g'}]},{'holding':'i'," \
	"'state':'idle','members':[{'id':'2','name':'ns/p/y','role':'target','cards':['a'],"      \
	"'user_id':'u','partition':'g'}]}],'borrowers':[{'id':'3','name':'spot/q/z','cards':"     \
	"['b'],'memory_used':7}]}"

static void a_picture_grows_older(void **state)
{
	struct view view;

	assert_int_equal(read_one(HELD, &view), 0);
	assert_int_equal(view.n, 1);
	assert_int_equal(view.wrong.n, 0);
	assert_string_equal(view.v[0].name, "n1");
	assert_int_equal(view.v[0].age_ms, 60000);
	assert_false(view.v[0].stale);
	assert_int_equal(view.v[0].pic.holdings[0].since_ms, 61000);
	assert_int_equal(view.v[0].pic.holdings[1].since_ms, -1);
	view_free(&view);
}

static void who_is_silent_is_stale(void **state)
{
	static const struct {
		const char *time;
		int64_t age_ms;
		bool stale;
	} cases[] = {
		{ "'2026-11-30T12:49:00Z'", 660000, false },
		{ "'2026-11-30T12:48:59Z'", 661000, true },
		/* a clock that is ahead of ours */
		{ "'2026-11-30T23:00:00Z'", 0, false },
		{ "'2026-11-30'", -1, true },
		{ "'2026-11-30T12:48:59Z and more'", -1, true },
		{ "'0001-01-01T00:00:00Z'", -1, true },
		{ "7", -1, true },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_free char *text = gs_asprintf("{'v':1,'time':%s}", cases[i].time);
		struct view view;

		assert_int_equal(read_one(text, &view), 0);
		assert_int_equal(view.n, 1);
		assert_int_equal(view.v[0].age_ms, cases[i].age_ms);
		assert_int_equal(view.v[0].stale, cases[i].stale);
		view_free(&view);
	}
}

static void numbers_that_are_none(void **state)
{
	struct view view;

	assert_int_equal(
		read_one("{'v':1,'time':'2026-11-30T12:59:00Z','left_out':-3,'cards':[{'card':'a',"
			 "'busy':1e300,'memory_total':-1}],'holdings':[{'holding':'h','since_ms':"
			 "9223372036854775807,'members':7}],'borrowers':{}}",
			 &view),
		0);
	assert_int_equal(view.v[0].left_out, 0);
	assert_true(view.v[0].pic.cards[0].busy <= 1);
	assert_true(view.v[0].pic.holdings[0].since_ms == INT64_MAX);
	view_free(&view);
}

/* One that is rubbish is told, and spoils no other. */
static void rubbish_is_told(void **state)
{
	static const struct {
		const char *map, *want;
	} cases[] = {
		{ "7", "ConfigMap without a name" },
		{ "{}", "ConfigMap without a name" },
		{ "{\"metadata\":{\"name\":\"other\"}}", "ConfigMap other" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-\"}}", "ConfigMap gpushare-node-" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-x\"}}", "it has no status.json" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-x\"},\"data\":[]}", "it has no status" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-x\"},\"data\":{\"status.json\":7}}",
		  "it has no status.json" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-x\"},\"data\":{\"status.json\":\"[\"}}",
		  "status.json:1:" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-x\"},\"data\":{\"status.json\":\"{}\"}}",
		  "node x: its view can't be read: it is of version 0, and not of 1" },
		{ "{\"metadata\":{\"name\":\"gpushare-node-x\"},"
		  "\"data\":{\"status.json\":\"{\\\"v\\\":2}\"}}",
		  "it is of version 2" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		cleanup_free char *text = gs_asprintf(
			"{\"items\":[%s,{\"metadata\":{\"name\":\"gpushare-node-y\"},\"data\":"
			"{\"status.json\":\"{\\\"v\\\":1}\"}}]}",
			cases[i].map);
		struct view view;

		assert_int_equal(view_read(text, strlen(text), NOW_MS, &view, NULL), 0);
		assert_int_equal(view.n, 1);
		assert_string_equal(view.v[0].name, "y");
		assert_int_equal(view.wrong.n, 1);
		if (!strstr(view.wrong.v[0], cases[i].want))
			fail_msg("\"%s\" is not about \"%s\"", view.wrong.v[0], cases[i].want);
		view_free(&view);
	}
}

static void what_is_no_list(void **state)
{
	static const char *const texts[] = {
		"", "{", "7", "[]", "{\"items\":{}}", "{\"items\":7}", "error: no such thing"
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		struct gs_err err = { 0 };
		struct view view;

		assert_true(view_read(texts[i], strlen(texts[i]), NOW_MS, &view, &err) < 0);
		assert_non_null(strstr(err.msg, "what kubectl printed: "));
		assert_int_equal(view.n, 0);
		view_free(&view);
	}
}

static void a_picture_that_is_too_long(void **state)
{
	cleanup_free char *picture = gs_calloc(1, 1024 * 1024 + 100);
	struct view view;

	/* {'v':1} and a megabyte of blanks */
	(void)snprintf(picture, 1024 * 1024 + 100, "%-*s", 1024 * 1024 + 10, "{'v':1}");
	assert_int_equal(read_one(picture, &view), 0);
	assert_int_equal(view.n, 0);
	assert_non_null(strstr(view.wrong.v[0], "it is too long"));
	view_free(&view);
}

static void totals_count_each_once(void **state)
{
	struct totals totals;
	struct view view;
	char *summary;

	assert_int_equal(read_one(HELD, &view), 0);
	totals_of(&view, &totals);
	assert_int_equal(totals.n_pods, 2);
	assert_string_equal(totals.pods[0].pod, "ns/p");
	assert_string_equal(totals.pods[0].tenant, "u");
	assert_string_equal(totals.pods[0].partition, "g");
	assert_string_equal(totals.pods[0].node, "n1");
	assert_int_equal(totals.pods[0].held, 2);
	assert_int_equal(totals.pods[0].lent, 2);
	assert_int_equal(totals.pods[0].shared, 1);
	assert_int_equal(totals.pods[0].borrowed, 0);
	assert_int_equal(totals.pods[0].memory, 100);
	/* who has no account is counted by the namespace */
	assert_string_equal(totals.pods[1].tenant, "spot");
	assert_null(totals.pods[1].partition);
	assert_int_equal(totals.pods[1].borrowed, 1);
	assert_int_equal(totals.n_tenants, 2);
	assert_string_equal(totals.tenants[1].tenant, "u");
	assert_int_equal(totals.tenants[1].pods, 1);
	assert_int_equal(totals.tenants[1].held, 2);
	summary = view_summary(&view);
	assert_string_equal(summary, "nodes: 1, cards: 3 (1 free, 2 lent)");
	free(summary);
	totals_free(&totals);
	view_free(&view);
	/* Nobody has anything. */
	assert_int_equal(read_one("{'v':1}", &view), 0);
	totals_of(&view, &totals);
	assert_int_equal(totals.n_pods + totals.n_tenants, 0);
	totals_free(&totals);
	view_free(&view);
}

static void yaml(const char *json, const char *want)
{
	json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	cleanup_buf struct gs_buf out = { 0 };

	assert_non_null(value);
	yaml_add(&out, value);
	assert_string_equal(out.data, want);
	json_decref(value);
}

static void values_as_yaml(void **state)
{
	yaml("[]", "[]\n");
	yaml("{}", "{}\n");
	yaml("7", "7\n");
	yaml("{\"a\":1,\"b\":null,\"c\":[],\"d\":{},\"e\":true}",
	     "a: 1\nb: null\nc: []\nd: {}\ne: true\n");
	yaml("[{\"a\":\"x\",\"b\":[1,{\"c\":0.5}]},[2]]",
	     "- a: x\n  b:\n    - 1\n    - c: 0.5\n-\n  - 2\n");
	/* What is another type to some reader, or means something. */
	yaml("[\"yes\",\"No\",\"null\",\"1\",\"\",\"a b\",\"a:\",\"-\",\"ns/p/c\",\"a-1.b_2\"]",
	     "- \"yes\"\n- \"No\"\n- \"null\"\n- \"1\"\n- \"\"\n- \"a b\"\n- \"a:\"\n- \"-\"\n"
	     "- ns/p/c\n- a-1.b_2\n");
	yaml("\"q\\\"\\\\\\u001b[31m\\n\\u0000\\u202e\\u00e4\\ud83d\\ude00\"",
	     "\"q\\\"\\\\\\u001B[31m\\u000A\\u0000\\u202E\xc3\xa4\xf0\x9f\x98\x80\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_picture_grows_older),
		cmocka_unit_test(who_is_silent_is_stale),
		cmocka_unit_test(numbers_that_are_none),
		cmocka_unit_test(rubbish_is_told),
		cmocka_unit_test(what_is_no_list),
		cmocka_unit_test(a_picture_that_is_too_long),
		cmocka_unit_test(totals_count_each_once),
		cmocka_unit_test(values_as_yaml),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
