// SPDX-License-Identifier: Apache-2.0
/* agent/hooker.c: nodes are opened by children, whatever those do. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/hooker.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "tests/unit/loop.h"

#define DEADLINE_MS 3000

struct scene {
	uv_loop_t loop;
	struct spawner *spawner;
	struct hooker *hooker;
	char dir[64], probe[96];
	unsigned int added, refused, again;
	struct gs_err err; /* of the last refusal */
	char path[64];
};

static void added(void *arg)
{
	struct scene *s = arg;

	s->added++;
	uv_stop(&s->loop);
}

static void refused(const char *path, const struct gs_err *err, void *arg)
{
	struct scene *s = arg;

	s->refused++;
	s->err = *err;
	(void)snprintf(s->path, sizeof(s->path), "%s", path);
	uv_stop(&s->loop);
}

static void again(void *arg)
{
	struct scene *s = arg;

	s->again++;
	uv_stop(&s->loop);
}

/* Stands for gpushare-probe: a shell script whose arguments are hook, path, number, ... */
static void probe_is(struct scene *s, const char *script)
{
	FILE *f = fopen(s->probe, "we");

	assert_non_null(f);
	assert_true(fprintf(f, "#!/bin/sh\n%s\n", script) > 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(s->probe, 0755), 0);
}

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));
	const struct hooker_ops ops = {
		.added = added, .refused = refused, .again = again, .arg = s
	};
	struct gs_err err = { 0 };

	(void)strcpy(s->dir, "/tmp/test_hooker.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	(void)snprintf(s->probe, sizeof(s->probe), "%s/probe", s->dir);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	if (spawner_start(&s->spawner, &err) < 0 || spawner_attach(s->spawner, &s->loop, &err) < 0)
		fail_msg("%s", err.msg);
	s->hooker = hooker_new(&s->loop, s->spawner, s->probe, DEADLINE_MS, &ops);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	hooker_free(s->hooker);
	spawner_free(s->spawner);
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	(void)unlink(s->probe);
	assert_int_equal(rmdir(s->dir), 0);
	free(s);
	return 0;
}

/* Runs the loop until something is told, at most 20 s. */
static void wait_told(struct scene *s)
{
	(void)loop_run(&s->loop, 20000);
}

static const struct hook_wish wish = { .path = "/dev/x0",
				       .dev = 77,
				       .vendor = "x",
				       .passive = { 5, 6 },
				       .n_passive = 2 };

static void what_the_child_is_told(void **state)
{
	struct scene *s = *state;

	probe_is(s, "[ \"$*\" = 'hook /dev/x0 77 x 5,6' ] && echo 0 || echo \"-5 $*\"");
	hooker_want(s->hooker, &wish);
	hooker_want(s->hooker, &wish); /* it is at it */
	wait_told(s);
	if (s->refused)
		fail_msg("%s", s->err.msg);
	assert_int_equal(s->added, 1);
}

static void what_it_is_told_of_mappings(void **state)
{
	struct scene *s = *state;
	struct hook_wish other = wish;

	other.revocable = true;
	probe_is(s, "[ \"$*\" = 'hook /dev/x0 77 x 5,6 revocable' ] && echo 0 || echo \"-5 $*\"");
	hooker_want(s->hooker, &other);
	wait_told(s);
	other.n_passive = 0;
	probe_is(s, "[ $# = 6 ] && [ -z \"$5\" ] && [ $6 = revocable ] && echo 0");
	hooker_want(s->hooker, &other);
	wait_told(s);
	if (s->refused)
		fail_msg("%s", s->err.msg);
	assert_int_equal(s->added, 2);
}

static void refusals_and_pauses(void **state)
{
	struct scene *s = *state;
	uint64_t begin;

	probe_is(s, "echo '-16 another has it'");
	hooker_want(s->hooker, &wish);
	wait_told(s);
	assert_int_equal(s->refused, 1);
	assert_int_equal(s->err.code, EBUSY);
	assert_string_equal(s->err.msg, "another has it");
	assert_string_equal(s->path, "/dev/x0");
	begin = gs_boottime_ms();
	hooker_want(s->hooker, &wish); /* too early */
	wait_told(s);
	assert_int_equal(s->again, 1);
	assert_true(gs_boottime_ms() - begin >= 800);
	/* the same again is not told, and the pause is longer */
	begin = gs_boottime_ms();
	hooker_want(s->hooker, &wish);
	wait_told(s);
	assert_int_equal(s->refused, 1);
	assert_int_equal(s->again, 2);
	assert_true(gs_boottime_ms() - begin >= 1800);
	/* something changed */
	probe_is(s, "echo '-2 gone'");
	hooker_want(s->hooker, &wish);
	wait_told(s);
	assert_int_equal(s->refused, 2);
	probe_is(s, "echo 0");
	begin = gs_boottime_ms();
	hooker_forgive(s->hooker);
	hooker_want(s->hooker, &wish);
	wait_told(s);
	assert_int_equal(s->added, 1);
	assert_true(gs_boottime_ms() - begin < 3000);
}

/* A driver that sleeps in open: others go on, and it is tried anew when that one has ended. */
static void one_that_hangs(void **state)
{
	struct scene *s = *state;
	struct hook_wish other = wish;

	probe_is(s, "[ $3 = 78 ] && echo 0 || exec sleep 100");
	hooker_want(s->hooker, &wish);
	other.path = "/dev/x1";
	other.dev = 78;
	hooker_want(s->hooker, &other);
	wait_told(s);
	assert_int_equal(s->added, 1);
	wait_told(s);
	assert_int_equal(s->refused, 1);
	assert_int_equal(s->err.code, ETIMEDOUT);
	assert_string_equal(s->path, "/dev/x0");
	wait_told(s);
	assert_int_equal(s->again, 1);
	assert_int_equal(s->refused, 1);
}

static void rubbish(void **state)
{
	static const char *const scripts[] = {
		"exit 0",
		"exit 3",
		"echo hello",
		"echo 5",
		"printf -- '-16 no newline'",
		"echo -99999 x",
		"kill -SEGV $$",
		"head -c 9999 /dev/zero",
		"exec 1>&-",
		"echo '-13 '; exit 1",
	};
	struct scene *s = *state;

	for (size_t i = 0; i < GS_ARRAY_SIZE(scripts); i++) {
		struct hook_wish other = wish;

		other.dev = (uint32_t)(100 + i); /* each is another's first refusal */
		probe_is(s, scripts[i]);
		hooker_want(s->hooker, &other);
		wait_told(s);
		if (s->refused != i + 1 || s->err.code != EIO)
			fail_msg("%s: refused %u, %s", scripts[i], s->refused, s->err.msg);
	}
	/* no such program */
	assert_int_equal(unlink(s->probe), 0);
	hooker_want(s->hooker, &wish);
	wait_told(s);
	assert_int_equal(s->refused, GS_ARRAY_SIZE(scripts) + 1);
}

static void freed_while_at_it(void **state)
{
	struct scene *s = *state;

	probe_is(s, "exec sleep 100");
	hooker_want(s->hooker, &wish);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_child_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(what_it_is_told_of_mappings, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals_and_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(rubbish, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_while_at_it, setup, teardown),
	};

	return cmocka_run_group_tests_name("hooker", tests, NULL, NULL);
}
