// SPDX-License-Identifier: Apache-2.0
/* agent/pods.c: which pods are deleted, against a small API server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/pods.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/resources.h"
#include "tests/unit/kubeclient.h"
#include "tests/unit/tmpdir.h"

#define WHY "the holder of its card is back"

static struct kubeclient client; /* its loop is the agent's */
static struct agent agent;

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
	struct kube_config *kube = &agent.settings.kube;

	kubeclient_tell(&client, "{'op':'reset'}");
	(void)unlink(tmpdir_path(client.dir, "log"));
	gs_log_open(GS_LOG_DEBUG, tmpdir_path(client.dir, "log"));
	assert_int_equal(uv_loop_init(&client.loop), 0);
	agent = (struct agent){ .loop = &client.loop };
	settings_init(&agent.settings);
	kube->server = gs_strdup(client.config.server);
	kube->token_file = gs_strdup(client.config.token_file);
	kube->node = gs_strdup(client.config.node);
	return 0;
}

static int teardown(void **state)
{
	pods_stop(&agent);
	(void)uv_run(&client.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&client.loop), 0);
	settings_free(&agent.settings);
	gs_log_open(GS_LOG_ERROR, NULL);
	return 0;
}

static void start(void)
{
	struct gs_err err = { 0 };

	if (pods_start(&agent, &err) < 0)
		fail_msg("%s", err.msg);
	agent.kube->tune.backoff_min_ms = 20;
	agent.kube->tune.backoff_max_ms = 100;
	agent.kube->tune.event_gap_ms = 0;
}

/* The agent knows the pods that the server has. */
static void start_and_look(void)
{
	start();
	kubeclient_until_asked(&client, "watch=1", 1);
	kubeclient_run(&client, 100);
}

/* A borrower of the pod a/@pod with that UID was ended. */
static void ended(const char *pod, const char *uid)
{
	const struct gs_record rec = {
		.pod_uid = (char *)uid,
		.identity = { (char *)"a", (char *)pod, (char *)"main" },
	};

	pods_delete(&agent, &rec, WHY);
}

static unsigned int deletes(void)
{
	return kubeclient_asked(&client, "\"DELETE ");
}

/* It is there still: the server can't take away what it does not have. */
static void stays(const char *key)
{
	kubeclient_tell(&client, "{'op':'remove','pod':'%s'}", key);
}

static unsigned int logged(const char *what)
{
	char *text = tmpdir_read(client.dir, "log");
	unsigned int n = 0;

	for (const char *c = text; (c = strstr(c, what)); c++)
		n++;
	free(text);
	return n;
}

static void goes_at_once_and_is_told_why(void **state)
{
	char *events;

	kubeclient_put(&client, "a/one", "u1", "Running", "");
	start_and_look();
	ended("one", "u1");
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/one\"", 1);
	kubeclient_until_asked(&client, "\"POST ", 1);
	kubeclient_run(&client, 100);
	assert_int_equal(kubeclient_asked(&client, "\\\"gracePeriodSeconds\\\":0"), 1);
	assert_int_equal(
		kubeclient_asked(&client, "\\\"preconditions\\\":{\\\"uid\\\":\\\"u1\\\"}"), 1);
	events = kubeclient_ask(&client, "{'op':'events'}");
	assert_non_null(strstr(events, "\"name\": \"one\", \"uid\": \"u1\""));
	assert_non_null(strstr(events, "\"message\": \"" WHY "\""));
	free(events);
	assert_int_equal(logged("a pod is deleted"), 1);
}

static void a_job_goes_for_its_memory(void **state)
{
	struct oversale_job *jobs;
	char *events;

	kubeclient_put(&client, "a/plain", "u0", "Running", "");
	kubeclient_put(&client, "a/job", "u1", "Running",
		       ",'annotations':{'gpushare.k8s.io/vcpu.main':'500m'},"
		       "'creationTimestamp':'2026-01-02T03:04:05Z'");
	kubeclient_put(&client, "a/over", "u2", "Succeeded",
		       ",'annotations':{'gpushare.k8s.io/vmem':'1Gi'}");
	start_and_look();
	assert_int_equal(pods_jobs(&agent, &jobs), 1);
	assert_string_equal(jobs[0].uid, "u1");
	assert_string_equal(jobs[0].since, "2026-01-02T03:04:05Z");
	assert_true(jobs[0].only_cpu);
	assert_true(jobs[0].only_memory);
	assert_false(jobs[0].going);
	free(jobs);
	pods_evict(&agent, "nobody", WHY);
	pods_evict(&agent, "u1", "its memory is wanted back");
	assert_int_equal(pods_jobs(&agent, &jobs), 1);
	assert_true(jobs[0].going);
	free(jobs);
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/job\"", 1);
	kubeclient_until_asked(&client, "\"POST ", 1);
	kubeclient_run(&client, 100);
	events = kubeclient_ask(&client, "{'op':'events'}");
	assert_non_null(strstr(events, "\"reason\": \"OversaleReclaimed\""));
	assert_non_null(strstr(events, "\"message\": \"its memory is wanted back\""));
	free(events);
	assert_int_equal(pods_jobs(&agent, &jobs), 0);
	free(jobs);
}

