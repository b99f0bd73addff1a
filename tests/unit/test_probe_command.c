// SPDX-License-Identifier: Apache-2.0
/* Cards and load from commands: also those that hang, print rubbish or print without end. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/tmpdir.h"

struct scene {
	char *root;
	struct probe probe;
};

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	s->root = fakecards_begin();
	s->probe.command_ms = 5000;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	probe_free(&s->probe);
	fakecards_end(s->root);
	free(s);
	return 0;
}

/* A program <root>/@name; gives its path, in tmpdir's buffers. */
static const char *script(struct scene *s, const char *name, const char *body)
{
	cleanup_free char *text = gs_asprintf("#!/bin/sh\n%s", body);

	tmpdir_write(s->root, name, text);
	assert_int_equal(chmod(tmpdir_path(s->root, name), 0755), 0);
	return tmpdir_path(s->root, name);
}

static int run(struct scene *s, const char *program, unsigned int ms, struct gs_buf *out,
	       struct gs_err *err)
{
	cleanup_strv struct gs_strv argv = { 0 };

	gs_strv_add(&argv, program);
	gs_strv_add(&argv, "a b");
	return probe_run(&argv, ms, out, err);
}

static void runs_without_a_shell(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf out = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(setenv("SECRET", "1", 1), 0);
	assert_int_equal(run(s, script(s, "x", "echo \"$1\"; echo err >&2; env; cat\n"), 5000, &out,
			     &err),
			 0);
	assert_true(strncmp(out.data, "a b\n", 4) == 0);
	assert_null(strstr(out.data, "SECRET"));
	assert_null(strstr(out.data, "err"));
	assert_non_null(strstr(out.data, "PATH=/"));
	assert_int_equal(unsetenv("SECRET"), 0);
}

static void failures_are_told(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf out = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(run(s, script(s, "x", "exit 3\n"), 5000, &out, &err), -EIO);
	assert_non_null(strstr(err.msg, "/x ended with status 3"));
	assert_int_equal(run(s, script(s, "x", "kill -9 $$\n"), 5000, &out, &err), -EIO);
	assert_non_null(strstr(err.msg, "/x died of signal 9"));
	assert_int_equal(run(s, "/nowhere/x", 5000, &out, &err), -ENOENT);
	tmpdir_write(s->root, "x", "no program");
	assert_int_equal(run(s, tmpdir_path(s->root, "x"), 5000, &out, &err), -EIO);
}

/* An agent in a container: the host's program runs as on the host. */
static void programs_of_the_host(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf out = { 0 };
	cleanup_strv struct gs_strv argv = { 0 };
	struct gs_err err = { 0 };

	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	gs_strv_add(&argv, "/usr/local/bin/tool");
	gs_strv_add(&argv, "/only-here");
	tmpdir_write(s->root, "only-here", "");
	fakecards_copy(s->root, "opt/tool-1.0", "probe");
	fakecards_link(s->root, "usr/local/bin/tool", "/opt/tool-1.0");
	assert_int_equal(probe_run(&argv, 5000, &out, &err), -ENOENT);
	assert_int_equal(setenv(PROBE_HOST_ENV, s->root, 1), 0);
	assert_int_equal(probe_run(&argv, 5000, &out, &err), 0);
	assert_string_equal(out.data, "/only-here OK\n");
	/* One that the host lacks is our own. */
	gs_strv_free(&argv);
	gs_buf_free(&out);
	gs_strv_add(&argv, "/bin/pwd");
	assert_int_equal(probe_run(&argv, 5000, &out, &err), 0);
	assert_int_equal(unsetenv(PROBE_HOST_ENV), 0);
}

static bool alive(struct scene *s, const char *pid_file)
{
	cleanup_free char *text = NULL;

	for (int i = 0; i < 100; i++) {
		uint64_t ticks;

		free(text);
		text = tmpdir_read(s->root, pid_file);
		/* A zombie is dead: init may take its time. */
		if (gs_proc_start(atoi(text), &ticks, NULL) < 0)
			return false;
		(void)usleep(10000);
	}
	return true;
}

static void one_that_hangs_is_killed_with_all_it_started(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf out = { 0 };
	struct gs_err err = { 0 };
	uint64_t start = gs_boottime_ms(), took;
	cleanup_free char *body = gs_asprintf("sleep 100 &\necho $! >%s/pid\nwait\n", s->root);

	assert_int_equal(run(s, script(s, "x", body), 300, &out, &err), -ETIMEDOUT);
	took = gs_boottime_ms() - start;
	assert_true(took >= 300 && took < 4000);
	assert_non_null(strstr(err.msg, "/x takes too long"));
	assert_false(alive(s, "pid"));
	/* It closes its output and goes on. */
	start = gs_boottime_ms();
	assert_int_equal(run(s, script(s, "x", "exec >&-\nsleep 100\n"), 300, &out, &err),
			 -ETIMEDOUT);
	assert_true(gs_boottime_ms() - start < 4000);
}

static void output_is_bounded(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf out = { 0 };
	struct gs_err err = { 0 };

	assert_int_equal(run(s, script(s, "x", "exec cat /dev/zero\n"), 5000, &out, &err), -EFBIG);
	assert_non_null(strstr(err.msg, "/x prints more than 262144 bytes"));
	assert_true(out.len < 300000);
}

