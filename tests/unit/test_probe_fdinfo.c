// SPDX-License-Identifier: Apache-2.0
/* Who uses a card, and how much, out of /proc: open files and DRM's fdinfo. */
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

#include "agent/probe_scan.h"
#include "agent/probe_share.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/tmpdir.h"

struct scene {
	char *root;
	struct probe probe;
};

static const char entry[] =
	"{\"name\":\"drm\",\"title\":\"x\",\"nodes\":[{\"glob\":\"/dev/dri/*\",\"kind\":\"card\"}],"
	"\"inventory\":{\"source\":\"files\",\"cards\":\"/sys/class/fakegpu/*\","
	"\"nodes\":[\"/dev/fakegpu{index}\"],\"id\":\"{index}\"},"
	"\"load\":{\"source\":\"fdinfo\",\"engines\":[\"render\",\"rcs\",\"copy\"],"
	"\"memory\":[\"vram*\",\"local*\"]}}";

static size_t pod_files, free_files, answer_processes;

/* A /proc of our own, with two cards whose nodes are /dev/full and /dev/zero. */
static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	pod_files = probe_scan_pod_files;
	free_files = probe_scan_free_files;
	answer_processes = probe_answer_processes;
	s->root = fakecards_begin();
	fakecards_add(s->root, 0, "/dev/full");
	fakecards_add(s->root, 1, "/dev/zero");
	assert_int_equal(unlink(tmpdir_path(s->root, "proc")), 0);
	tmpdir_write(s->root, "proc/devices", "");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	probe_free(&s->probe);
	fakecards_end(s->root);
	probe_agent = 0;
	probe_scan_pod_files = pod_files;
	probe_scan_free_files = free_files;
	probe_answer_processes = answer_processes;
	free(s);
	return 0;
}

static void add_file(struct scene *s, int pid, int fd, const char *to, const char *info)
{
	cleanup_free char *link = gs_asprintf("proc/%d/fd/%d", pid, fd);
	cleanup_free char *text = gs_asprintf("proc/%d/fdinfo/%d", pid, fd);

	fakecards_link(s->root, link, to);
	tmpdir_write(s->root, text, info);
}

static json_t *ask(struct scene *s, const char *request)
{
	json_t *a = fakecards_ask(&s->probe, request);

	assert_null(fakecards_text(a, "error"));
	return a;
}

static void start(struct scene *s, const char *text)
{
	fakecards_tell(&s->probe, text);
	json_decref(ask(s, "{\"seq\":1,\"op\":\"cards\"}"));
	assert_int_equal(s->probe.n, 2);
}

static json_t *load(struct scene *s)
{
	return ask(s, "{\"seq\":2,\"op\":\"load\"}");
}

/* How busy a process is, as told; -1: not told. */
static double busy_of(json_t *a, int card, int pid)
{
	cleanup_free char *path = gs_asprintf("loads.%d.processes", card);
	const json_t *list = fakecards_at(a, path);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		const json_t *busy = json_object_get(one, "busy");

		if (json_integer_value(json_object_get(one, "pid")) == pid)
			return busy ? json_number_value(busy) : -1;
	}
	fail_msg("process %d is not there", pid);
	return -1;
}

static void nobody_is_idle(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL;

	/* Files of others, what is no process, and a kernel thread. */
	add_file(s, 10, 0, "/dev/null", "");
	add_file(s, 10, 1, "/etc/passwd", "");
	add_file(s, 10, 2, "socket:[123]", "");
	tmpdir_write(s->root, "proc/11/fd/.keep", "");
	tmpdir_write(s->root, "proc/sys/fd/1", "");
	start(s, entry);
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 0);
	assert_int_equal((int)fakecards_number(a, "loads.0.memory_used"), 0);
	assert_null(fakecards_at(a, "loads.0.memory_total"));
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 0);
}

