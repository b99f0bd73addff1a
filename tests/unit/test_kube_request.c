// SPDX-License-Identifier: Apache-2.0
/* Deletes and Events, the token and TLS, against a server that refuses, fails and hangs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xalloc.h"
#include "tests/unit/kubeclient.h"
#include "tests/unit/tmpdir.h"

static struct kubeclient plain, tls;

static int setup_all(void **state)
{
	kubeclient_start(&plain, false);
	kubeclient_start(&tls, true);
	return 0;
}

static int teardown_all(void **state)
{
	kubeclient_stop(&plain);
	kubeclient_stop(&tls);
	return 0;
}

static int setup(void **state)
{
	kubeclient_open(&plain);
	return 0;
}

static int teardown(void **state)
{
	kubeclient_close(&plain);
	return 0;
}

static int setup_tls(void **state)
{
	kubeclient_open(&tls);
	return 0;
}

static int teardown_tls(void **state)
{
	kubeclient_close(&tls);
	return 0;
}

static void delete_pod(const char *name, const char *uid)
{
	kube_delete_pod(plain.kube, "a", name, uid, kubeclient_done, &plain);
}

static void has(char *answer, const char *what)
{
	if (!strstr(answer, what))
		fail_msg("'%s' is not in %s", what, answer);
	free(answer);
}

/* ---- Deletes. */

static void test_delete(void **state)
{
	kubeclient_put(&plain, "a/one", "u1", "Running", "");
	delete_pod("one", "u1");
	/* never out of the call itself */
	assert_null(plain.told.data);
	kubeclient_until(&plain, "well\ndone: 0 \n");
	has(kubeclient_ask(&plain, "{'op':'log'}"),
	    "DELETE /api/v1/namespaces/a/pods/one\", \"body\": \""
	    "{\\\"kind\\\":\\\"DeleteOptions\\\",\\\"apiVersion\\\":\\\"v1\\\","
	    "\\\"gracePeriodSeconds\\\":0,\\\"propagationPolicy\\\":"
	    "\\\"Background\\\",\\\"preconditions\\\":{\\\"uid\\\":\\\"u1\\\"}}\"");
	has(kubeclient_ask(&plain, "{'op':'log'}"), "\"type\": \"application/json\"");
	/* it is gone; another is not ours to delete */
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	kubeclient_put(&plain, "a/one", "u2", "Running", "");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 3);
	/* nobody wants to know */
	kube_delete_pod(plain.kube, "a", "one", "u2", NULL, NULL);
	kubeclient_until_asked(&plain, "DELETE", 4);
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 4);
}

/* 409 that is not about the UID: the pod changed at that moment. */
static void test_delete_conflict(void **state)
{
	kubeclient_put(&plain, "a/one", "u1", "Running", "");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':409,'times':2,'body':"
				"'{\\'message\\':\\'the object has been modified\\'}'}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 3);
}

/* A server that starts forbids everything, for a while. */
static void test_delete_forbidden_yet(void **state)
{
	plain.kube->tune.forbidden_ms = 60000;
	kubeclient_put(&plain, "a/one", "u1", "Running", "");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':403,'times':3}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "bad: ");
	kubeclient_until(&plain, "well\ndone: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 4);
}

/* One that stays at it means it. */
static void test_delete_forbidden(void **state)
{
	plain.kube->tune.forbidden_ms = 200;
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':403,'times':1000}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: -13 ");
	assert_true(kubeclient_asked(&plain, "DELETE") > 1);
}

static void test_delete_refused(void **state)
{
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':403,'body':"
				"'{\\'message\\':\\'pods is forbidden\\\\nfor you\\'}'}");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':422,'body':'<html>'}");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':307,"
				"'headers':{'Location':'/api/v1/elsewhere'}}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "well\ndone: -13 pod a/one is not deleted: DELETE "
				 "/api/v1/namespaces/a/pods/one: the API server answers 403: pods "
				 "is forbidden?for you\n");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: -22 pod a/one is not deleted: DELETE "
				 "/api/v1/namespaces/a/pods/one: the API server answers 422\n");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: -71 ");
	kubeclient_run(&plain, 100);
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 3);
	assert_int_equal(kubeclient_asked(&plain, "elsewhere"), 0);
}

static void test_delete_no_name(void **state)
{
	static const char *const names[] = { "", "../b", "x/y", "A", ".a", "a?b", "-a" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		delete_pod(names[i], "u1");
		kubeclient_until(&plain, "done: -22 ");
	}
	delete_pod("a", "");
	kubeclient_until(&plain, "done: -22 ");
	/* many of them at once are in the way of no other one */
	for (int i = 0; i < 8; i++)
		delete_pod("A", "u1");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 1);
}

