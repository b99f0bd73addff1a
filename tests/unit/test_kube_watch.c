// SPDX-License-Identifier: Apache-2.0
/* The watch of a node's pods, against a server that does what servers and networks do. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/xalloc.h"
#include "tests/unit/kubeclient.h"

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

/* Waits until the server has a watch under way that saw all there is. */
static void watching(const char *pod)
{
	char what[64];

	kubeclient_put(&client, pod, "probe", "Pending", "");
	(void)snprintf(what, sizeof(what), "pod %s probe Pending\n", pod);
	kubeclient_until(&client, what);
}

static void test_watch(void **state)
{
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kubeclient_tell(&client, "{'op':'put','pod':{'metadata':{'namespace':'a','name':'far',"
				 "'uid':'u9'},'spec':{'nodeName':'node-2'}}}");
	kube_watch_pods(client.kube);
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "well\npod a/one u1 Running\nsynced\n");
	kubeclient_put(&client, "a/two", "u2", "Pending", ",'deletionTimestamp':'x'");
	kubeclient_until(&client, "pod a/two u2 Pending deleting\n");
	kubeclient_put(&client, "a/one", "u1", "Failed", "");
	kubeclient_until(&client, "pod a/one u1 Failed\n");
	kubeclient_tell(&client, "{'op':'remove','pod':'a/one'}");
	kubeclient_until(&client, "gone a/one u1\n");
	assert_int_equal(kubeclient_told(&client, "far"), 0);
	assert_int_equal(kubeclient_told(&client, "bad"), 0);
	/* all of that by one list from the cache and one watch */
	assert_int_equal(kubeclient_asked(&client, "limit=100&resourceVersion=0\""), 1);
	assert_int_equal(kubeclient_asked(&client, "GET "), 2);
	assert_int_equal(kubeclient_asked(&client, "\"Bearer first\""), 2);
}

/* A server that tells of pods without end does not fill our memory. */
static void test_too_many(void **state)
{
	client.kube->tune.pods_max = 3;
	kubeclient_put(&client, "a/p1", "u1", "Running", "");
	kubeclient_put(&client, "a/p2", "u2", "Running", "");
	kubeclient_put(&client, "a/p3", "u3", "Running", "");
	kubeclient_put(&client, "a/p4", "u4", "Running", "");
	kubeclient_put(&client, "a/p5", "u5", "Running", "");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "note: more than 3 pods of this node: the others are left out\n"
				  "synced\n");
	assert_int_equal(kubeclient_told(&client, "pod a/p"), 3);
	assert_int_equal(kubeclient_told(&client, "note: "), 1);
	/* those that are known change, and go */
	kubeclient_put(&client, "a/p1", "u1", "Failed", "");
	kubeclient_until(&client, "pod a/p1 u1 Failed\n");
	kubeclient_tell(&client, "{'op':'remove','pod':'a/p1'}");
	kubeclient_until(&client, "gone a/p1 u1\n");
	kubeclient_put(&client, "a/p6", "u6", "Running", "");
	kubeclient_until(&client, "pod a/p6 u6 Running\n");
}

/* Whoever may make pods on this node may make many that are over; the others are wanted. */
static void test_too_many_over(void **state)
{
	client.kube->tune.pods_max = 3;
	for (int i = 0; i < 5; i++) {
		char key[8], uid[8];

		(void)snprintf(key, sizeof(key), "a/p%d", i);
		(void)snprintf(uid, sizeof(uid), "u%d", i);
		kubeclient_put(&client, key, uid, i % 2 ? "Failed" : "Succeeded", "");
	}
	kubeclient_put(&client, "b/one", "v1", "Running", "");
	kubeclient_put(&client, "b/two", "v2", "Pending", "");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "note: more than 3 pods of this node: the others are left out\n"
				  "gone a/p0 u0\npod b/one v1 Running\n"
				  "gone a/p2 u2\npod b/two v2 Pending\nsynced\n");
	/* one that is left out comes when there is room, and not before */
	kubeclient_put(&client, "a/p0", "u0", "Failed", "");
	kubeclient_put(&client, "b/three", "v3", "Running", "");
	kubeclient_until(&client, "gone a/p1 u1\npod b/three v3 Running\n");
	kubeclient_put(&client, "b/four", "v4", "Running", "");
	kubeclient_tell(&client, "{'op':'remove','pod':'b/one'}");
	kubeclient_until(&client, "gone b/one v1\n");
	assert_int_equal(kubeclient_told(&client, "pod b/four"), 0);
	kubeclient_put(&client, "a/p4", "u4", "Failed", "");
	kubeclient_until(&client, "pod a/p4 u4 Failed\n");
	assert_int_equal(kubeclient_told(&client, "note: "), 1);
}

