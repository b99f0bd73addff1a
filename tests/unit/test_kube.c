// SPDX-License-Identifier: Apache-2.0
/* The Kubernetes client's reading: pods, lists, streams, configuration. No server. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/impl.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

static struct js parse(const char *text)
{
	struct js object;

	assert_int_equal(js_parse(text, strlen(text), &object, NULL), 0);
	return object;
}

/* ---- Pods. */

static void test_pod(void **state)
{
	struct kube_pod pod;

	assert_int_equal(kube_pod_read(parse("{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
					     "\"uid\":\"u\",\"ownerReferences\":[{\"kind\":"
					     "\"ReplicaSet\"}],\"annotations\":{\"other\":\"1\","
					     "\"gpushare.k8s.io/lend\":\"tr\\u0075e\","
					     "\"gpushare.k8s.io/x\":\"\"}},"
					     "\"spec\":{\"priorityClassName\":\"low\"},"
					     "\"status\":{\"phase\":\"Running\"}}"),
				       &pod, NULL),
			 0);
	assert_string_equal(pod.name, "a");
	assert_string_equal(pod.namespace, "n");
	assert_string_equal(pod.uid, "u");
	assert_string_equal(pod.phase, "Running");
	assert_string_equal(pod.priority_class, "low");
	assert_false(pod.deleting);
	assert_int_equal(pod.n_annotations, 2);
	assert_string_equal(pod.annotations[0].key, "gpushare.k8s.io/lend");
	assert_string_equal(pod.annotations[0].value, "true");
	kube_pod_free(&pod);
}

static void test_pod_kinds(void **state)
{
	struct kube_pod pod;

	assert_int_equal(kube_pod_read(parse("{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
					     "\"uid\":\"u\",\"deletionTimestamp\":\"2026\","
					     "\"annotations\":"
					     "{\"kubernetes.io/config.mirror\":\"abc\"}}}"),
				       &pod, NULL),
			 0);
	assert_true(pod.deleting);
	assert_null(pod.phase);
	assert_int_equal(pod.n_annotations, 0);
	kube_pod_free(&pod);

	assert_int_equal(kube_pod_read(parse("{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
					     "\"uid\":\"u\",\"deletionTimestamp\":null,"
					     "\"ownerReferences\":null,\"annotations\":null},"
					     "\"spec\":null,\"status\":null}"),
				       &pod, NULL),
			 0);
	assert_false(pod.deleting);
	kube_pod_free(&pod);
}

/* Reads it out of a text with ' for ". */
static void read_pod(const char *text, struct kube_pod *ret)
{
	char *json = gs_strdup(text);

	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_int_equal(kube_pod_read(parse(json), ret, NULL), 0);
	free(json);
}