/* A server that is broken, gone, or hangs: until it answers. */
static void test_delete_retried(void **state)
{
	plain.kube->tune.stall_ms = 500;
	kubeclient_put(&plain, "a/one", "u1", "Running", "");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':500,'times':2}");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','stream':['{'],'how':'reset'}");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','hang':true}");
	/* what it did, and could not say any more */
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','stream':['{'],'how':'reset',"
				"'store':true}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "bad: DELETE /api/v1/namespaces/a/pods/one: the API server "
				 "answers 500: scripted answer\n");
	kubeclient_until(&plain, "well\ndone: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 6);
}

static void test_retry_after(void **state)
{
	uint64_t begin = uv_hrtime();

	kubeclient_put(&plain, "a/one", "u1", "Running", "");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':429,"
				"'headers':{'Retry-After':'1'}}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_in_range((uv_hrtime() - begin) / 1000000, 1000, 2000);
	/* not for as long as anybody says */
	plain.kube->tune.retry_after_max_ms = 100;
	kubeclient_put(&plain, "a/one", "u1", "Running", "");
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':429,"
				"'headers':{'Retry-After':'86400'}}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
}

/* Pauses grow: 20, 40, 80, 160 ms and a half more at most; the bound cuts them. */
static void test_backoff(void **state)
{
	uint64_t begin = uv_hrtime();

	plain.kube->tune.backoff_max_ms = 1000;
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':500,'times':4}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_in_range((uv_hrtime() - begin) / 1000000, 300, 800);
	begin = uv_hrtime();
	plain.kube->tune.backoff_max_ms = 30;
	kubeclient_tell(&plain, "{'op':'rule','match':'DELETE','status':500,'times':6}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_in_range((uv_hrtime() - begin) / 1000000, 120, 350);
}

static void test_many_deletes(void **state)
{
	char name[16];

	plain.kube->tune.deletes_max = 20;
	for (int i = 0; i < 22; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		delete_pod(name, "u1");
	}
	kubeclient_until(&plain, "done: -105 pod a/p20 is not deleted: too many wait");
	kubeclient_until(&plain, "done: -105 pod a/p21 is not deleted: too many wait");
	for (int i = 0; i < 20; i++)
		kubeclient_until(&plain, "done: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 20);
}

/* Some wait, one hangs, one pauses, when all ends. */
static void test_canceled(void **state)
{
	kubeclient_tell(&plain, "{'op':'rule','match':'p0','hang':true,'times':9}");
	kubeclient_tell(&plain, "{'op':'rule','match':'p1','status':500,'times':9}");
	plain.kube->tune.deletes_active = 2;
	plain.kube->tune.backoff_min_ms = plain.kube->tune.backoff_max_ms = 5000;
	delete_pod("p0", "u1");
	delete_pod("p1", "u1");
	delete_pod("p2", "u1");
	kube_event(plain.kube, "a", "one", "u1", "Normal", "Reason", "text");
	kubeclient_run(&plain, 100);
	kube_free(plain.kube);
	plain.kube = NULL;
	assert_int_equal(kubeclient_asked(&plain, "p2"), 0);
	for (int i = 0; i < 3; i++)
		kubeclient_until(&plain, "done: -125 the agent ends\n");
	kubeclient_close(&plain);
	kubeclient_open(&plain);
}

static void once_more(int result, const struct gs_err *err, void *arg)
{
	kubeclient_done(result, err, arg);
	delete_pod("again", "u1");
	kube_event(plain.kube, "a", "one", "u1", "Normal", "Reason", "text");
	kube_watch_pods(plain.kube);
}

/* Callbacks may ask for more; once all ends, that is for nothing. */
static void test_asked_from_callback(void **state)
{
	kube_delete_pod(plain.kube, "a", "one", "u1", once_more, &plain);
	kubeclient_until(&plain, "done: 0 \n");
	kubeclient_until(&plain, "done: 0 \n");
	kubeclient_until_asked(&plain, "POST", 1);
	kubeclient_until_asked(&plain, "watch=1", 1);
	assert_int_equal(kubeclient_asked(&plain, "POST"), 1);
	assert_int_equal(kubeclient_asked(&plain, "watch=1"), 1);
	kube_delete_pod(plain.kube, "a", "one", "u1", once_more, &plain);
	kube_free(plain.kube);
	assert_int_equal(kubeclient_told(&plain, "done: -125"), 1);
	plain.kube = NULL;
	kubeclient_close(&plain);
	kubeclient_open(&plain);
}

/* ---- Events. */

/* Runs the loop until the server has an Event with that in it. */
static void until_event(const char *what)
{
	bool found = false;

	for (int i = 0; !found && i < 500; i++) {
		char *events = kubeclient_ask(&plain, "{'op':'events'}");

		found = strstr(events, what);
		free(events);
		kubeclient_run(&plain, 20);
	}
	if (!found)
		fail_msg("no Event has '%s'", what);
}

static void test_event(void **state)
{
	kube_event(plain.kube, "a", "one", "u1", "Warning", "CardReclaimed", "a \"text\"\n");
	kubeclient_until(&plain, "well\n");
	has(kubeclient_ask(&plain, "{'op':'events'}"),
	    "\"involvedObject\": {\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"namespace\": \"a\", "
	    "\"name\": \"one\", \"uid\": \"u1\"}, \"source\": {\"component\": \"gpushared\", "
	    "\"host\": \"node-1\"}, \"reportingComponent\": \"gpushared\", \"reportingInstance\": "
	    "\"node-1\", \"type\": \"Warning\", \"reason\": \"CardReclaimed\", \"message\": "
	    "\"a \\\"text\\\"\\n\", \"firstTimestamp\": \"2");
	has(kubeclient_ask(&plain, "{'op':'events'}"), "\"metadata\": {\"namespace\": \"a\", "
						       "\"name\": \"one.");
	has(kubeclient_ask(&plain, "{'op':'events'}"), "Z\", \"count\": 1}");
}

static void test_event_count(void **state)
{
	for (int i = 0; i < 50; i++)
		kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "m");
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "other");
	kube_event(plain.kube, "a", "one", "u2", "Normal", "R", "m");
	kubeclient_until_asked(&plain, "POST", 3);
	until_event("\"count\": 50}");
	assert_int_equal(kubeclient_asked(&plain, "POST"), 3);
	assert_int_equal(kubeclient_asked(&plain, "PATCH"), 0);
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "m");
	until_event("\"count\": 51}");
	assert_int_equal(kubeclient_asked(&plain, "PATCH"), 1);
	has(kubeclient_ask(&plain, "{'op':'log'}"), "\"application/merge-patch+json\"");
	/* the server forgot it: anew, with a new name */
	kubeclient_tell(&plain, "{'op':'rule','match':'PATCH','status':404}");
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "m");
	until_event("\"count\": 52}");
	assert_int_equal(kubeclient_asked(&plain, "POST"), 4);
	/* too long ago */
	plain.kube->tune.event_window_ms = 50;
	kubeclient_run(&plain, 100);
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "m");
	kubeclient_until_asked(&plain, "POST", 5);
	assert_int_equal(kubeclient_asked(&plain, "POST"), 5);
	assert_int_equal(kube_events_dropped(plain.kube), 0);
}