static void test_pages(void **state)
{
	client.kube->tune.page = 2;
	kubeclient_put(&client, "a/p1", "u1", "Running", "");
	kubeclient_put(&client, "a/p2", "u2", "Running", "");
	kubeclient_put(&client, "a/p3", "u3", "Running", "");
	kubeclient_put(&client, "a/p4", "u4", "Running", "");
	kubeclient_put(&client, "a/p5", "u5", "Running", "");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "well\npod a/p1 u1 Running\npod a/p2 u2 Running\n"
				  "pod a/p3 u3 Running\npod a/p4 u4 Running\n"
				  "pod a/p5 u5 Running\nsynced\n");
	/* resourceVersion must not stand beside continue */
	assert_int_equal(kubeclient_asked(&client, "limit=2&continue="), 2);
	watching("a/p6");
}

/* The token of a page ran out: from the start, and none of the first pages' pods stays for ever. */
static void test_pages_expired(void **state)
{
	client.kube->tune.page = 1;
	client.kube->tune.stall_ms = 1000;
	kubeclient_put(&client, "a/p1", "u1", "Running", "");
	kubeclient_put(&client, "a/p2", "u2", "Running", "");
	kubeclient_tell(&client, "{'op':'rule','match':'continue=','status':410}");
	kubeclient_tell(&client, "{'op':'rule','match':'limit=1$','hang':true}");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "well\npod a/p1 u1 Running\nbad: GET /api/v1/pods: the API "
				  "server answers 410: scripted answer\n");
	kubeclient_tell(&client, "{'op':'remove','pod':'a/p1'}");
	kubeclient_until(&client, "well\npod a/p2 u2 Running\ngone a/p1 u1\nsynced\n");
}

/* The server does not know its own token any more: another version's, say. */
static void test_pages_refused(void **state)
{
	client.kube->tune.page = 1;
	kubeclient_put(&client, "a/p1", "u1", "Running", "");
	kubeclient_put(&client, "a/p2", "u2", "Running", "");
	kubeclient_tell(&client, "{'op':'rule','match':'continue=','status':400,'times':1}");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "well\npod a/p1 u1 Running\nbad: GET /api/v1/pods: the API "
				  "server answers 400: scripted answer\n"
				  "well\npod a/p1 u1 Running\npod a/p2 u2 Running\nsynced\n");
}

static void test_ended_and_resumed(void **state)
{
	static const char *const how[] = { "clean", "middle", "reset" };
	char name[16], text[64];

	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		(void)snprintf(name, sizeof(name), "a/p%zu", i);
		watching(name);
		kubeclient_tell(&client, "{'op':'drop','how':'%s'}", how[i]);
		(void)snprintf(name, sizeof(name), "a/q%zu", i);
		kubeclient_put(&client, name, "u", "Running", "");
		(void)snprintf(text, sizeof(text), "pod a/q%zu u Running\n", i);
		kubeclient_until(&client, text);
	}
	kubeclient_until_asked(&client, "watch=1", 4);
	/* from where it was: nothing twice, no second list */
	assert_int_equal(kubeclient_told(&client, "synced"), 1);
	assert_int_equal(kubeclient_told(&client, "probe"), 3);
	assert_int_equal(kubeclient_told(&client, "u Running"), 3);
	assert_int_equal(kubeclient_asked(&client, "limit="), 1);

	assert_in_range(kubeclient_asked(&client, "watch=1"), 4, 5);
}

