// SPDX-License-Identifier: Apache-2.0
/* What is read of share pods and shadow pods, whatever else their authors wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "controller/shadow_make.h"

static struct controller_settings settings;

static int setup(void **state)
{
	controller_settings_init(&settings);
	free(settings.namespace);
	settings.namespace = gs_strdup("gpushare-system");
	return 0;
}

static int teardown(void **state)
{
	controller_settings_free(&settings);
	return 0;
}

/* A pod with these parts of its metadata and its spec; NULL: neither share nor shadow pod. */
static struct shadow_pod *read_pod(const char *meta, const char *spec)
{
	cleanup_free char *text = gs_asprintf(
		"{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"u\"%s},"
		"\"spec\":{%s},\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":"
		"\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		"\"message\":\"Insufficient gpushare/share-gpu\"}]}}",
		meta, spec);
	struct js pod;
	bool shadow = true;
	struct shadow_pod *ret;

	assert_int_equal(js_parse(text, strlen(text), &pod, NULL), 0);
	ret = shadow_read(pod, &settings, &shadow);
	assert_true(!ret || !shadow);
	return ret;
}

#define ASKS(n) "{\"name\":\"c\",\"resources\":{\"limits\":{\"gpushare/share-gpu\":\"" #n "\"}}}"
#define SIDECAR(n)                                                                   \
	"{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" \
	"\"gpushare/share-gpu\":\"" #n "\"}}}"

/* It is read as a share pod that waits. */
static void waits(const char *meta, const char *spec)
{
	struct shadow_pod *pod = read_pod(meta, spec);

	assert_non_null(pod);
	assert_string_equal(pod->uid, "u");
	assert_string_equal(pod->account, "ns");
	assert_string_equal(pod->why, "Insufficient gpushare/share-gpu");
	assert_int_equal(pod->cards, 1);
	assert_non_null(pod->like);
	shadow_pod_free(pod);
}

static void test_what_authors_write(void **state)
{
	cleanup_buf struct gs_buf deep = { 0 };

	waits("", "\"containers\":[" ASKS(1) "]");
	waits(",\"annotations\":{\"example.com/a\":\"\\u0000\"}", "\"containers\":[" ASKS(1) "]");
	waits("", "\"containers\":[{\"name\":\"b\",\"args\":[\"\\u0000\"]}," ASKS(1) "]");
	waits("", "\"schedulerName\":\"a\\u0000b\",\"containers\":[" ASKS(1) "]");
	waits("", "\"volumes\":[{\"name\":\"v\",\"flexVolume\":{\"options\":{\"\\u0000\":\"\"}}}],"
		  "\"containers\":[" ASKS(1) "]");
	/* more than an int64_t holds */
	waits(",\"generation\":18446744073709551616", "\"containers\":[" ASKS(1) "]");
	gs_buf_adds(&deep, ",\"managedFields\":[{\"fieldsV1\":");
	for (int i = 0; i < 5000; i++)
		gs_buf_adds(&deep, "{\"f:a\":");
	gs_buf_adds(&deep, "{}");
	for (int i = 0; i < 5000; i++)
		gs_buf_adds(&deep, "}");
	gs_buf_adds(&deep, "}]");
	waits(deep.data, "\"containers\":[" ASKS(1) "]");
}

static void test_what_is_inherited(void **state)
{
	struct shadow_pod *pod = read_pod(
		"", "\"nodeSelector\":{\"a\":\"b\"},\"tolerations\":[{\"operator\":\"Exists\"}],"
		    "\"priorityClassName\":\"high\",\"schedulerName\":\"mine\","
		    "\"runtimeClassName\":\"gpushare\",\"serviceAccountName\":\"theirs\","
		    "\"affinity\":{\"nodeAffinity\":{\"x\":1},\"podAffinity\":{\"y\":1}},"
		    "\"containers\":[" ASKS(1) "]");
	cleanup_free char *like = json_dumps(pod->like, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(like, "{\"affinity\":{\"nodeAffinity\":{\"x\":1}},"
				  "\"nodeSelector\":{\"a\":\"b\"},\"priorityClassName\":\"high\","
				  "\"runtimeClassName\":\"gpushare\",\"schedulerName\":\"mine\","
				  "\"tolerations\":[{\"operator\":\"Exists\"}]}");
	shadow_pod_free(pod);
	assert_null(read_pod("", "\"nodeName\":\"gpushare/share-gpu\""));
	assert_null(read_pod(",\"annotations\":{\"gpushare.k8s.io/shadow\":\"true\"}", ""));
}

/* As many cards as it needs at a time. */
static void needs(const char *spec, unsigned int cards)
{
	struct shadow_pod *pod = read_pod("", spec);

	assert_int_equal(pod->cards, cards);
	shadow_pod_free(pod);
}

static void test_how_many(void **state)
{
	needs("\"containers\":[" ASKS(1) "," ASKS(2) "]", 3);
	needs("\"initContainers\":[" ASKS(2) "," ASKS(4) "],\"containers\":[" ASKS(3) "]", 4);
	needs("\"initContainers\":[" SIDECAR(2) "],\"containers\":[" ASKS(1) "]", 3);
	/* the sidecar goes on while the init container runs */
	needs("\"initContainers\":[" SIDECAR(2) "," ASKS(3) "],\"containers\":[" ASKS(1) "]", 5);
	/* not one that comes after it */
	needs("\"initContainers\":[" ASKS(3) "," SIDECAR(2) "],\"containers\":[" ASKS(1) "]", 3);
	needs("\"containers\":[" ASKS(1000) "]", 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_authors_write),
		cmocka_unit_test(test_what_is_inherited),
		cmocka_unit_test(test_how_many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