/* The answer was lost on the way: no second object. */
static void test_event_lost_answer(void **state)
{
	kubeclient_tell(&plain, "{'op':'rule','match':'POST','stream':['{'],'how':'reset',"
				"'store':true}");
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "m");
	kubeclient_until_asked(&plain, "PATCH", 1);
	assert_int_equal(kubeclient_asked(&plain, "POST"), 2);
	assert_int_equal(kubeclient_asked(&plain, "PATCH"), 1);
	has(kubeclient_ask(&plain, "{'op':'events'}"), "\"count\": 1}]");
}

static void test_event_queue(void **state)
{
	char message[16];

	plain.kube->tune.events_max = 4;
	kubeclient_tell(&plain, "{'op':'rule','match':'POST','status':500,'times':3}");
	for (int i = 0; i < 10; i++) {
		(void)snprintf(message, sizeof(message), "m%d", i);
		kube_event(plain.kube, "a", "one", "u1", "Normal", "R", message);
	}
	kubeclient_until(&plain, "note: Events are dropped, too many wait: R on pod a/one\n");
	kubeclient_until(&plain, "well\n");
	until_event("\"m9\"");
	assert_int_equal(kube_events_dropped(plain.kube), 6);
	/* the one under way, and the newest */
	has(kubeclient_ask(&plain, "{'op':'events'}"), "\"m0\"");
	has(kubeclient_ask(&plain, "{'op':'events'}"), "\"m7\"");
	/* all of them told: they make room without a loss */
	for (int i = 0; i < 4; i++) {
		(void)snprintf(message, sizeof(message), "n%d", i);
		kube_event(plain.kube, "a", "one", "u1", "Normal", "R", message);
		until_event(message);
	}
	assert_int_equal(kube_events_dropped(plain.kube), 6);
}