/* The requests of one that is no job, and of some that are. */
static void test_pod_requests(void **state)
{
#define POD(spec)                                            \
	"{'metadata':{'name':'a','namespace':'n','uid':'u'," \
	"'creationTimestamp':'2026-01-02T03:04:05Z'},'spec':{" spec "}}"
#define ASKS(cpu, mem) \
	"'resources':{'requests':{'gpushare/vcpu':'" cpu "','gpushare/vmem':'" mem "'}}"
#define ONE(cpu, mem) "{" ASKS(cpu, mem) "}"
#define GOES_ON(cpu, mem) "{'restartPolicy':'Always'," ASKS(cpu, mem) "}"
	static const struct {
		const char *text;
		uint64_t vcpu, vmem;
		unsigned int plain; /* 1: CPU; 2: memory */
	} cases[] = {
		{ POD(""), 0, 0, 0 },
		{ POD("'containers':[{},{'resources':null}]"), 0, 0, 0 },
		{ POD("'containers':[{" ASKS("500", "64") "},{" ASKS("1k", "1") "}]"), 1500, 65,
		  0 },
		/* one after the other before the rest, or beside it */
		{ POD("'containers':[{" ASKS("500", "64") "}],'initContainers':[{" ASKS(
			  "100", "99") "},{" ASKS("300", "1") "}]"),
		  500, 99, 0 },
		{ POD("'containers':[{" ASKS("500", "64") "}],'initContainers':[{"
							  "'restartPolicy':'Always'," ASKS(
								  "300", "1") "}]"),
		  800, 65, 0 },
		/* after one that goes on, beside that; before it, not */
		{ POD("'containers':[" ONE("500", "64") "],'initContainers':[" ONE(
			  "900", "9") "," GOES_ON("300", "1") "," ONE("600", "99") "]"),
		  900, 100, 0 },
		{ POD("'containers':[{" ASKS("500",
					     "64") "},{'resources':{'requests':{'cpu':'1'}}}]"),
		  500, 64, 1 },
		{ POD("'containers':[{'resources':{'limits':{'cpu':'1'}}}]"), 0, 0, 1 },
		{ POD("'resources':{'requests':{'cpu':'1'}}"), 0, 0, 1 },
		{ POD("'containers':[{'resources':{'limits':{'memory':'1'}}}]"), 0, 0, 2 },
		{ POD("'initContainers':[{'resources':{'requests':{'memory':'1'}}}]"), 0, 0, 2 },
		{ POD("'resources':{'limits':{'memory':'1Gi'}}"), 0, 0, 2 },
		{ POD("'overhead':{'memory':'120Mi'}"), 0, 0, 2 },
		{ POD("'overhead':{'cpu':'250m'}"), 0, 0, 1 },
		/* no numbers, and none that fits */
		{ POD("'containers':[{" ASKS("-5", "x") "}]"), 0, 0, 0 },
		{ POD("'containers':[{" ASKS("1e12", "64E") "},{" ASKS("1e10", "1") "}]"),
		  2000000000, 1, 0 },
	};
	struct kube_pod pod;

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		read_pod(cases[i].text, &pod);
		assert_int_equal(pod.vcpu, cases[i].vcpu);
		assert_int_equal(pod.vmem, cases[i].vmem);
		assert_int_equal(pod.plain_cpu + 2 * pod.plain_memory, cases[i].plain);
		assert_int_equal(pod.priority, 0);
		assert_string_equal(pod.created, "2026-01-02T03:04:05Z");
		kube_pod_free(&pod);
	}
#define SHARES "'resources':{'requests':{'gpushare/share-gpu':'1'}}"
#define SPOTS "'resources':{'requests':{'gpushare/spot-gpu':'1'}}"
	read_pod(POD("'containers':[{" SPOTS "}],'initContainers':[{'restartPolicy':'Always'," SPOTS
		     "},{" SHARES "}]"),
		 &pod);
	assert_true(pod.init_share && !pod.init_spot);
	kube_pod_free(&pod);
	read_pod(POD("'containers':[{" SHARES "}],'initContainers':[{},{" SPOTS "}]"), &pod);
	assert_true(!pod.init_share && pod.init_spot);
	kube_pod_free(&pod);
#undef SHARES
#undef SPOTS
	read_pod(POD("'priority':-1000"), &pod);
	assert_int_equal(pod.priority, -1000);
	kube_pod_free(&pod);
#undef POD
#undef ASKS
#undef ONE
#undef GOES_ON
}

static void test_pod_broken(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"metadata\":null}",
		"{\"metadata\":[]}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":5}}",
		"{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"\\u0000\"}}",
		"{\"metadata\":{\"name\":\"a\",\"Name\":\"b\",\"namespace\":\"n\",\"uid\":\"u\"}}",
	};
	struct kube_pod pod;
	struct gs_err err;

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		err.msg[0] = '\0';
		assert_true(kube_pod_read(parse(texts[i]), &pod, &err) < 0);
		assert_true(err.msg[0] != '\0');
	}
}

/* ---- Cutting. */

static struct kube kube;
static struct gs_buf got;

static int on_object(struct js object, void *arg)
{
	gs_buf_add(&got, object.p, object.n);
	gs_buf_addc(&got, '|');
	return object.n == 8 && memcmp(object.p, "{\"x\":13}", 8) == 0 ? -ESTALE : 0;
}

static void on_note(const char *what, void *arg)
{
	gs_buf_adds(&got, "note|");
}

/* Feeds @text in pieces of @piece bytes; gives what the last one gave. */
static int feed(struct kube_cut *cut, int (*fn)(struct kube_cut *, const char *, size_t),
		const char *text, size_t piece)
{
	size_t len = strlen(text);
	int r = 0;

	gs_buf_free(&got);
	gs_buf_adds(&got, "");
	for (size_t i = 0; r == 0 && i < len; i += piece)
		r = fn(cut, text + i, len - i < piece ? len - i : piece);
	return r;
}