static void clients_and_engines(void **state)
{
	struct scene *s = *state;
	json_t *a;

	add_file(s, 20, 4, "/dev/full",
		 "pos:\t0\ndrm-driver:\tx\ndrm-client-id:\t7\ndrm-engine-render:\t1000 ns\n"
		 "drm-engine-video:\t5 ns\ndrm-memory-vram0: 100 KiB\ndrm-total-vram0:\t200 KiB\n"
		 "drm-resident-vram0:\t50 KiB\ndrm-memory-gtt: 9 MiB\n");
	/* The same client twice, and in a child of its process. */
	add_file(s, 20, 5, "/dev/full",
		 "drm-client-id: 7\ndrm-engine-render: 1000 ns\ndrm-resident-vram0: 50 KiB\n");
	add_file(s, 21, 4, "/dev/full",
		 "drm-client-id: 7\ndrm-engine-render: 1000 ns\ndrm-resident-vram0: 50 KiB\n");
	/* Another client of the same process; and one of the other card with the same number. */
	add_file(s, 21, 6, "/dev/full",
		 "drm-client-id: 8\ndrm-engine-render: 0 ns\ndrm-total-local0: 1 MiB\n");
	add_file(s, 22, 6, "/dev/zero", "drm-client-id: 7\ndrm-engine-render: 9 ns\n");
	start(s, entry);
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 0);
	assert_int_equal((int)fakecards_number(a, "loads.0.memory_used"), (50 << 10) + (1 << 20));
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 2);
	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *pid = gs_asprintf("loads.0.processes.%zu.pid", i);
		cleanup_free char *memory = gs_asprintf("loads.0.processes.%zu.memory", i);

		if ((int)fakecards_number(a, pid) == 20)
			assert_int_equal((int)fakecards_number(a, memory), 50 << 10);
		else
			assert_int_equal((int)fakecards_number(a, memory), (50 << 10) + (1 << 20));
	}
	assert_int_equal(json_array_size(fakecards_at(a, "loads.1.processes")), 1);
	json_decref(a);

	/* It worked for longer than the time that has passed; an engine that does not count did. */
	add_file(s, 20, 4, "/dev/full",
		 "drm-client-id:\t7\ndrm-engine-render:\t3600000000000 ns\n");
	add_file(s, 20, 5, "/dev/full", "drm-client-id: 7\ndrm-engine-render: 3600000000000 ns\n");
	add_file(s, 21, 4, "/dev/full", "drm-client-id: 7\ndrm-engine-render: 3600000000000 ns\n");
	add_file(s, 22, 6, "/dev/zero",
		 "drm-client-id: 7\ndrm-engine-render: 9 ns\ndrm-engine-video: 99999999999 ns\n");
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 1);
	assert_true(fakecards_number(a, "loads.1.busy") == 0);
	/* Of two processes that share a client either may have done it. */
	assert_true(busy_of(a, 0, 20) == 1 && busy_of(a, 0, 21) == 1);
	assert_true(busy_of(a, 1, 22) == 0);
	assert_true(fakecards_number(a, "loads.0.busy_since_ms") > 0);
	json_decref(a);
	/* And not since. */
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 0);
	assert_true(busy_of(a, 0, 20) == 0 && busy_of(a, 0, 21) == 0);
	json_decref(a);
	/* The other client's work is its process's alone. */
	add_file(s, 21, 6, "/dev/full", "drm-client-id: 8\ndrm-engine-render: 1 ns\n");
	a = load(s);
	assert_true(busy_of(a, 0, 20) == 0);
	assert_true(busy_of(a, 0, 21) > 0 && busy_of(a, 0, 21) < 0.1);
	json_decref(a);
}

static void part_of_the_time(void **state)
{
	struct scene *s = *state;
	json_t *a;

	add_file(s, 20, 4, "/dev/full",
		 "drm-client-id: 1\ndrm-cycles-rcs: 1000\ndrm-total-cycles-rcs: 100000\n");
	add_file(s, 20, 5, "/dev/zero",
		 "drm-client-id: 1\ndrm-engine-copy: 0 ns\ndrm-engine-capacity-copy: 2\n");
	start(s, entry);
	json_decref(load(s));
	add_file(s, 20, 4, "/dev/full",
		 "drm-client-id: 1\ndrm-cycles-rcs: 3500\ndrm-total-cycles-rcs: 110000\n");
	(void)usleep(200000);
	/* Two of its kind: 200 ms of both are half of what they could do, or a bit less. */
	add_file(s, 20, 5, "/dev/zero",
		 "drm-client-id: 1\ndrm-engine-copy: 200000000 ns\ndrm-engine-capacity-copy: 2\n");
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 0.25);
	assert_true(fakecards_number(a, "loads.1.busy") > 0.05);
	assert_true(fakecards_number(a, "loads.1.busy") <= 0.5);
	json_decref(a);
	/* A client that came since then and has worked: by what clock is not known. */
	add_file(s, 23, 4, "/dev/full",
		 "drm-client-id: 2\ndrm-cycles-rcs: 1\ndrm-total-cycles-rcs: 110001\n");
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 1);
	json_decref(a);
}

