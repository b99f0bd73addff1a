// SPDX-License-Identifier: Apache-2.0
/* Grants and bindings. Input: a grant's text, and behind a NUL byte that of its binding. */
#include <errno.h>

#include "common/grant.h"
#include "common/grant_dir.h"
#include "gpushare/grant.h"
#include "tests/fuzz/fuzz.h"

#define NAME "0123456789abcdef0123456789abcdef"

/* The name is a secret, of which six characters may be told - unless the file has it. */
static bool secret;

static void check_refusal(int r, const struct gs_err *err)
{
	check_error(r, err);
	CHECK(!secret || !strstr(err->msg, "0123456"));
}

static void grant(const char *text)
{
	struct gs_grant one = { 0 }, two = { 0 };
	struct gs_buf first = { 0 }, second = { 0 };
	struct gs_err err = { 0 };
	int r = grant_parse(NAME, text, strlen(text), &one, &err);

	if (r < 0) {
		check_refusal(r, &err);
		CHECK(!one.name[0] && !one.sources);
		return;
	}
	CHECK(strcmp(one.name, NAME) == 0);
	CHECK(one.kind == GS_GRANT_SHARE ? one.n_sources && !one.lease_boot_id :
					   one.lease_boot_id != NULL);
	for (size_t i = 0; i < one.n_sources; i++)
		CHECK(gs_grant_has_source(&one, &one.sources[i]));
	r = gs_grant_in_force(&one, &err);
	CHECK(r == 0 || r == -ECANCELED);
	/* nobody can have written a lease of this very boot into the input */
	CHECK(r < 0 || (one.kind == GS_GRANT_SHARE && !one.revoked));
	grant_format(&one, &first);
	CHECK(grant_parse(NAME, first.data, first.len, &two, &err) == 0);
	grant_format(&two, &second);
	CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	gs_grant_free(&one);
	gs_grant_free(&two);
	gs_buf_free(&first);
	gs_buf_free(&second);
}

static void binding(const char *text)
{
	static const struct gs_grant_user users[] = {
		{ .pod_uid = "uid", .container = "main", .container_id = "c1" },
		{ .pod_uid = "uid", .container = "side", .container_id = "c1" },
		{ .container_id = "c1" },
		{ .container_id = "c2" },
	};
	unsigned int n = 0;

	fuzz_file("grants/" NAME ".bound", text, strlen(text));
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		struct gs_err err = { 0 };
		int r = gs_grant_bound(fuzz_dir(), NAME, &users[i], &err);

		if (r < 0)
			check_refusal(r, &err);
		n += r == 0;
	}
	CHECK(n <= 1); /* one user at most */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	char *text = next_part(&data, &size, '\0');
	char *bound = next_part(&data, &size, '\0');

	if (!ready) {
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/grants", fuzz_dir());
		CHECK(mkdir(path, 0700) == 0);
		ready = true;
	}
	secret = !strstr(text, "0123456") && !strstr(bound, "0123456");
	grant(text);
	if (*bound)
		binding(bound);
	free(text);
	free(bound);
	return 0;
}