static struct kube_cut cutter(void)
{
	kube = (struct kube){ .tune.object_max = 64, .ops.note = on_note };
	return (struct kube_cut){ .kube = &kube, .what = "pod", .object = on_object };
}

static void test_list(void **state)
{
	static const char text[] = "{\"a\":[], \"metadata\":{\"x\":[{\"q\":1}]},\"items\":[ {\"s\":"
				   "\"}]\\\\\\\"{\"},{},{\"n\":{\"m\":[{}]}} ],\"z\":1}";

	for (size_t piece = 1; piece <= sizeof(text); piece++) {
		struct kube_cut cut = cutter();

		assert_int_equal(feed(&cut, kube_cut_list, text, piece), 0);
		assert_string_equal(got.data, "{\"s\":\"}]\\\\\\\"{\"}|{}|{\"n\":{\"m\":[{}]}}|");
		assert_string_equal(cut.rest.data, "{\"a\":[], \"metadata\":{\"x\":[{\"q\":1}]},"
						   "\"items\":[ 0,0,0 ],\"z\":1}");
		kube_cut_reset(&cut);
	}
}

static void test_list_large(void **state)
{
	static const char digits[] = "012345678901234567890123456789012345678901234567890123456789";
	struct kube_cut cut = cutter();
	char text[256], want[128];

	/* one of 65 bytes is left out, one of 64 is not */
	(void)snprintf(text, sizeof(text), "{\"items\":[{\"x\":\"%.57s\"},{\"x\":\"%.56s\"}]}",
		       digits, digits);
	(void)snprintf(want, sizeof(want), "note|{\"x\":\"%.56s\"}|", digits);
	assert_int_equal(feed(&cut, kube_cut_list, text, 7), 0);
	assert_string_equal(got.data, want);
	assert_string_equal(cut.rest.data, "{\"items\":[0,0]}");
	kube_cut_reset(&cut);
}

static void test_list_broken(void **state)
{
	struct kube_cut cut = cutter();

	assert_int_equal(feed(&cut, kube_cut_list, "{\"items\":[{nonsense}]}", 3), -EBADMSG);
	kube_cut_reset(&cut);
	assert_int_equal(feed(&cut, kube_cut_list, "}}", 1), -EBADMSG);
	kube_cut_reset(&cut);
	/* what stands around the items is bounded too */
	for (int i = 0, r = 0; r == 0; i++) {
		assert_true(i < 20000);
		r = kube_cut_list(&cut,
				  "0123456789012345678901234567890123456789012345678901234567"
				  "01234567890123456789012345678901234567890123456789012345678",
				  115);
	}
	kube_cut_reset(&cut);
}

static void test_lines(void **state)
{
	static const char text[] = "{\"a\":1}\n\n{\"b\":\"\\n\"}\n {\"c\":{}} \n{\"cut";

	for (size_t piece = 1; piece <= sizeof(text); piece++) {
		struct kube_cut cut = cutter();

		assert_int_equal(feed(&cut, kube_cut_lines, text, piece), 0);
		assert_string_equal(got.data, "{\"a\":1}|{\"b\":\"\\n\"}|{\"c\":{}}|");
		kube_cut_reset(&cut);
	}
}

static void test_lines_large(void **state)
{
	struct kube_cut cut = cutter();

	assert_int_equal(
		feed(&cut, kube_cut_lines,
		     "{\"x\":\"0123456789012345678901234567890123456789012345678901234567\"}"
		     "\n{\"y\":1}\n",
		     9),
		0);
	assert_string_equal(got.data, "note|{\"y\":1}|");
	kube_cut_reset(&cut);
}

static void test_lines_broken(void **state)
{
	static const char *const texts[] = { "{\"a\":\n", "[]\n", "5\n", "{\"a\":1}{}\n" };
	struct kube_cut cut = cutter();

	for (size_t i = 0; i < GS_ARRAY_SIZE(texts); i++) {
		assert_int_equal(feed(&cut, kube_cut_lines, texts[i], 2), -EBADMSG);
		kube_cut_reset(&cut);
	}
	/* what the taker says ends it */
	assert_int_equal(feed(&cut, kube_cut_lines, "{\"x\":13}\n{}\n", 99), -ESTALE);
	assert_string_equal(got.data, "{\"x\":13}|");
	kube_cut_reset(&cut);
}