static void test_bookmark(void **state)
{
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	watching("a/p1");
	kubeclient_tell(&client, "{'op':'bookmark'}");
	kubeclient_tell(&client, "{'op':'drop','how':'clean'}");
	kubeclient_until_asked(&client, "watch=1", 2);
	watching("a/p2");
	assert_int_equal(kubeclient_asked(&client, "resourceVersion=1002\""), 1);
}

static void test_gone(void **state)
{
	kube_watch_pods(client.kube);
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kubeclient_put(&client, "a/two", "u2", "Running", "");
	kubeclient_until(&client, "synced\n");
	watching("a/p1");
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','status':503,'times':1000}");
	kubeclient_tell(&client, "{'op':'drop','how':'reset'}");
	kubeclient_until(&client, "bad: GET /api/v1/pods: ");
	/* nobody watches: one goes, one is another pod now, and the history is lost */
	kubeclient_tell(&client, "{'op':'remove','pod':'a/one'}");
	kubeclient_tell(&client, "{'op':'remove','pod':'a/two'}");
	kubeclient_put(&client, "a/two", "u3", "Pending", "");
	kubeclient_tell(&client, "{'op':'expire'}");
	kubeclient_tell(&client, "{'op':'forget'}");
	kubeclient_until(&client, "pod a/p1 probe Pending\npod a/two u3 Pending\n"
				  "gone a/one u1\ngone a/two u2\nsynced\n");
	/* not from a cache that may be behind */
	assert_int_equal(kubeclient_asked(&client, "limit=100\""), 1);
	watching("a/p2");
}

/* The same as an answer, and again and again: with pauses. */
static void test_gone_for_ever(void **state)
{
	unsigned int n;

	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','status':410,'times':1000}");
	client.kube->tune.backoff_max_ms = 300;
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	kubeclient_run(&client, 1000);
	n = kubeclient_asked(&client, "watch=1");
	assert_in_range(n, 2, 12);
}

/* A watch that ends as soon as it began is not begun again without end. */
static void test_short_watches(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','stream':[],'times':1000}");
	client.kube->tune.backoff_max_ms = 300;
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	kubeclient_run(&client, 1000);
	assert_in_range(kubeclient_asked(&client, "watch=1"), 2, 12);
	assert_int_equal(kubeclient_told(&client, "bad"), 0);
}

#define EVENT(type, version)                                                                 \
	"'{\\'type\\':\\'" type "\\',\\'object\\':{\\'metadata\\':{\\'namespace\\':\\'a\\'," \
	"\\'name\\':\\'b\\',\\'uid\\':\\'u\\',\\'resourceVersion\\':\\'" version "\\'}}}\\n'"

/* Nor one that brings nothing but where it is. */
static void test_bookmarks_alone(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','stream':[" EVENT(
					 "BOOKMARK", "2000") "],'times':1000}");
	client.kube->tune.backoff_max_ms = 300;
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	kubeclient_run(&client, 1000);
	assert_in_range(kubeclient_asked(&client, "watch=1"), 2, 12);
	assert_int_equal(kubeclient_told(&client, "bad"), 0);
	/* it is known all the same */
	assert_true(kubeclient_asked(&client, "resourceVersion=2000") > 0);
}

/* A server that can't keep up: each watch brings something and is too old then. */
static void test_gone_after_an_event(void **state)
{
	kubeclient_tell(
		&client,
		"{'op':'rule','match':'watch=1','stream':[" EVENT(
			"MODIFIED",
			"2000") ",'{\\'type\\':\\'ERROR\\',\\'object\\':{\\'code\\':410}}\\n'],"
				"'times':1000}");
	client.kube->tune.backoff_max_ms = 300;
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	kubeclient_run(&client, 1000);
	assert_in_range(kubeclient_asked(&client, "limit="), 2, 12);
}