static const char entry[] =
	"{\"name\":\"acme\",\"title\":\"x\","
	"\"nodes\":[{\"glob\":\"/dev/acme*\",\"kind\":\"card\"}],"
	"\"inventory\":{\"source\":\"command\",\"argv\":[\"%s/list\"],\"skip_lines\":1,%s"
	"\"columns\":[\"index\",\"uuid\",\"pci\"],"
	"\"nodes\":[\"/dev/acme{index}\"],\"id\":\"{uuid}\","
	"\"select\":\"{index}\"},"
	"\"load\":{\"source\":\"command\","
	"\"busy\":{\"argv\":[\"%s/load\",\"-i\",\"{index}\"],\"after\":\"Usage(%%)\"},"
	"\"memory_used\":{\"argv\":[\"%s/load\",\"-i\",\"{index}\"],\"after\":\"Used\"},"
	"\"memory_total\":{\"argv\":[\"%s/load\",\"-i\",\"{index}\"],"
	"\"after\":\"HBM Capacity(MB)\"}}}";

static void tell(struct scene *s, const char *separator)
{
	cleanup_free char *text = gs_asprintf(entry, s->root, separator, s->root, s->root, s->root);

	fakecards_tell(&s->probe, text);
}

static json_t *cards(struct scene *s)
{
	return fakecards_ask(&s->probe, "{\"seq\":1,\"op\":\"cards\"}");
}

static json_t *load(struct scene *s)
{
	return fakecards_ask(&s->probe, "{\"seq\":2,\"op\":\"load\",\"processes\":\"free\"}");
}

static void cards_of_a_list(void **state)
{
	struct scene *s = *state;
	json_t *a;

	fakecards_link(s->root, "dev/acme1", "/dev/null");
	(void)script(s, "list",
		     "printf 'No Uuid Pci\\n 0\\tA-0  0000:03:00.0\\r\\n\\n1 A-1 - trailing\\n'\n");
	tell(s, "");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	assert_string_equal(fakecards_text(a, "cards.0.id"), "A-0");
	assert_string_equal(fakecards_text(a, "cards.0.pci"), "0000:03:00.0");
	assert_int_equal(json_array_size(fakecards_at(a, "cards.0.nodes")), 0);
	assert_int_equal((int)fakecards_number(a, "cards.1.index"), 1);
	assert_string_equal(fakecards_text(a, "cards.1.nodes.0.path"), "/dev/acme1");
	json_decref(a);

	(void)script(s, "list", "printf 'head\\n0; A 0 ;\\n'\n");
	tell(s, "\"separator\":\";\",");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_string_equal(fakecards_text(a, "cards.0.id"), "A 0");
	assert_null(fakecards_at(a, "cards.0.pci"));
	json_decref(a);
}

static void rubbish_in_a_list(void **state)
{
	struct scene *s = *state;
	json_t *a;

	tell(s, "");
	/* There is no such program, and no such driver. */
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 0);
	json_decref(a);
	(void)script(s, "list", "printf 'head\\n0 A-0 x\\ndriver error!\\n'\n");
	a = cards(s);
	assert_non_null(
		strstr(fakecards_text(a, "error"), "a line of 2 columns: \"driver error!\""));
	assert_null(fakecards_at(a, "cards"));
	json_decref(a);
	(void)script(s, "list", "head -c 1000 /dev/urandom; printf '\\0'\n");
	a = cards(s);
	assert_non_null(fakecards_text(a, "error"));
	json_decref(a);
	(void)script(s, "list", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i u$i p; done\n");
	a = cards(s);
	assert_non_null(strstr(fakecards_text(a, "error"), "more than 1024 cards"));
	json_decref(a);
}

static void numbers_in_an_output(void **state)
{
	struct scene *s = *state;
	cleanup_free char *runs = NULL;
	json_t *a;

	(void)script(s, "list", "printf 'head\\n0 A-0 x\\n'\n");
	(void)script(
		s, "load",
		"echo x >>$(dirname $0)/runs\n"
		"printf '| HBM Capacity(MB)  : 65536 |\\n| Usage(%%)  | 42.5 |\\nUsed=3KiB\\n'\n");
	tell(s, "");
	a = cards(s);
	json_decref(a);
	a = load(s);
	assert_null(fakecards_text(a, "loads.0.error"));
	assert_true(fakecards_number(a, "loads.0.busy") == 0.425);
	assert_true(fakecards_number(a, "loads.0.memory_total") == 68719476736.0);
	assert_true(fakecards_number(a, "loads.0.memory_used") == 3072);
	json_decref(a);
	/* Three numbers, one run. */
	runs = tmpdir_read(s->root, "runs");
	assert_string_equal(runs, "x\n");

	(void)script(s, "load", "printf 'HBM Capacity(MB): 1 Used 2 Usage(%%): NA\\n'\n");
	a = load(s);
	assert_non_null(
		strstr(fakecards_text(a, "loads.0.error"), "no number behind \"Usage(%)\""));
	json_decref(a);
	(void)script(s, "load", "echo hello\n");
	a = load(s);
	assert_non_null(strstr(fakecards_text(a, "loads.0.error"), "no \"Used\" in its output"));
	json_decref(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(runs_without_a_shell), T(failures_are_told),
		T(programs_of_the_host), T(one_that_hangs_is_killed_with_all_it_started),
		T(output_is_bounded),	 T(cards_of_a_list),
		T(rubbish_in_a_list),	 T(numbers_in_an_output),
	};

	return cmocka_run_group_tests_name("probe_command", tests, NULL, NULL);
}