/* One that the webhook never saw has bought all the same. */
static void a_job_is_who_bought(void **state)
{
	struct oversale_job *jobs;

	kubeclient_tell(&client,
			"{'op':'put','pod':{'metadata':{'namespace':'a','name':'bare','uid':'u1'},"
			"'spec':{'nodeName':'node-1','containers':[{'resources':{'requests':{"
			"'gpushare/vmem':'64','memory':'1Gi'}}}]},'status':{'phase':'Running'}}}");
	start_and_look();
	assert_int_equal(pods_jobs(&agent, &jobs), 1);
	assert_int_equal(jobs[0].memory, 64);
	assert_false(jobs[0].only_memory);
	assert_true(jobs[0].only_cpu);
	free(jobs);
}

/* A StatefulSet's pod: the one that is back under the name is another one. */
static void back_under_its_name_it_stays(void **state)
{
	kubeclient_put(&client, "a/web-0", "u1", "Running", "");
	start_and_look();
	/* between the decision and the call that is heard */
	agent.kube->tune.backoff_min_ms = agent.kube->tune.backoff_max_ms = 1000;
	kubeclient_tell(&client, "{'op':'rule','match':'DELETE','status':500}");
	ended("web-0", "u1");
	kubeclient_until_asked(&client, "\"DELETE ", 1);
	kubeclient_tell(&client, "{'op':'remove','pod':'a/web-0'}");
	kubeclient_put(&client, "a/web-0", "u2", "Running", "");
	kubeclient_until_asked(&client, "\"DELETE ", 2);
	kubeclient_run(&client, 200);
	/* and before it: the server is not even asked */
	ended("web-0", "u1");
	kubeclient_run(&client, 200);
	assert_int_equal(deletes(), 2);
	stays("a/web-0");
}

static void two_containers_of_a_pod_delete_it_once(void **state)
{
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	start_and_look();
	kubeclient_tell(&client, "{'op':'rule','match':'DELETE','status':500}");
	ended("one", "u1");
	ended("one", "u1");
	kubeclient_until_asked(&client, "\"DELETE ", 1);
	ended("one", "u1");
	kubeclient_until_asked(&client, "\"DELETE ", 2);
	kubeclient_run(&client, 300);
	assert_int_equal(deletes(), 2);
	assert_int_equal(logged("a pod is deleted"), 1);
}

/* Whatever a pod's author writes on it, who borrowed goes. */
static void no_mark_keeps_a_pod(void **state)
{
	kubeclient_put(&client, "a/static", "u1", "Running",
		       ",'annotations':{'kubernetes.io/config.mirror':'x'}");
	kubeclient_put(&client, "a/daemon", "u2", "Running",
		       ",'ownerReferences':[{'kind':'DaemonSet'}]");
	start_and_look();
	ended("static", "u1");
	ended("daemon", "u2");
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/static\"", 1);
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/daemon\"", 1);
	kubeclient_run(&client, 100);
	assert_int_equal(logged("a pod is deleted"), 2);
}

/*
 * The API would say yes, and the containers go on. A static pod's containers have the kubelet's
 * UID of it, a hash of the file; the object in the API has one that the server made.
 */
static void a_static_pods_mirror_stays(void **state)
{
	kubeclient_put(&client, "a/static", "b7fb1351-9fd2-40ec-bd32-5a5bd4a7e2d6", "Running",
		       ",'annotations':{'kubernetes.io/config.mirror':"
		       "'0123456789abcdef0123456789abcdef'}");
	start_and_look();
	ended("static", "0123456789abcdef0123456789abcdef");
	kubeclient_run(&client, 300);
	assert_int_equal(deletes(), 0);
	stays("a/static");
}

/* A borrower was ended while nobody answered: its pod goes when somebody does. */
static void the_api_is_away(void **state)
{
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kubeclient_tell(&client, "{'op':'rule','match':'limit=','status':503,'times':3}");
	start();
	ended("one", "u1");
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/one\"", 1);
	assert_int_equal(logged("the Kubernetes API does not answer"), 1);
	assert_int_equal(logged("the Kubernetes API answers"), 1);
}