/* An API server takes what is nested 10000 deep, and puts its event around that. */
static void test_deep(void **state)
{
	enum { DEEP = 10000 - 5 };
	char *deep = gs_calloc(DEEP * 2 + 1, 1);

	memset(deep, '[', DEEP);
	memset(deep + DEEP, ']', DEEP);
	kubeclient_tell(&client,
			"{'op':'rule','match':'watch=1','stream':["
			"'{\\'type\\':\\'ADDED\\',\\'object\\':{\\'metadata\\':{"
			"\\'namespace\\':\\'a\\',\\'name\\':\\'b\\',\\'uid\\':\\'u\\',"
			"\\'resourceVersion\\':\\'2000\\',\\'managedFields\\':[{"
			"\\'fieldsV1\\':{\\'f:a\\':%s}}]}}}\\n'],'how':'hang'}",
			deep);
	free(deep);
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	kubeclient_until(&client, "pod a/b u ");
	assert_int_equal(kubeclient_told(&client, "bad"), 0);
}

static void test_error_event(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','stream':["
				 "'{\\'type\\':\\'ERROR\\',\\'object\\':{\\'code\\':500}}\\n']}");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "bad: watch of pods: the API server sent an error\nwell\n");
	watching("a/one");
	assert_int_equal(kubeclient_asked(&client, "limit="), 1);
}

/* "Too old" is said in one way or another. */
static void test_error_event_gone(void **state)
{
	static const char *const says[] = {
		"\\'code\\':410",
		"\\'code\\':500,\\'reason\\':\\'Expired\\'",
		"\\'reason\\':\\'Gone\\'",
	};

	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		kubeclient_tell(&client,
				"{'op':'rule','match':'watch=1','stream':["
				"'{\\'type\\':\\'ERROR\\',\\'object\\':{%s}}\\n']}",
				says[i]);
	kube_watch_pods(client.kube);
	for (int i = 0; i < 4; i++)
		kubeclient_until(&client, "synced\n");
	watching("a/one");
	assert_int_equal(kubeclient_told(&client, "bad"), 0);
}

static void test_broken_json(void **state)
{
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kubeclient_tell(&client, "{'op':'rule','match':'limit=','status':200,'body':'<html>'}");
	kubeclient_tell(&client,
			"{'op':'rule','match':'limit=','status':200,'body':'{\\'items\\':['}");
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','stream':['{\\'type\\':\\n']}");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "bad: list of pods: the API server sent no valid JSON\n");
	kubeclient_until(&client, "pod a/one u1 Running\nsynced\n");
	kubeclient_until(&client, "bad: watch of pods: the API server sent no valid JSON\n");
	kubeclient_until(&client, "synced\n");
	watching("a/two");
}

/* Pods that can't be taken keep no others away. */
static void test_left_out(void **state)
{
	char *large = malloc(70001);

	memset(large, 'x', 70000);
	large[70000] = '\0';
	client.kube->tune.object_max = 65536;
	kubeclient_tell(&client, "{'op':'put','pod':{'metadata':{'namespace':'a','name':'b'},"
				 "'spec':{'nodeName':'node-1'}}}");
	kubeclient_tell(&client,
			"{'op':'put','pod':{'metadata':{'namespace':'a','name':'c','uid':"
			"'u','labels':{'x':'%s'}},'spec':{'nodeName':'node-1'}}}",
			large);
	kubeclient_put(&client, "a/d", "u1", "Running", "");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "note: a pod is left out: 'b': no namespace, name or UID\n"
				  "note: a pod of more than 65536 bytes is left out\n"
				  "pod a/d u1 Running\nsynced\n");
	watching("a/p1");
	kubeclient_tell(&client,
			"{'op':'put','pod':{'metadata':{'namespace':'a','name':'c','uid':"
			"'u','labels':{'x':'%s'}},'spec':{'nodeName':'node-1'}}}",
			large);
	kubeclient_until(&client, "note: a pod of more than 65536 bytes is left out\n");
	watching("a/p2");
	free(large);
}