static void test_event_refused(void **state)
{
	char message[3000];

	kubeclient_tell(&plain, "{'op':'rule','match':'POST','status':403}");
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", "m");
	kubeclient_until(&plain, "note: an Event on pod a/one is dropped (R: m): POST "
				 "/api/v1/namespaces/a/events: the API server answers 403: "
				 "scripted answer\n");
	kube_event(plain.kube, "a/b", "one", "u1", "Normal", "R", "m");
	kubeclient_until(&plain, "is no name of a pod\n");
	assert_int_equal(kube_events_dropped(plain.kube), 2);
	/* cut before the character that is too much (two bytes each) */
	for (size_t i = 0; i < sizeof(message) - 2; i += 2)
		memcpy(message + i + 1, "\xc3\xbc", 2);
	message[0] = 'x';
	message[sizeof(message) - 1] = '\0';
	kube_event(plain.kube, "a", "one", "u1", "Normal", "R", message);
	until_event("\\u00fc\\u00fc\", \"firstTimestamp\"");
}

/* ---- The token. */

static void test_token(void **state)
{
	kubeclient_tell(&plain, "{'op':'token','token':'first'}");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	/* another file under the name */
	kubeclient_tell(&plain, "{'op':'token','token':'second'}");
	tmpdir_write(plain.dir, "new", "second");
	(void)rename(tmpdir_path(plain.dir, "new"), tmpdir_path(plain.dir, "token"));
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 2);
}

/* Makes @name a link that leads to @where, in the place of what has that name. */
static void lead(const char *name, const char *where)
{
	assert_int_equal(symlink(where, tmpdir_path(plain.dir, "link")), 0);
	assert_int_equal(rename(tmpdir_path(plain.dir, "link"), tmpdir_path(plain.dir, name)), 0);
}

/* As the kubelet has it in a pod: a link by way of a folder that is a link, which it replaces. */
static void test_token_behind_links(void **state)
{
	tmpdir_write(plain.dir, "2026_1/token", "first");
	tmpdir_write(plain.dir, "2026_2/token", "second");
	lead("..data", "2026_1");
	lead("token", "..data/token");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	kubeclient_tell(&plain, "{'op':'token','token':'second'}");
	lead("..data", "2026_2");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "Bearer first"), 1);
	assert_int_equal(kubeclient_asked(&plain, "Bearer second"), 1);
	assert_int_equal(unlink(tmpdir_path(plain.dir, "token")), 0);
}

/* 401: the token is read once more, whatever the file's times say; then that's the answer. */
static void test_token_refused(void **state)
{
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
	kubeclient_tell(&plain, "{'op':'token','token':'second'}");
	free(plain.kube->token.text);
	plain.kube->token.text = strdup("Authorization: Bearer stale");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: -13 pod a/one is not deleted: DELETE "
				 "/api/v1/namespaces/a/pods/one: the API server answers 401: "
				 "Unauthorized\n");
	assert_int_equal(kubeclient_asked(&plain, "Bearer stale"), 1);
	assert_int_equal(kubeclient_asked(&plain, "Bearer first"), 2);
	kubeclient_tell(&plain, "{'op':'token','token':'first'}");
	free(plain.kube->token.text);
	plain.kube->token.text = strdup("Authorization: Bearer stale");
	delete_pod("one", "u1");
	kubeclient_until(&plain, "done: 0 \n");
}

/* The watch never gives up. */
static void test_token_of_watch(void **state)
{
	kubeclient_tell(&plain, "{'op':'token','token':'second'}");
	kube_watch_pods(plain.kube);
	kubeclient_until(&plain, "bad: GET /api/v1/pods: the API server answers 401: Unauth");
	kubeclient_run(&plain, 200);
	tmpdir_write(plain.dir, "token", "second\n");
	kubeclient_until(&plain, "well\nsynced\n");
}