static void a_driver_that_tells_nothing(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL;

	add_file(s, 20, 4, "/dev/full", "pos: 0\nflags: 02\n");
	start(s, entry);
	a = load(s);
	assert_null(fakecards_at(a, "loads.0.busy"));
	assert_null(fakecards_at(a, "loads.0.memory_used"));
	assert_int_equal((int)fakecards_number(a, "loads.0.processes.0.pid"), 20);
	assert_true(busy_of(a, 0, 20) == -1);
	assert_true(fakecards_number(a, "loads.1.busy") == 0);
}

static void processes_of_a_card_of_files(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text =
		gs_asprintf("%.*s\"load\":{\"source\":\"files\",\"busy\":\"load\","
			    "\"processes\":\"fdinfo\"}}",
			    (int)(strstr(entry, "\"load\"") - entry), entry);
	json_t *a;

	add_file(s, 20, 4, "/dev/full", "drm-client-id: 1\ndrm-memory-vram: 4 KiB\n");
	fakecards_set(s->root, 0, "load", "50\n");
	start(s, text);
	a = load(s);
	assert_true(fakecards_number(a, "loads.0.busy") == 0.5);
	assert_null(fakecards_at(a, "loads.0.memory_used"));
	assert_int_equal((int)fakecards_number(a, "loads.0.processes.0.memory"), 4096);
	assert_true(busy_of(a, 0, 20) == -1); /* a first reading has nothing to compare with */
	json_decref(a);
	add_file(s, 20, 4, "/dev/full", "drm-client-id: 1\ndrm-engine-render: 5000 ns\n");
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	assert_true(busy_of(a, 0, 20) > 0);
	json_decref(a);
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"card\":\"0\",\"processes\":\"free\"}");
	assert_null(fakecards_at(a, "loads.0.processes"));
	json_decref(a);
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"card\":\"1\",\"processes\":\"now\"}");
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 0);
	json_decref(a);
}

static void real_processes(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL, *b = NULL;
	pid_t pid, agent;

	assert_int_equal(unlink(tmpdir_path(s->root, "proc/devices")), 0);
	assert_int_equal(rmdir(tmpdir_path(s->root, "proc")), 0);
	fakecards_link(s->root, "proc", "/proc");
	pid = fakecards_holder("/dev/full");
	agent = fakecards_holder("/dev/full");
	probe_agent = agent;
	fakecards_fakegpu(s->root);
	start(s, entry);
	a = load(s);
	fakecards_kill(agent);
	/* Neither the agent nor ourselves. */
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 1);
	assert_int_equal((int)fakecards_number(a, "loads.0.processes.0.pid"), pid);
	fakecards_kill(pid);
	b = load(s);
	assert_int_equal(json_array_size(fakecards_at(b, "loads.0.processes")), 0);
}

/* Somebody waits for us: the walk can wait, and is due as before. */
static void a_walk_is_given_up(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text =
		gs_asprintf("%.*s\"load\":{\"source\":\"files\",\"busy\":\"load\"}}",
			    (int)(strstr(entry, "\"load\"") - entry), entry);
	int fds[2], in = dup(STDIN_FILENO);
	json_t *a;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	for (int i = 0; i < 20; i++)
		add_file(s, 20 + i, 4, "/dev/full", "");
	start(s, text);
	s->probe.hurries = true;
	assert_int_equal(write(fds[1], "\n", 1), 1);
	a = load(s);
	assert_null(fakecards_text(a, "loads.0.error"));
	assert_true(fakecards_number(a, "loads.0.busy") == 0);
	assert_null(fakecards_at(a, "loads.0.processes"));
	json_decref(a);
	/* One that is asked for is made. */
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 20);
	json_decref(a);
	s->probe.v[0].scan_due_ms = 0;
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(in);
	s->probe.hurries = false;
	a = load(s);
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 20);
	json_decref(a);
}