/* The agent was away when its borrower was ended: all that it has is the UID in the grant. */
static void by_uid_alone(void **state)
{
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kubeclient_put(&client, "a/done", "u2", "Succeeded", "");
	start();
	pods_delete_uid(&agent, "u1", WHY); /* not known yet */
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/one\"", 1);
	kubeclient_put(&client, "a/two", "u3", "Pending", "");
	kubeclient_run(&client, 200);
	pods_delete_uid(&agent, "u3", WHY);
	pods_delete_uid(&agent, "u2", WHY);
	pods_delete_uid(&agent, "u4", WHY);
	kubeclient_until_asked(&client, "\"DELETE /api/v1/namespaces/a/pods/two\"", 1);
	kubeclient_run(&client, 200);
	assert_int_equal(deletes(), 2);
	stays("a/done");
}

static void without_kubernetes_nothing_is_asked(void **state)
{
	struct gs_err err;

	free(agent.settings.kube.server);
	agent.settings.kube.server = NULL;
	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(pods_start(&agent, &err), 0);
	assert_null(agent.kube);
	ended("one", "u1");
	pods_delete_uid(&agent, "u1", WHY);
	assert_false(pods_untold(&agent, GS_RESOURCE_SHARE));
}

/* What the server refused is asked again when the pod changes, as one does that can't start. */
static void one_that_is_refused_goes_later(void **state)
{
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	start_and_look();
	kubeclient_tell(&client, "{'op':'rule','match':'^DELETE','status':422}");
	ended("one", "u1");
	kubeclient_until_asked(&client, "\"DELETE ", 1);
	kubeclient_run(&client, 100);
	assert_int_equal(logged("a pod is not deleted"), 1);
	assert_int_equal(deletes(), 1);
	kubeclient_put(&client, "a/one", "u1", "Running", "");
	kubeclient_until_asked(&client, "\"DELETE ", 2);
	kubeclient_run(&client, 100);
	assert_int_equal(logged("a pod is deleted"), 1);
	/* and when it is wanted once more */
	kubeclient_put(&client, "a/three", "u3", "Running", "");
	kubeclient_run(&client, 100);
	kubeclient_tell(&client, "{'op':'rule','match':'^DELETE','status':422}");
	ended("three", "u3");
	kubeclient_until_asked(&client, "\"DELETE ", 3);
	kubeclient_run(&client, 100);
	ended("three", "u3");
	kubeclient_until_asked(&client, "\"DELETE ", 4);
	kubeclient_run(&client, 100);
	/* another one that has its name by then stays */
	kubeclient_put(&client, "a/two", "u2", "Running", "");
	kubeclient_run(&client, 100);
	kubeclient_tell(&client, "{'op':'rule','match':'^DELETE','status':422}");
	ended("two", "u2");
	kubeclient_until_asked(&client, "\"DELETE ", 5);
	kubeclient_run(&client, 100);
	kubeclient_tell(&client, "{'op':'remove','pod':'a/two'}");
	kubeclient_put(&client, "a/two", "u4", "Running", "");
	kubeclient_run(&client, 200);
	assert_int_equal(deletes(), 5);
}

static void put_init(const char *phase, const char *resource)
{
	kubeclient_tell(&client,
			"{'op':'put','pod':{'metadata':{'namespace':'a','name':'i','uid':'u1'},"
			"'spec':{'nodeName':'node-1','initContainers':[{'resources':{'requests':{"
			"'%s':'1'}}}]},'status':{'phase':'%s'}}}",
			resource, phase);
}

static void what_no_kubelet_tells(void **state)
{
	put_init("Pending", GS_RESOURCE_SHARE);
	start();
	/* whether there is one */
	assert_true(pods_untold(&agent, GS_RESOURCE_SPOT));
	kubeclient_until_asked(&client, "watch=1", 1);
	kubeclient_run(&client, 100);
	assert_true(pods_untold(&agent, GS_RESOURCE_SHARE));
	assert_false(pods_untold(&agent, GS_RESOURCE_SPOT));
	put_init("Running", GS_RESOURCE_SPOT);
	kubeclient_run(&client, 100);
	assert_false(pods_untold(&agent, GS_RESOURCE_SHARE));
	assert_true(pods_untold(&agent, GS_RESOURCE_SPOT));
	put_init("Failed", GS_RESOURCE_SPOT);
	kubeclient_run(&client, 100);
	assert_false(pods_untold(&agent, GS_RESOURCE_SPOT));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(goes_at_once_and_is_told_why),
		TEST(back_under_its_name_it_stays),
		TEST(two_containers_of_a_pod_delete_it_once),
		TEST(a_job_goes_for_its_memory),
		TEST(a_job_is_who_bought),
		TEST(no_mark_keeps_a_pod),
		TEST(a_static_pods_mirror_stays),
		TEST(the_api_is_away),
		TEST(by_uid_alone),
		TEST(without_kubernetes_nothing_is_asked),
		TEST(what_no_kubelet_tells),
		TEST(one_that_is_refused_goes_later),
	};

	return cmocka_run_group_tests_name("pods", tests, setup_all, teardown_all);
}
