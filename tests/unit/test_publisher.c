// SPDX-License-Identifier: Apache-2.0
/* agent/publisher.c: against tests/k8s/apiserver.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/publisher.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "gpushare/view.h"
#include "tests/unit/kubeclient.h"
#include "tests/unit/tmpdir.h"

#define MAPS "/api/v1/namespaces/ns/configmaps"
#define MAP MAPS "/gpushare-node-node-1"

static struct kubeclient client;
static char *dir;
static struct publisher *publisher;
static const char *picture; /* JSON; NULL: not yet */
static struct publisher_config config;

static int setup_all(void **state)
{
	kubeclient_start(&client, false);
	return 0;
}

static int teardown_all(void **state)
{
	kubeclient_stop(&client);
	return 0;
}

static json_t *on_look(void *arg)
{
	gs_buf_adds(&client.told, "looked\n");
	return picture ? json_loads(picture, 0, NULL) : NULL;
}

static void on_told(const struct gs_err *err, void *arg)
{
	gs_buf_addf(&client.told, "told: %s\n", err ? err->msg : "well");
}

static int setup(void **state)
{
	kubeclient_open(&client);
	dir = tmpdir_make();
	picture = "{\"cards\":[{\"card\":\"a\",\"busy\":0.5}]}";
	config = (struct publisher_config){
		.loop = &client.loop,
		.kube = client.kube,
		.server = client.config.server,
		.node = "node-1",
		.namespace = "ns",
		.run_dir = dir,
		.change_ms = 30,
		.load_ms = 3600000,
		.refresh_ms = 7200000,
		.settle_ms = 10,
		.max = 4096,
		.look = on_look,
		.told = on_told,
	};
	return 0;
}

static int teardown(void **state)
{
	publisher_free(gs_steal(publisher));
	kubeclient_close(&client);
	tmpdir_remove(dir);
	return 0;
}

static void begin(void)
{
	publisher = publisher_new(&config);
}

/* The agent ends, and another one begins. */
static void restart(void)
{
	publisher_free(publisher);
	begin();
}

/* Is that in what the server has? */
static bool has(const char *text)
{
	char *got = kubeclient_ask(&client, "{'op':'get','path':'" MAP "'}");
	bool found = strstr(got, text) != NULL;

	if (!found)
		print_message("%s\n", got);
	free(got);
	return found;
}

static unsigned int writes(void)
{
	return kubeclient_asked(&client, "\"PUT ") + kubeclient_asked(&client, "\"POST ");
}

static void it_is_made_and_then_replaced(void **state)
{
	begin();
	kubeclient_until(&client, "told: well");
	assert_true(has("\"name\": \"gpushare-node-node-1\""));
	assert_true(has("\"" GS_VIEW_LABEL "\": \"node\""));
	assert_true(has("\"app.kubernetes.io/managed-by\": \"gpushared\""));
	assert_true(has("\\\"card\\\":\\\"a\\\""));
	assert_true(has("\\\"v\\\":1"));
	assert_true(has("\\\"time\\\":\\\"2"));
	assert_int_equal(writes(), 2); /* PUT: there is none; POST */
	picture = "{\"cards\":[{\"card\":\"b\",\"busy\":0.5}]}";
	publisher_changed(publisher);
	kubeclient_until(&client, "told: well");
	assert_true(has("\\\"card\\\":\\\"b\\\""));
	assert_int_equal(writes(), 3);
	/* nobody is asked what stands there: that takes no right to read */
	assert_int_equal(kubeclient_asked(&client, "\"GET "), 0);
}

static void what_is_not_ready_is_not_told(void **state)
{
	picture = NULL;
	begin();
	kubeclient_until(&client, "looked");
	kubeclient_until(&client, "looked");
	assert_int_equal(writes(), 0);
	picture = "{\"cards\":[]}";
	kubeclient_until(&client, "told: well");
}