static void test_token_file(void **state)
{
	(void)unlink(tmpdir_path(plain.dir, "token"));
	delete_pod("one", "u1");
	kubeclient_until(&plain, "bad: ");
	tmpdir_write(plain.dir, "token", "a\r\nX-Evil: 1\n");
	kubeclient_run(&plain, 200);
	tmpdir_write(plain.dir, "token", " \n");
	kubeclient_run(&plain, 200);
	assert_int_equal(kubeclient_asked(&plain, "DELETE"), 0);
	tmpdir_write(plain.dir, "token", "first");
	kubeclient_until(&plain, "well\ndone: 0 \n");
	assert_int_equal(kubeclient_asked(&plain, "Bearer first\""), 1);
}

/* What the environment says of proxies is not for the token. */
static void test_no_proxy(void **state)
{
	(void)setenv("http_proxy", "http://127.0.0.1:1", 1);
	(void)setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	delete_pod("one", "u1");
	kubeclient_until(&plain, "well\ndone: 0 \n");
	(void)unsetenv("http_proxy");
	(void)unsetenv("ALL_PROXY");
}

/* ---- TLS. */

static void test_tls(void **state)
{
	kube_watch_pods(tls.kube);
	kubeclient_until(&tls, "well\nsynced\n");
	kubeclient_put(&tls, "a/one", "u1", "Running", "");
	kubeclient_until(&tls, "pod a/one u1 Running\n");
	kube_delete_pod(tls.kube, "a", "one", "u1", NULL, NULL);
	kubeclient_until(&tls, "gone a/one u1\n");
}

/* Somebody else's server, or another name, never sees the token. */
static void test_tls_foreign(void **state)
{
	free(tls.kube->config.ca_file);
	tls.kube->config.ca_file = gs_strdup(tmpdir_path(tls.dir, "other.crt"));
	tmpdir_write(tls.dir, "token", "hidden");
	kube_watch_pods(tls.kube);
	kubeclient_until(&tls, "bad: GET /api/v1/pods: SSL certificate problem");
	kubeclient_run(&tls, 200);
	assert_int_equal(kubeclient_asked(&tls, "hidden"), 0);
	/* and its file is replaced */
	free(tls.kube->config.ca_file);
	tls.kube->config.ca_file = gs_strdup(tmpdir_path(tls.dir, "ca.crt"));
	kubeclient_until(&tls, "well\nsynced\n");
	assert_in_range(kubeclient_asked(&tls, "hidden"), 1, 2);
}

/* As the kubelet does it: other certificates under the name that was read already. */
static void test_tls_replaced(void **state)
{
	char *mine = tmpdir_read(tls.dir, "ca.crt"), *other = tmpdir_read(tls.dir, "other.crt");

	tls.kube->tune.ca_s = 1;
	free(tls.kube->config.ca_file);
	tmpdir_write(tls.dir, "bundle.crt", other);
	tls.kube->config.ca_file = gs_strdup(tmpdir_path(tls.dir, "bundle.crt"));
	kube_watch_pods(tls.kube);
	kubeclient_until(&tls, "bad: GET /api/v1/pods: SSL certificate problem");
	kubeclient_run(&tls, 200);
	tmpdir_write(tls.dir, "new", mine);
	(void)rename(tmpdir_path(tls.dir, "new"), tmpdir_path(tls.dir, "bundle.crt"));
	kubeclient_until(&tls, "well\nsynced\n");
	free(mine);
	free(other);
}

static void test_tls_name(void **state)
{
	free(tls.kube->config.server);
	tls.kube->config.server =
		gs_asprintf("https://localhost:%s", strrchr(tls.config.server, ':') + 1);
	tmpdir_write(tls.dir, "token", "unseen");
	kube_watch_pods(tls.kube);
	kubeclient_until(&tls, "bad: GET /api/v1/pods: SSL: no alternative certificate subject");
	assert_int_equal(kubeclient_asked(&tls, "unseen"), 0);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
#define with_tls(name) cmocka_unit_test_setup_teardown(test_##name, setup_tls, teardown_tls)
	const struct CMUnitTest tests[] = {
		test(delete),
		test(delete_conflict),
		test(delete_forbidden_yet),
		test(delete_forbidden),
		test(delete_refused),
		test(delete_no_name),
		test(delete_retried),
		test(retry_after),
		test(backoff),
		test(many_deletes),
		test(canceled),
		test(asked_from_callback),
		test(event),
		test(event_count),
		test(event_lost_answer),
		test(event_queue),
		test(event_refused),
		test(token),
		test(token_behind_links),
		test(token_refused),
		test(token_of_watch),
		test(token_file),
		test(no_proxy),
		with_tls(tls),
		with_tls(tls_foreign),
		with_tls(tls_replaced),
		with_tls(tls_name),
	};

	return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