/* One process alone can have so many files that looking at them takes a second. */
static void a_walk_is_given_up_within_a_process(void **state)
{
	struct scene *s = *state;
	cleanup_free char *text =
		gs_asprintf("%.*s\"load\":{\"source\":\"files\",\"busy\":\"load\"}}",
			    (int)(strstr(entry, "\"load\"") - entry), entry);
	int fds[2], in = dup(STDIN_FILENO);
	json_t *a;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	for (int i = 0; i < 300; i++)
		add_file(s, 20, 4 + i, "/dev/full", "");
	start(s, text);
	s->probe.hurries = true;
	assert_int_equal(write(fds[1], "\n", 1), 1);
	a = load(s);
	assert_null(fakecards_text(a, "loads.0.error"));
	assert_null(fakecards_at(a, "loads.0.processes"));
	json_decref(a);
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(in);
}

/* Nothing is better than a list that may lack somebody. */
static void processes_that_may_not_be_looked_at(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL;
	struct gs_err err = { 0 };
	struct probe_load loads[2];

	memset(loads, 0, sizeof(loads));
	add_file(s, 20, 4, "/dev/full", "drm-client-id: 1\n");
	tmpdir_write(s->root, "proc/21/fd", "no folder");
	start(s, entry);
	a = load(s);
	assert_null(fakecards_at(a, "loads.0.processes"));
	assert_null(fakecards_at(a, "loads.0.busy"));
	assert_non_null(strstr(fakecards_text(a, "loads.0.error"), "open files of process 21"));
	assert_int_equal(probe_scan_open(s->probe.v, 2, loads, &err), -ENOTDIR);
	assert_false(loads[0].processes_known);
	probe_load_free(&loads[0]);
	probe_load_free(&loads[1]);
}

static void pods_of_cgroups(void **state)
{
	static const char *const rows[][2] = {
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab1.slice/"
		  "cri-containerd-c.scope/inner",
		  "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab1.slice" },
		{ "/kubepods.slice/kubepods-pod0f_1.slice/crio-c.scope",
		  "/kubepods.slice/kubepods-pod0f_1.slice" },
		{ "/kubepods/besteffort/pod12-34/c", "/kubepods/besteffort/pod12-34" },
		{ "/kubepods/pod12-34", "/kubepods/pod12-34" },
		{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod9.slice/c",
		  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod9.slice" },
		{ "/system.slice/docker-abc.scope/x/y", "/system.slice/docker-abc.scope" },
		{ "/machine.slice/libpod-abc.scope/container", "/machine.slice/libpod-abc.scope" },
		{ "/init.scope", "/init.scope" },
		{ "/podman.slice/a/b", "/podman.slice/a" },
		{ "/", "/" },
		{ "", "" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *pod = probe_pod_of(rows[i][0]);

		assert_string_equal(pod, rows[i][1]);
	}
}

#define HOSTILE "/kubepods/podbad"

static void set_cgroup(struct scene *s, int pid, const char *cgroup)
{
	cleanup_free char *path = gs_asprintf("proc/%d/cgroup", pid);
	cleanup_free char *text = gs_asprintf("0::%s\n", cgroup);

	tmpdir_write(s->root, path, text);
}

/* Its files are many, and one behind the others is the second card. */
static void add_hoarder(struct scene *s, int pid, const char *container, int files)
{
	cleanup_free char *cgroup = gs_asprintf(HOSTILE "/%s", container);

	for (int i = 0; i < files; i++)
		add_file(s, pid, 100 + i, "/dev/null", "");
	set_cgroup(s, pid, cgroup);
}

static void expect_unseen(json_t *a, const char *path, const char *pod)
{
	cleanup_free char *first = gs_asprintf("%s.0", path);

	assert_int_equal(json_array_size(fakecards_at(a, path)), pod ? 1 : 0);
	if (pod)
		assert_string_equal(fakecards_text(a, first), pod);
}

/* One pod with millions of open files is no reason to know nothing of all cards. */
static void a_pod_with_too_many_files(void **state)
{
	struct scene *s = *state;
	cleanup_free char *files =
		gs_asprintf("%.*s\"load\":{\"source\":\"files\",\"busy\":\"load\"}}",
			    (int)(strstr(entry, "\"load\"") - entry), entry);
	const char *const entries[] = { files, entry };

	add_file(s, 20, 4, "/dev/full", "drm-client-id: 1\ndrm-engine-render: 5 ns\n");
	set_cgroup(s, 20, "/kubepods/podc0ffee/x");
	add_hoarder(s, 30, "a", 40);
	add_file(s, 40, 4, "/dev/full", "drm-client-id: 2\ndrm-engine-render: 5 ns\n");
	set_cgroup(s, 40, "/kubepods/podc0ffee/y");
	probe_scan_pod_files = 30;
	for (size_t i = 0; i < GS_ARRAY_SIZE(entries); i++) {
		json_t *a;

		start(s, entries[i]);
		a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
		assert_null(fakecards_text(a, "loads.0.error"));
		assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 2);
		assert_int_equal(json_array_size(fakecards_at(a, "loads.1.processes")), 0);
		assert_non_null(fakecards_at(a, "loads.1.processes"));
		expect_unseen(a, "loads.0.unseen", HOSTILE);
		expect_unseen(a, "loads.1.unseen", HOSTILE);
		json_decref(a);
	}
	/* it has them no more */
	probe_scan_pod_files = 41;
	{
		cleanup_json json_t *a =
			ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");

		expect_unseen(a, "loads.0.unseen", NULL);
	}
}