static void nothing_new_is_not_written(void **state)
{
	begin();
	kubeclient_until(&client, "told: well");
	/* as fickle as it may be */
	picture = "{\"cards\":[{\"card\":\"a\",\"busy\":0.75,\"why_not\":\"x\"}]}";
	for (int i = 0; i < 5; i++) {
		publisher_changed(publisher);
		kubeclient_until(&client, "looked");
	}
	assert_int_equal(writes(), 2);
	restart();
	kubeclient_until(&client, "looked");
	kubeclient_run(&client, 200);
	assert_int_equal(writes(), 2);
	/* What changed while nobody was there is told. */
	picture = "{\"cards\":[]}";
	restart();
	kubeclient_until(&client, "told: well");
	assert_int_equal(writes(), 3);
	/* Another server, or namespace, knows nothing of it. */
	config.namespace = "other";
	restart();
	kubeclient_until(&client, "told: well");
	assert_int_equal(kubeclient_asked(&client, "POST /api/v1/namespaces/other/configmaps"), 1);
}

static void a_file_that_is_rubbish_is_none(void **state)
{
	tmpdir_write(dir, "view.json", "{\"at\":7,\"view\":[");
	begin();
	kubeclient_until(&client, "told: well");
	assert_int_equal(writes(), 2);
}

static void load_alone_is_told_more_rarely(void **state)
{
	config.load_ms = 1000;
	begin();
	kubeclient_until(&client, "told: well");
	picture = "{\"cards\":[{\"card\":\"a\",\"busy\":0.75}]}";
	publisher_changed(publisher);
	kubeclient_until(&client, "looked");
	assert_int_equal(writes(), 2);
	kubeclient_until(&client, "told: well");
	assert_true(has("0.75"));
	/* And the very same not even then. */
	kubeclient_run(&client, 2500);
	assert_int_equal(writes(), 3);
}

static void the_same_is_written_again_in_the_end(void **state)
{
	config.load_ms = 100;
	config.refresh_ms = 1000;
	begin();
	kubeclient_until(&client, "told: well");
	kubeclient_until(&client, "told: well");
	assert_int_equal(writes(), 3);
}

static void changes_in_a_bunch_are_one(void **state)
{
	static const char *const pictures[] = { "{\"cards\":[1]}", "{\"cards\":[2]}",
						"{\"cards\":[3]}" };

	config.change_ms = 1000;
	begin();
	kubeclient_until(&client, "told: well");
	for (size_t i = 0; i < 3; i++) {
		picture = pictures[i];
		publisher_changed(publisher);
		kubeclient_run(&client, 50);
	}
	assert_int_equal(writes(), 2);
	kubeclient_until(&client, "told: well");
	assert_int_equal(writes(), 3);
	assert_true(has("[3]"));
}

static void the_server_is_away_or_busy(void **state)
{
	kubeclient_tell(&client, "{'op':'outage','on':true}");
	begin();
	kubeclient_until(&client, "bad: PUT");
	picture = "{\"cards\":[2]}";
	publisher_changed(publisher); /* waits for the end of what is under way */
	kubeclient_run(&client, 100);
	kubeclient_tell(&client, "{'op':'outage','on':false}");
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','status':429,'times':2}");
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','status':500,'times':1}");
	kubeclient_until(&client, "told: well");
	kubeclient_until(&client, "told: well");
	assert_true(has("[2]"));
	assert_int_equal(kubeclient_told(&client, "told: PUT"), 0);
}

static void it_comes_and_goes_meanwhile(void **state)
{
	/* Somebody else was faster, or the answer was lost. */
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','status':404}");
	kubeclient_tell(&client, "{'op':'set','path':'" MAP "','object':{'metadata':{"
				 "'name':'gpushare-node-node-1'},'data':{'x':'y'}}}");
	begin();
	kubeclient_until(&client, "told: well");
	assert_int_equal(writes(), 3); /* PUT 404, POST 409, PUT */
	assert_true(has("\\\"card\\\":\\\"a\\\""));
	/* It changed at that very moment. */
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','status':409}");
	picture = "{\"cards\":[]}";
	publisher_changed(publisher);
	kubeclient_until(&client, "told: PUT");
	kubeclient_until(&client, "told: well");
	assert_true(has("\\\"cards\\\":[]"));
	/* One that never is what it was a moment before is left alone for a while. */
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','status':404,'times':100}");
	kubeclient_tell(&client, "{'op':'rule','match':'POST','status':409,'times':100}");
	picture = "{\"cards\":[1]}";
	publisher_changed(publisher);
	kubeclient_until(&client, "told: PUT");
}

static void what_is_forbidden_is_tried_rarely(void **state)
{
	config.load_ms = 400;
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','status':403,'times':1}");
	begin();
	kubeclient_until(&client, "told: PUT " MAP ": the API server answers 403");
	for (int i = 0; i < 5; i++) {
		picture = i % 2 ? "{\"cards\":[]}" : "{\"cards\":[1]}";
		publisher_changed(publisher);
		kubeclient_run(&client, 40);
	}
	assert_int_equal(writes(), 1);
	kubeclient_until(&client, "told: well");
}