/* A server, or a middlebox, that is silent for ever. */
static void test_silent(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'limit=','hang':true}");
	kubeclient_tell(&client, "{'op':'rule','match':'watch=1','stream':[],'how':'hang'}");
	client.kube->tune.stall_ms = 300;
	client.kube->tune.watch_quiet_ms = 400;
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "bad: GET /api/v1/pods: nothing came for 300 ms\n");
	client.kube->tune.stall_ms = 5000;
	kubeclient_until(&client, "well\npod a/one u1 Running\nsynced\n");
	/* a watch may be silent: no failure, only a new one */
	watching("a/two");
	assert_int_equal(kubeclient_told(&client, "bad"), 1);
}

static void test_watch_times_out(void **state)
{
	client.kube->tune.watch_s = 1;
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	kubeclient_run(&client, 2500);
	assert_in_range(kubeclient_asked(&client, "timeoutSeconds=1&"), 2, 3);
	assert_int_equal(kubeclient_told(&client, "bad"), 0);
	watching("a/one");
}

/* The server is away: retried with pauses that grow, and heard of once. */
static void test_server_busy(void **state)
{
	kubeclient_tell(&client, "{'op':'rule','match':'limit=','status':503,'times':3}");
	kubeclient_tell(&client, "{'op':'rule','match':'limit=','status':403,'times':2}");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "bad: GET /api/v1/pods: the API server answers 503: scripted "
				  "answer\nwell\nsynced\n");
	assert_int_equal(kubeclient_asked(&client, "limit="), 6);
}

static void test_no_server(void **state)
{
	char *server = client.kube->config.server;

	/* nobody listens at port 1; the name goes through libcurl's thread */
	client.kube->config.server = strdup("http://localhost:1");
	kube_watch_pods(client.kube);
	kubeclient_until(&client, "bad: GET /api/v1/pods: ");
	kubeclient_run(&client, 100);
	free(client.kube->config.server);
	client.kube->config.server = server;
	kubeclient_until(&client, "well\nsynced\n");
}

/* What finds out that the server's machine is gone: the socket of the watch is set up for that. */
static void test_dead_peer(void **state)
{
	static const struct {
		int level, option, value;
	} wanted[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },	  { IPPROTO_TCP, TCP_KEEPIDLE, 30 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 10 },	  { IPPROTO_TCP, TCP_KEEPCNT, 3 },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, 30000 },
	};
	int n = 0, port = atoi(strrchr(client.config.server, ':') + 1);

	kube_watch_pods(client.kube);
	kubeclient_until(&client, "synced\n");
	watching("a/one");
	for (int fd = 3; fd < 200; fd++) {
		struct sockaddr_in peer = { 0 };
		socklen_t len = sizeof(peer);
		int value;

		if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
		    peer.sin_family != AF_INET || ntohs(peer.sin_port) != port)
			continue;
		n++;
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			len = sizeof(value);
			assert_int_equal(
				getsockopt(fd, wanted[i].level, wanted[i].option, &value, &len), 0);
			assert_int_equal(value, wanted[i].value);
		}
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
	assert_int_equal(n, 1);
}

/* Freed at whatever moment; teardown sees whether all was closed. */
static void test_freed_at_once(void **state)
{
	static const unsigned int ms[] = { 0, 1, 3, 10, 30 };

	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		kubeclient_put(&client, "a/one", "u1", "Running", "");
		free(client.kube->config.server);
		client.kube->config.server =
			gs_asprintf("http://localhost:%s", strrchr(client.config.server, ':') + 1);
		kube_watch_pods(client.kube);
		kubeclient_run(&client, ms[i]);
		kubeclient_close(&client);
		kubeclient_open(&client);
	}
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(too_many_over),
		test(watch),
		test(too_many),
		test(pages),
		test(pages_expired),
		test(pages_refused),
		test(ended_and_resumed),
		test(bookmark),
		test(gone),
		test(gone_for_ever),
		test(short_watches),
		test(error_event),
		test(error_event_gone),
		test(broken_json),
		test(left_out),
		test(silent),
		test(watch_times_out),
		test(server_busy),
		test(no_server),
		test(dead_peer),
		test(freed_at_once),
		test(bookmarks_alone),
		test(gone_after_an_event),
		test(deep),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
