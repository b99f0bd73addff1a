// SPDX-License-Identifier: Apache-2.0
/*
 * Records of the registry and of the hook. What is read is written and read again: the same
 * record, and a text that does not change any more.
 */
#include <errno.h>

#include "common/record.h"
#include "tests/fuzz/fuzz.h"

#define ID "c1"

static void record(const char *text, size_t size)
{
	struct gs_record one = { 0 }, two = { 0 };
	struct gs_buf first = { 0 }, second = { 0 };
	struct gs_err err = { 0 };
	int r = gs_record_parse("file", ID, text, size, &one, &err);

	if (r < 0) {
		check_error(r, &err);
		CHECK(r == -EINVAL && strncmp(err.msg, "file", 4) == 0 && !one.id);
		return;
	}
	CHECK(strcmp(one.id, ID) == 0 && one.bundle && one.spec);
	CHECK(strlen(one.spec) == one.spec_len);
	for (size_t i = 0; i < one.sources.n; i++)
		CHECK(gs_id_valid(one.sources.v[i]));
	CHECK(gs_record_format(&one, &first, &err) == 0);
	r = gs_record_parse("file", ID, first.data, first.len, &two, &err);
	CHECK(r == 0);
	CHECK(one.role == two.role && one.start_ticks == two.start_ticks &&
	      one.deadline_ms == two.deadline_ms && one.shared_pid == two.shared_pid &&
	      one.sources.n == two.sources.n && strcmp(one.spec, two.spec) == 0 &&
	      gs_identity_equal(&one.identity, &two.identity));
	CHECK(gs_record_format(&two, &second, &err) == 0);
	CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	gs_record_free(&one);
	gs_record_free(&two);
	gs_buf_free(&first);
	gs_buf_free(&second);
}

static void hook_record(const char *text, size_t size)
{
	struct gs_hook_record one = { 0 }, two = { 0 };
	struct gs_buf first = { 0 };
	struct gs_err err = { 0 };
	int r = gs_hook_record_parse("file", ID, text, size, &one, &err);

	if (r < 0) {
		check_error(r, &err);
		CHECK(r == -EINVAL);
		return;
	}
	CHECK(one.pid > 0);
	if (!one.cgroup)
		one.cgroup = gs_strdup("");
	CHECK(gs_hook_record_format(ID, &one, &first, &err) == 0);
	CHECK(gs_hook_record_parse("file", ID, first.data, first.len, &two, &err) == 0);
	CHECK(one.pid == two.pid && one.start_ticks == two.start_ticks &&
	      one.pid_ns == two.pid_ns && strcmp(one.cgroup, two.cgroup) == 0);
	gs_hook_record_free(&one);
	gs_hook_record_free(&two);
	gs_buf_free(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = gs_malloc(size);

	memcpy(text, data, size);
	record(text, size);
	hook_record(text, size);
	free(text);
	return 0;
}
