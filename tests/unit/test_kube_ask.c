// SPDX-License-Identifier: Apache-2.0
/* Requests of any kind and watches of any kind of objects. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/xalloc.h"
#include "tests/unit/kubeclient.h"

#define SPACES "/api/v1/namespaces"

static struct kubeclient client;

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

static int setup(void **state)
{
	kubeclient_open(&client);
	return 0;
}

static int teardown(void **state)
{
	kubeclient_close(&client);
	return 0;
}

static void on_reply(const struct kube_reply *reply, void *arg)
{
	assert_int_equal(reply->text[reply->len], '\0');
	gs_buf_addf(&client.told, "%s: %d %ld %s\n", (const char *)arg, reply->r, reply->status,
		    reply->r == 0 ? reply->text : reply->err->msg);
}

static struct kube_ask *ask(const char *name, const char *method, const char *path,
			    const char *body)
{
	return kube_ask(client.kube, method, path, body ? "application/json" : NULL, body, on_reply,
			(void *)name);
}

static void test_ask(void **state)
{
	static const char body[] = "{\"metadata\":{\"name\":\"n\"}}";

	(void)ask("get", "GET", SPACES "/n", NULL);
	kubeclient_until(&client, "get: -2 404 GET " SPACES "/n: the API server answers 404: "
				  "namespaces \"n\" not found\n");
	(void)ask("post", "POST", SPACES, body);
	kubeclient_until(&client, "post: 0 201 {\"metadata\": {\"name\": \"n\"");
	(void)ask("again", "POST", SPACES, body);
	kubeclient_until(&client, "again: -17 409");
	(void)ask("old", "PUT", SPACES "/n",
		  "{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}");
	kubeclient_until(&client, "old: -17 409");
	(void)kube_ask(client.kube, "PATCH", SPACES "/n", "application/merge-patch+json",
		       "{\"data\":{\"a\":\"b\"}}", on_reply, (void *)"patch");
	kubeclient_until(&client, "patch: 0 200 ");
	kubeclient_until(&client, "\"data\": {\"a\": \"b\"}}\n");
}

static void test_ask_again(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'n1','times':2,'status':503}");
	(void)ask("one", "GET", SPACES "/n1", NULL);
	(void)ask("two", "GET", SPACES "/n2", NULL);
	kubeclient_until(&client, "two: -2 404");
	kubeclient_until(&client, "one: -2 404");
	assert_int_equal(kubeclient_asked(&client, "GET " SPACES "/n1"), 3);
}

static void test_ask_cancel(void **state)
{
	struct kube_ask *hangs;

	kubeclient_tell(&client, "{'op':'rule','match':'n1','hang':true}");
	hangs = ask("one", "GET", SPACES "/n1", NULL);
	(void)ask("two", "GET", SPACES "/n2", NULL);
	kubeclient_until(&client, "two: -2");
	kube_ask_cancel(hangs);
	kube_ask_cancel(NULL);
	(void)ask("three", "GET", SPACES "/n3", NULL);
	kubeclient_until(&client, "three: -2");
	assert_int_equal(kubeclient_told(&client, "one"), 0);
}

/* An answer without end is not kept. */
static void test_ask_too_large(void **state)
{
	char *large = malloc((5 << 20) + 1);

	memset(large, 'x', 5 << 20);
	large[5 << 20] = '\0';
	kubeclient_tell(&client, "{'op':'rule','match':'n1','status':200,'body':'%s'}", large);
	free(large);
	(void)ask("one", "GET", SPACES "/n1", NULL);
	kubeclient_until(&client, "one: -7 ");
}

/* The client ends with a request under way; nothing is told, nothing leaks. */
static void test_ask_end(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'n1','hang':true}");
	(void)ask("one", "GET", SPACES "/n1", NULL);
	kubeclient_until_asked(&client, "n1", 1);
}

/* ---- Watches. */

static void on_object(struct js object, bool gone, void *arg)
{
	struct js name;

	assert_int_equal(js_path(object, &name, NULL, "metadata", "name", NULL), 0);
	gs_buf_addf(&client.told, "%s %.*s\n", gone ? "gone" : "here", (int)name.n, name.p);
}

static void on_begin(void *arg)
{
	gs_buf_adds(&client.told, "begin\n");
}

static void on_synced(void *arg)
{
	gs_buf_adds(&client.told, "synced\n");
}

static void put(const char *name)
{
	kubeclient_tell(&client,
			"{'op':'set','path':'" SPACES "/%s','object':{'metadata':{'name':'%s',"
			"'labels':{'l':'%s'}}}}",
			name, name, name);
}