static void it_ends_amid_a_request(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'PUT','hang':true}");
	begin();
	kubeclient_until_asked(&client, "PUT", 1);
	publisher_free(gs_steal(publisher));
	kubeclient_run(&client, 50);
	assert_int_equal(kubeclient_told(&client, "told"), 0);
}

static bool same(const char *a, const char *b, bool all)
{
	json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);
	bool r = publisher_same(x, y, all);

	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(publisher_same(y, x, all), r);
	json_decref(x);
	json_decref(y);
	return r;
}

#define AT(time, since)                                                        \
	"{\"time\":\"2026-11-30T13:00:" time "Z\",\"h\":[{\"since_ms\":" since \
	",\"state\":\"idle\"}]}"

static void what_is_the_same(void **state)
{
	assert_true(same("{}", "{}", true));
	assert_true(same("{\"a\":[1,\"x\",null]}", "{\"a\":[1,\"x\",null]}", true));
	assert_false(same("{\"a\":[1]}", "{\"a\":[1,2]}", false));
	assert_false(same("{\"a\":1}", "{}", false));
	assert_false(same("{\"a\":1}", "{\"a\":[1]}", false));
	assert_true(same("{\"c\":[{\"busy\":1}]}", "{\"c\":[{\"memory_used\":2}]}", false));
	assert_false(same("{\"c\":[{\"busy\":1}]}", "{\"c\":[{\"busy\":0.5}]}", true));
	/* An age that grew as time went by; one that did not. */
	assert_true(same(AT("00", "5000"), AT("30", "35400"), true));
	assert_false(same(AT("00", "5000"), AT("30", "5000"), true));
	assert_false(same(AT("00", "5000"), AT("30", "null"), false));
	assert_false(same(AT("00", "5000"), "{\"time\":\"x\",\"h\":7}", false));
}

static void what_is_too_long_is_cut(void **state)
{
	json_t *o = json_pack("{s:[{s:s}], s:[{s:s, s:[]}], s:[]}", "cards", "card", "a",
			      "holdings", "holding", "h", "members", "borrowers");
	json_t *members =
		json_object_get(json_array_get(json_object_get(o, "holdings"), 0), "members");
	char *text = publisher_fit(o, 1000);

	assert_null(strstr(text, "left_out"));
	free(text);
	for (int i = 0; i < 100; i++)
		(void)json_array_append_new(members, json_pack("{s:i}", "id", i));
	text = publisher_fit(o, 1000);
	assert_int_equal(json_array_size(members), 64);
	assert_non_null(strstr(text, "\"left_out\":36"));
	free(text);
	text = publisher_fit(o, 160);
	assert_true(strlen(text) <= 160);
	assert_non_null(strstr(text, "\"card\":\"a\""));
	free(text);
	/* Not even the cards. */
	for (int i = 0; i < 100; i++)
		(void)json_array_append_new(json_object_get(o, "cards"),
					    json_pack("{s:i}", "x", i));
	text = publisher_fit(o, 60);
	assert_true(strlen(text) <= 60);
	free(text);
	json_decref(o);
	/* What is nothing of that kind is not looped over for ever. */
	o = json_pack("{s:s}", "cards", "0123456789");
	text = publisher_fit(o, 5);
	assert_string_equal(text, "{\"cards\":\"0123456789\"}");
	free(text);
	json_decref(o);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_made_and_then_replaced),
		TEST(what_is_not_ready_is_not_told),
		TEST(nothing_new_is_not_written),
		TEST(a_file_that_is_rubbish_is_none),
		TEST(load_alone_is_told_more_rarely),
		TEST(the_same_is_written_again_in_the_end),
		TEST(changes_in_a_bunch_are_one),
		TEST(the_server_is_away_or_busy),
		TEST(it_comes_and_goes_meanwhile),
		TEST(what_is_forbidden_is_tried_rarely),
		TEST(it_ends_amid_a_request),
		cmocka_unit_test(what_is_the_same),
		cmocka_unit_test(what_is_too_long_is_cut),
	};

	return cmocka_run_group_tests_name("publisher", tests, setup_all, teardown_all);
}