/* ---- Configuration. */

static void test_config(void **state)
{
	static const struct {
		const char *server, *token, *node, *says;
	} cases[] = {
		{ NULL, "t", "n", "no API server" },
		{ "https://h:6443", NULL, "n", "no token file" },
		{ "https://h:6443", "t", "n,metadata.name=x", "no node's name" },
		{ "https://h:6443", "t", "n..m", "no node's name" },
		{ "h:6443", "t", "n", "no URL" },
		{ "https://", "t", "n", "no URL" },
		{ "ftp://h", "t", "n", "must begin with https" },
		{ "http://10.0.0.1:8080", "t", "n", "in the clear" },
		{ "http://127.example:8080", "t", "n", "in the clear" },
		{ "https://me:secret@h", "t", "n", "has a user" },
		{ "https://h/?x", "t", "n", "has a user" },
		{ "https://h:6443", "t", "n", NULL },
		{ "https://h:6443", "t", NULL, NULL },
		{ "https://h:6443/prefix/", "t", "n.example", NULL },
		{ "http://127.0.0.1:8001", "t", "n", NULL },
		{ "http://[::1]:8001", "t", "n", NULL },
	};
	const struct kube_ops ops = { 0 };
	uv_loop_t loop;

	assert_int_equal(uv_loop_init(&loop), 0);
	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		const struct kube_config config = { .server = (char *)cases[i].server,
						    .token_file = (char *)cases[i].token,
						    .node = (char *)cases[i].node };
		struct kube *client = NULL;
		struct gs_err err;
		int r = kube_new(&loop, &config, &ops, &client, &err);

		assert_int_equal(r, cases[i].says ? -EINVAL : 0);
		if (cases[i].says && !strstr(err.msg, cases[i].says))
			fail_msg("%s", err.msg);
		kube_free(client);
		(void)uv_run(&loop, UV_RUN_DEFAULT);
	}
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_in_cluster(void **state)
{
	struct kube_config config = { 0 };
	struct gs_err err;

	(void)unsetenv("KUBERNETES_SERVICE_HOST");
	(void)setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	(void)setenv("NODE_NAME", "node-7", 1);
	assert_int_equal(kube_config_in_cluster(&config, &err), -ENOENT);
	(void)setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
	assert_int_equal(kube_config_in_cluster(&config, &err), 0);
	assert_string_equal(config.server, "https://10.96.0.1:443");
	assert_string_equal(config.ca_file, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
	assert_string_equal(config.token_file,
			    "/var/run/secrets/kubernetes.io/serviceaccount/token");
	assert_string_equal(config.node, "node-7");
	kube_config_free(&config);

	(void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	config.node = gs_strdup("mine");
	assert_int_equal(kube_config_in_cluster(&config, &err), 0);
	assert_string_equal(config.server, "https://[fd00::1]:443");
	assert_string_equal(config.node, "mine");
	kube_config_free(&config);

	/* what is set stays, and a server elsewhere has an authority of its own */
	(void)unsetenv("NODE_NAME");
	config.server = gs_strdup("https://lb:6443");
	assert_int_equal(kube_config_in_cluster(&config, &err), 0);
	assert_string_equal(config.server, "https://lb:6443");
	assert_null(config.ca_file);
	assert_null(config.node);
	kube_config_free(&config);
}

static int teardown(void **state)
{
	gs_buf_free(&got);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pod),	     cmocka_unit_test(test_pod_kinds),
		cmocka_unit_test(test_pod_requests), cmocka_unit_test(test_pod_broken),
		cmocka_unit_test(test_list),	     cmocka_unit_test(test_list_large),
		cmocka_unit_test(test_list_broken),  cmocka_unit_test(test_lines),
		cmocka_unit_test(test_lines_large),  cmocka_unit_test(test_lines_broken),
		cmocka_unit_test(test_config),	     cmocka_unit_test(test_in_cluster),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
