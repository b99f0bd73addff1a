// SPDX-License-Identifier: Apache-2.0
/* CPU and memory limits: what is written beside what the spec has. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/limits.h"
#include "tests/unit/specs.h"

/* linux.resources before and after; vcpu in thousandths, vmem in bytes. */
struct row {
	int64_t vcpu, vmem;
	const char *before, *after;
};

static char *limited(const char *resources, const struct request *req, int want, bool *ret_changed,
		     struct gs_err *err)
{
	cleanup_free char *text = gs_asprintf("{\"linux\":{\"resources\":%s}}", resources);
	cleanup_rewrite struct rewrite rw;
	cleanup_spec struct spec spec;
	int r;

	spec_make(&spec, text);
	rewrite_begin(&rw, &spec);
	r = limits_apply(&rw, req, err);
	if (r != want)
		fail_msg("%s: %d, \"%s\"", text, r, err->msg);
	*ret_changed = rewrite_changes(&rw);
	return r < 0 ? NULL : rewrite_make(&rw);
}

static void applies(void **state)
{
	static const struct row rows[] = {
		{ 0, 0, "{}", "{}" },
		{ 2000, 0, "{}", "{\"cpu\":{\"period\":100000,\"quota\":200000,\"shares\":2048}}" },
		{ 0, 4096, "{}", "{\"memory\":{\"limit\":4096}}" },
		{ 500, 1 << 20, "null",
		  "{\"cpu\":{\"period\":100000,\"quota\":50000,\"shares\":512},"
		  "\"memory\":{\"limit\":1048576}}" },
		/* what the kubelet writes for extended resources: best effort */
		{ 1000, 1 << 20, "{\"memory\":{},\"cpu\":{\"shares\":2,\"period\":100000}}",
		  "{\"memory\":{\"limit\":1048576},\"cpu\":{\"shares\":1024,\"period\":100000,"
		  "\"quota\":100000}}" },
		/* another period is kept, the quota counts in it */
		{ 1500, 0, "{\"cpu\":{\"period\":50000}}",
		  "{\"cpu\":{\"period\":50000,\"quota\":75000,\"shares\":1536}}" },
		/* memory and swap together: what was left for swap alone stays */
		{ 0, 1 << 20, "{\"memory\":{\"limit\":8388608,\"swap\":8388608}}",
		  "{\"memory\":{\"limit\":1048576,\"swap\":1048576}}" },
		{ 0, 1 << 20, "{\"memory\":{\"limit\":8388608,\"swap\":9388608}}",
		  "{\"memory\":{\"limit\":1048576,\"swap\":2048576}}" },
		{ 0, 1 << 20, "{\"memory\":{\"limit\":4096,\"swap\":8192}}",
		  "{\"memory\":{\"limit\":4096,\"swap\":8192}}" },
		{ 0, 1 << 20, "{\"memory\":{\"swap\":-1}}",
		  "{\"memory\":{\"swap\":-1,\"limit\":1048576}}" },
		/* a burst above the quota is an error to the kernel */
		{ 500, 0, "{\"cpu\":{\"period\":100000,\"burst\":90000}}",
		  "{\"cpu\":{\"period\":100000,\"burst\":50000,\"quota\":50000,\"shares\":512}}" },
		/* no period that the kernel takes */
		{ 1000, 0, "{\"cpu\":{\"period\":0}}",
		  "{\"cpu\":{\"period\":100000,\"quota\":100000,\"shares\":1024}}" },
		{ 1000, 0, "{\"cpu\":{\"period\":18446744}}",
		  "{\"cpu\":{\"period\":100000,\"quota\":100000,\"shares\":1024}}" },
		/* a tighter limit stays, a wider one or none goes */
		{ 1000, 100,
		  "{\"cpu\":{\"period\":100000,\"quota\":7000},\"memory\":{\"limit\":50}}",
		  "{\"cpu\":{\"period\":100000,\"quota\":7000,\"shares\":1024},"
		  "\"memory\":{\"limit\":50}}" },
		{ 1000, 100,
		  "{\"cpu\":{\"period\":100000,\"quota\":700000},\"memory\":{\"limit\":500}}",
		  "{\"cpu\":{\"period\":100000,\"quota\":100000,\"shares\":1024},"
		  "\"memory\":{\"limit\":100}}" },
		{ 1000, 100, "{\"cpu\":{\"period\":100000,\"quota\":-1},\"memory\":{\"limit\":-1}}",
		  "{\"cpu\":{\"period\":100000,\"quota\":100000,\"shares\":1024},"
		  "\"memory\":{\"limit\":100}}" },
		{ 1000, 100, "{\"cpu\":{\"quota\":0},\"memory\":{\"limit\":0}}",
		  "{\"cpu\":{\"quota\":100000,\"period\":100000,\"shares\":1024},"
		  "\"memory\":{\"limit\":100}}" },
		/* the kernel's bounds */
		{ 1, 0, "{}", "{\"cpu\":{\"period\":100000,\"quota\":1000,\"shares\":2}}" },
		{ 1000000, 0, "{}",
		  "{\"cpu\":{\"period\":100000,\"quota\":100000000,\"shares\":262144}}" },
		/* other keys and their bytes stay */
		{ 1000, 0, "{\"cpu\":{ \"cpus\":\"0-1\" ,\"shares\" : 1024},\"pids\":{}}",
		  "{\"cpu\":{ \"cpus\":\"0-1\" ,\"shares\" : 1024, \"period\": 100000, "
		  "\"quota\": 100000},\"pids\":{}}" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		const struct request req = { .vcpu_milli = rows[i].vcpu,
					     .vmem_bytes = rows[i].vmem };
		struct gs_err err = { 0 };
		bool changed;
		cleanup_free char *want =
			gs_asprintf("{\"linux\":{\"resources\":%s}}", rows[i].after);
		cleanup_free char *got = limited(rows[i].before, &req, 0, &changed, &err);
		cleanup_free char *again = NULL;

		if (strcmp(got, want) != 0)
			fail_msg("%s became %s, not %s", rows[i].before, got, want);
		/* our own output is left as it is */
		assert_int_equal(changed, strcmp(rows[i].before, rows[i].after) != 0);
		again = limited(rows[i].after, &req, 0, &changed, &err);
		if (changed || strcmp(again, want) != 0)
			fail_msg("%s became %s", want, again);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *resources;
		int code;
		const char *words;
	} rows[] = {
		{ "{\"cpu\":5}", EINVAL, "linux.resources: \"cpu\" is not an object" },
		{ "{\"cpu\":[]}", EINVAL, "\"cpu\" is not an object" },
		{ "{\"cpu\":{\"quota\":\"7\"}}", EINVAL, "linux.resources.cpu.quota" },
		{ "{\"cpu\":{\"quota\":1e3}}", EINVAL, "linux.resources.cpu.quota" },
		{ "{\"cpu\":{\"period\":18446744073709551615}}", EINVAL, "cpu.period" },
		{ "{\"cpu\":{\"shares\":{}}}", EINVAL, "cpu.shares" },
		{ "{\"cpu\":{\"quota\":1,\"quota\":2}}", EEXIST, "\"quota\" stands twice" },
		{ "{\"cpu\":{},\"CPU\":{}}", EEXIST, "case" },
		{ "{\"memory\":\"\"}", EINVAL, "\"memory\" is not an object" },
		{ "{\"memory\":{\"limit\":1.0}}", EINVAL, "linux.resources.memory.limit" },
		{ "{\"memory\":{\"limit\":1,\"Limit\":2}}", EEXIST, "case" },
	};
	const struct request req = { .vcpu_milli = 1000, .vmem_bytes = 1000 };
	const struct request huge = { .vcpu_milli = INT64_MAX };
	struct gs_err err = { 0 };
	bool changed;

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		(void)limited(rows[i].resources, &req, -rows[i].code, &changed, &err);
		expect_words(&err, rows[i].words, NULL);
	}
	(void)limited("{}", &huge, -ERANGE, &changed, &err);
	expect_words(&err, "vcpu", NULL);
}

/* Nothing was asked for: odd values of the spec are nobody's affair. */
static void asks_only_where_it_must(void **state)
{
	const struct request req = { .vmem_bytes = 5 };
	struct gs_err err = { 0 };
	bool changed;
	cleanup_free char *got = limited("{\"cpu\":5}", &req, 0, &changed, &err);

	assert_string_equal(got,
			    "{\"linux\":{\"resources\":{\"cpu\":5,\"memory\":{\"limit\":5}}}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applies),
		cmocka_unit_test(refuses),
		cmocka_unit_test(asks_only_where_it_must),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