/* So is one whose many processes have a few each: they share the pod's part. */
static void a_pod_with_too_many_processes(void **state)
{
	struct scene *s = *state;
	json_t *a;

	for (int i = 0; i < 10; i++)
		add_hoarder(s, 30 + i, i % 2 ? "a" : "b", 10);
	add_file(s, 50, 4, "/dev/full", "drm-client-id: 1\ndrm-engine-render: 5 ns\n");
	set_cgroup(s, 50, "/kubepods/podc0ffee/x");
	probe_scan_pod_files = 30;
	start(s, entry);
	/* as long as all files are few, nobody's are counted */
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	expect_unseen(a, "loads.0.unseen", NULL);
	json_decref(a);
	probe_scan_free_files = 20;
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	expect_unseen(a, "loads.0.unseen", HOSTILE);
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 1);
	json_decref(a);
}

/* More of them than can be named: then nothing is known. */
static void too_many_pods_with_too_many_files(void **state)
{
	struct scene *s = *state;
	json_t *a;

	for (int i = 0; i <= PROBE_UNSEEN_MAX; i++) {
		cleanup_free char *cgroup = gs_asprintf("/kubepods/pod%d/x", i);

		add_hoarder(s, 30 + i, "a", 3);
		set_cgroup(s, 30 + i, cgroup);
	}
	probe_scan_pod_files = 2;
	start(s, entry);
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	assert_null(fakecards_at(a, "loads.0.processes"));
	assert_non_null(strstr(fakecards_text(a, "loads.0.error"), "more than 16 pods"));
	json_decref(a);
}

/* The lists of all cards have to fit into a line; whose is too long has none. */
static void a_card_with_too_many_processes(void **state)
{
	struct scene *s = *state;
	int n = 21; /* numbers that no process has */
	json_t *a;

	for (int i = 0; i < n; i++)
		add_file(s, 5000000 + i, 4, "/dev/full", "drm-client-id: 1\n");
	for (int i = 0; i < n - 2; i++)
		add_file(s, 6000000 + i, 4, "/dev/zero", "drm-client-id: 2\n");
	probe_answer_processes = (size_t)n * 2 - 2;
	start(s, entry);
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	/* together they are just short enough */
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), n);
	assert_int_equal(json_array_size(fakecards_at(a, "loads.1.processes")), n - 2);
	json_decref(a);
	for (int i = 0; i < 10; i++)
		add_file(s, 7000000 + i, 4, "/dev/full", "drm-client-id: 1\n");
	a = ask(s, "{\"seq\":2,\"op\":\"load\",\"processes\":\"now\"}");
	assert_null(fakecards_at(a, "loads.0.processes"));
	assert_non_null(strstr(fakecards_text(a, "loads.0.error"), "processes use it"));
	assert_int_equal(json_array_size(fakecards_at(a, "loads.1.processes")), n - 2);
	assert_null(fakecards_text(a, "loads.1.error"));
	json_decref(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(nobody_is_idle),
		T(pods_of_cgroups),
		T(a_pod_with_too_many_files),
		T(a_pod_with_too_many_processes),
		T(too_many_pods_with_too_many_files),
		T(a_card_with_too_many_processes),
		T(clients_and_engines),
		T(part_of_the_time),
		T(a_driver_that_tells_nothing),
		T(processes_of_a_card_of_files),
		T(real_processes),
		T(a_walk_is_given_up),
		T(a_walk_is_given_up_within_a_process),
		T(processes_that_may_not_be_looked_at),
	};

	return cmocka_run_group_tests_name("probe_fdinfo", tests, NULL, NULL);
}