static void test_watch(void **state)
{
	const struct kube_watch_ops ops = { on_object, on_begin, on_synced, NULL };

	put("a");
	put("b");
	put("c");
	kube_watch(client.kube, SPACES, NULL, "namespace", 2, &ops);
	kubeclient_until(&client, "begin\nwell\nhere \"a\"\nhere \"b\"\nhere \"c\"\nsynced\n");
	put("d");
	kubeclient_until(&client, "here \"d\"\n");
	kubeclient_tell(&client, "{'op':'unset','path':'" SPACES "/b'}");
	kubeclient_until(&client, "gone \"b\"\n");
	/* what went while nobody watched is not in the next list */
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','status':410}");
	kubeclient_tell(&client, "{'op':'unset','path':'" SPACES "/c'}");
	kubeclient_tell(&client, "{'op':'drop','how':'clean'}");
	kubeclient_until(&client, "begin\nhere \"a\"\nhere \"d\"\nsynced\n");
	assert_int_equal(kubeclient_asked(&client, SPACES "?limit=2&resourceVersion=0\""), 1);
	put("e");
	kubeclient_until(&client, "here \"e\"\n");
}

/* Two watches at once, and one of them of what has a label. */
static void test_watch_selected(void **state)
{
	const struct kube_watch_ops ops = { on_object, NULL, on_synced, NULL };

	put("a");
	put("b");
	kubeclient_put(&client, "x/one", "u1", "Running", "");
	kube_watch(client.kube, SPACES, "labelSelector=l%3Db", "namespace", 2, &ops);
	kube_watch(client.kube, "/api/v1/pods", NULL, "pod", 2, &ops);
	kubeclient_until(&client, "here \"one\"\n");
	while (kubeclient_told(&client, "synced") < 2)
		kubeclient_run(&client, 20);
	assert_int_equal(kubeclient_told(&client, "here \"b\""), 1);
	assert_int_equal(kubeclient_told(&client, "here \"a\""), 0);
}

/* Once, as it is now, and no watch behind it. */
static void test_list(void **state)
{
	const struct kube_watch_ops ops = { on_object, on_begin, on_synced, NULL };

	put("a");
	put("b");
	put("c");
	/* a page that breaks off */
	kubeclient_tell(&client, "{'op':'rule','match':'continue=','status':410}");
	assert_non_null(kube_list(client.kube, SPACES, NULL, "namespace", 2, &ops));
	kubeclient_until(&client, "begin\nwell\nhere \"a\"\nhere \"b\"\n");
	kubeclient_until(&client, "bad: GET " SPACES ": the API server answers 410");
	kubeclient_until(&client, "begin\nwell\nhere \"a\"\nhere \"b\"\nhere \"c\"\nsynced\n");
	kubeclient_run(&client, 300);
	assert_int_equal(kubeclient_asked(&client, "GET"), 4);
	assert_int_equal(kubeclient_asked(&client, "resourceVersion"), 0);
	assert_int_equal(kubeclient_asked(&client, "watch"), 0);
}

static void test_list_cancel(void **state)
{
	const struct kube_watch_ops ops = { on_object, on_begin, on_synced, NULL };
	struct kube_watch *list;

	put("a");
	kubeclient_tell(&client, "{'op':'rule','match':'GET','times':2,'hang':true}");
	list = kube_list(client.kube, SPACES, NULL, "namespace", 2, &ops);
	/* the client ends with this one under way */
	(void)kube_list(client.kube, SPACES, NULL, "namespace", 2, &ops);
	kubeclient_until_asked(&client, "GET", 2);
	kube_list_cancel(list);
	kube_list_cancel(NULL);
	(void)kube_list(client.kube, SPACES, NULL, "namespace", 2, &ops);
	kubeclient_until(&client, "here \"a\"\nsynced\n");
	assert_int_equal(kubeclient_told(&client, "synced"), 1);
}

/* The server refuses everybody for a while. */
static void test_watch_outage(void **state)
{
	const struct kube_watch_ops ops = { on_object, on_begin, on_synced, NULL };

	put("a");
	kube_watch(client.kube, SPACES, NULL, "namespace", 100, &ops);
	kubeclient_until(&client, "synced\n");
	kubeclient_tell(&client, "{'op':'outage','on':true}");
	kubeclient_until(&client, "bad: ");
	put("b");
	kubeclient_tell(&client, "{'op':'outage','on':false}");
	kubeclient_until(&client, "here \"b\"\n");
	/* from where it was */
	assert_int_equal(kubeclient_told(&client, "begin"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ask_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ask_cancel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ask_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ask_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch_selected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch_outage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_cancel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
