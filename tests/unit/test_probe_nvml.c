// SPDX-License-Identifier: Apache-2.0
/* Cards, slices and load from a library with NVML's functions: tests/programs/fakenvml. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/fakecards.h"
#include "tests/unit/tmpdir.h"

static const char entry[] =
	"{\"name\":\"fakenv\",\"title\":\"x\",\"mount_roots\":[\"\",\"/run/driver\"],\"nodes\":["
	"{\"glob\":\"/dev/fakenvctl\",\"kind\":\"control\"},"
	"{\"glob\":\"/dev/fakenv[0-9]*\",\"kind\":\"card\"},"
	"{\"glob\":\"/dev/nvidia-caps/*\",\"kind\":\"card\"},"
	"{\"glob\":\"/dev/dri/card*\",\"kind\":\"card\",\"drivers\":[\"fakenvdrv\"]}],"
	"\"inventory\":{\"source\":\"nvml\",\"library\":\"%s\",\"slices\":\"mig\","
	"\"id\":\"{uuid}\",\"select\":\"{uuid}\"},"
	"\"driver\":{\"chrdev\":[\"fakenv*\"],\"hook_nodes\":[\"/dev/fakenvctl\",\"/dev/fakenv*\"],"
	"\"revocable\":[\"/dev/fakenv[0-9]*\"]},"
	"\"load\":{\"source\":\"nvml\",\"library\":\"%s\",\"processes\":\"nvml\"}}";

struct scene {
	char *root;
	struct probe probe;
};

/* A probe that knows nothing yet gets the entry, with that library. */
static void tell(struct scene *s, const char *library)
{
	cleanup_free char *text = gs_asprintf(entry, library, library);

	probe_free(&s->probe);
	fakecards_tell(&s->probe, text);
}

static void use_library(const struct scene *s, const char *library)
{
	fakecards_copy(s->root, "run/driver/usr/lib64/libfakenvml.so", library);
}

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));

	s->root = fakecards_begin();
	use_library(s, "libfakenvml.so");
	fakecards_link(s->root, "dev/fakenvctl", "/dev/random");
	fakecards_link(s->root, "dev/fakenv3", "/dev/null");
	fakecards_link(s->root, "dev/fakenv5", "/dev/zero");
	fakecards_link(s->root, "dev/fakenv13", "/dev/null"); /* its name has another number */
	tell(s, "libfakenvml.so");
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

static json_t *cards(struct scene *s)
{
	return fakecards_ask(&s->probe, "{\"seq\":1,\"op\":\"cards\"}");
}

static json_t *load(struct scene *s)
{
	return fakecards_ask(&s->probe, "{\"seq\":2,\"op\":\"load\",\"processes\":\"free\"}");
}

static void whole_cards(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL;

	/* The DRM node of the same PCI device, by the entry's rule the vendor's. */
	tmpdir_write(s->root, "sys/bus/pci/devices/0000:3b:01.0/drm/card1/dev", "1:7\n");
	tmpdir_write(s->root, "sys/bus/pci/devices/0000:3b:01.0/drm/card1/uevent",
		     "MAJOR=1\nMINOR=7\nDEVNAME=dri/card1\n");
	fakecards_link(s->root, "sys/dev/char/1:7/device/driver", "/sys/bus/pci/fakenvdrv");
	fakecards_link(s->root, "dev/dri/card1", "/dev/full");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	assert_string_equal(fakecards_text(a, "cards.0.id"), "GPU-0000");
	assert_string_equal(fakecards_text(a, "cards.0.uuid"), "GPU-0000");
	assert_string_equal(fakecards_text(a, "cards.0.pci"), "0000:3b:00.0");
	assert_int_equal((int)fakecards_number(a, "cards.0.index"), 0);
	assert_int_equal(json_array_size(fakecards_at(a, "cards.0.select")), 2);
	assert_string_equal(fakecards_text(a, "cards.0.select.0"), "GPU-0000");
	assert_string_equal(fakecards_text(a, "cards.0.select.1"), "0");
	assert_int_equal(json_array_size(fakecards_at(a, "cards.0.nodes")), 2);
	assert_string_equal(fakecards_text(a, "cards.0.nodes.0.path"), "/dev/fakenv3");
	assert_int_equal((int)fakecards_number(a, "cards.0.nodes.0.minor"), 3);
	assert_true(json_is_true(fakecards_at(a, "cards.0.nodes.0.own")));
	assert_string_equal(fakecards_text(a, "cards.0.nodes.1.path"), "/dev/fakenvctl");
	assert_true(json_is_false(fakecards_at(a, "cards.0.nodes.1.own")));
	assert_int_equal(json_array_size(fakecards_at(a, "cards.1.nodes")), 3);
	assert_string_equal(fakecards_text(a, "cards.1.nodes.0.path"), "/dev/fakenv5");
	assert_string_equal(fakecards_text(a, "cards.1.nodes.1.path"), "/dev/dri/card1");
	assert_true(json_is_true(fakecards_at(a, "cards.1.nodes.1.own")));
	assert_true(json_is_false(fakecards_at(a, "cards.1.nodes.1.hook")));
}

static void slices_are_cards(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL, *l = NULL;

	tmpdir_write(s->root, "nvml.ctl", "mig 1\nutil 50\nused 10\n");
	/* Not our machine's /proc, which has no such driver. */
	assert_int_equal(unlink(tmpdir_path(s->root, "proc")), 0);
	tmpdir_write(s->root, "proc/driver/nvidia/capabilities/gpu5/mig/gi5/access",
		     "DeviceFileMinor: 30\nDeviceFileMode: 256\nDeviceFileModify: 1\n");
	tmpdir_write(s->root, "proc/driver/nvidia/capabilities/gpu5/mig/gi5/ci0/access",
		     "DeviceFileMinor: 31\nDeviceFileMode: 256\nDeviceFileModify: 1\n");
	fakecards_link(s->root, "dev/nvidia-caps/nvidia-cap30", "/dev/full");
	fakecards_link(s->root, "dev/nvidia-caps/nvidia-cap31", "/dev/urandom");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 3);
	assert_string_equal(fakecards_text(a, "cards.0.id"), "GPU-0000");
	assert_string_equal(fakecards_text(a, "cards.1.id"), "MIG-0001-0");
	assert_string_equal(fakecards_text(a, "cards.2.id"), "MIG-0001-2");
	assert_string_equal(fakecards_text(a, "cards.1.select.1"), "1:0");
	assert_null(fakecards_at(a, "cards.1.index"));
	assert_string_equal(fakecards_text(a, "cards.1.pci"), "0000:3b:01.0");
	/* The card's node is every slice's; a compute instance's capability its own. */
	assert_string_equal(fakecards_text(a, "cards.1.nodes.0.path"), "/dev/fakenv5");
	assert_true(json_is_false(fakecards_at(a, "cards.1.nodes.0.own")));
	assert_true(json_is_true(fakecards_at(a, "cards.1.nodes.0.hook")));
	assert_string_equal(fakecards_text(a, "cards.1.nodes.1.path"),
			    "/dev/nvidia-caps/nvidia-cap30");
	assert_true(json_is_false(fakecards_at(a, "cards.1.nodes.1.own")));
	assert_string_equal(fakecards_text(a, "cards.1.nodes.2.path"),
			    "/dev/nvidia-caps/nvidia-cap31");
	assert_true(json_is_true(fakecards_at(a, "cards.1.nodes.2.own")));
	assert_true(json_is_false(fakecards_at(a, "cards.1.nodes.2.hook")));
	assert_int_equal(json_array_size(fakecards_at(a, "cards.2.nodes")), 2);

	/* A slice has no utilisation of its own: it is idle while nobody is on it. */
	l = load(s);
	assert_true(fakecards_number(l, "loads.0.busy") == 0.5);
	assert_true(fakecards_number(l, "loads.1.busy") == 0);
	assert_int_equal((int)fakecards_number(l, "loads.1.memory_used"), 10);
	assert_int_equal(json_array_size(fakecards_at(l, "loads.1.processes")), 0);
	json_decref(l);
	tmpdir_write(s->root, "nvml.ctl", "mig 1\nprocess 77 5\n");
	l = load(s);
	assert_null(fakecards_text(l, "loads.1.error"));
	assert_null(fakecards_at(l, "loads.1.busy"));
	assert_int_equal((int)fakecards_number(l, "loads.1.processes.0.pid"), 77);
}

static void load_and_processes(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf many = { 0 };
	json_t *a = cards(s);

	json_decref(a);
	tmpdir_write(s->root, "nvml.ctl",
		     "util 100\nused 300\nreserved 50\ntotal 4096\nprocess 77 200\n"
		     "process 78 18446744073709551615\n");
	a = fakecards_ask(&s->probe, "{\"seq\":3,\"op\":\"load\",\"card\":\"GPU-0001\"}");
	assert_int_equal(json_array_size(fakecards_at(a, "loads")), 1);
	assert_string_equal(fakecards_text(a, "loads.0.card"), "GPU-0001");
	assert_true(fakecards_number(a, "loads.0.busy") == 1);
	/* What the driver keeps for itself is nobody's. */
	assert_int_equal((int)fakecards_number(a, "loads.0.memory_used"), 300);
	assert_int_equal((int)fakecards_number(a, "loads.0.memory_total"), 4096);
	/* In both lists, and once here. */
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 2);
	assert_int_equal((int)fakecards_number(a, "loads.0.processes.0.pid"), 77);
	assert_int_equal((int)fakecards_number(a, "loads.0.processes.0.memory"), 200);
	assert_int_equal((int)fakecards_number(a, "loads.0.processes.1.memory"), 0);
	json_decref(a);

	for (int i = 0; i < 500; i++)
		gs_buf_addf(&many, "process %d 1\n", 1000 + i);
	tmpdir_write(s->root, "nvml.ctl", many.data);
	a = load(s);
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 500);
	json_decref(a);
}

static double busy_of(json_t *a, int i)
{
	cleanup_free char *path = gs_asprintf("loads.0.processes.%d.busy", i);

	return fakecards_at(a, path) ? fakecards_number(a, path) : -1;
}

/* A reading that is not too soon after the last one. */
static json_t *later(struct scene *s)
{
	for (size_t i = 0; i < s->probe.n; i++)
		if (s->probe.v[i].sampled_ms)
			s->probe.v[i].sampled_ms -= 1000;
	return load(s);
}

static void load_of_processes(void **state)
{
	struct scene *s = *state;
	cleanup_buf struct gs_buf many = { 0 };
	json_t *a = cards(s);
	double since;

	json_decref(a);
	tmpdir_write(s->root, "nvml.ctl",
		     "util 60\nprocess 77 1\nprocess 78 1\nsample 77 1000 90 0\n");
	/* How old the samples are is not known yet. */
	a = load(s);
	assert_true(busy_of(a, 0) == -1 && busy_of(a, 1) == -1);
	assert_null(fakecards_at(a, "loads.0.busy_since_ms"));
	json_decref(a);
	/* Nothing new since then: nobody did anything. */
	a = later(s);
	assert_true(busy_of(a, 0) == 0 && busy_of(a, 1) == 0);
	since = fakecards_number(a, "loads.0.busy_since_ms");
	assert_true(since > 0 && since < fakecards_number(a, "loads.0.at_ms"));
	json_decref(a);
	/* The largest of several; one that was never filled; one of a process that is not there. */
	tmpdir_write(s->root, "nvml.ctl",
		     "process 77 1\nprocess 78 1\nsample 77 1000 90 0\nsample 78 1200 20 35\n"
		     "sample 78 1100 10 0\nsample 77 1100 4294967295 0\nsample 5 1100 50 0\n");
	a = later(s);
	assert_int_equal(json_array_size(fakecards_at(a, "loads.0.processes")), 2);
	assert_true(busy_of(a, 0) == 0);
	assert_true(busy_of(a, 1) == 0.35);
	json_decref(a);
	a = later(s);
	assert_true(busy_of(a, 1) == 0);
	json_decref(a);
	/* A library that gives old ones, too. */
	tmpdir_write(s->root, "nvml.ctl",
		     "stale 1\nprocess 77 1\nprocess 78 1\nsample 78 1200 20 35\n");
	a = later(s);
	assert_true(busy_of(a, 1) == 0);
	json_decref(a);
	/* Too soon: not asked. */
	a = load(s);
	assert_true(busy_of(a, 1) == -1);
	assert_null(fakecards_at(a, "loads.0.busy_since_ms"));
	json_decref(a);

	gs_buf_adds(&many, "process 77 1\n");
	for (int i = 0; i < 400; i++)
		gs_buf_addf(&many, "sample 77 %d %d 0\n", 2000 + i, i == 399 ? 70 : 1);
	tmpdir_write(s->root, "nvml.ctl", many.data);
	a = later(s);
	assert_true(busy_of(a, 0) == 0.7);
	json_decref(a);
	/* A library that can't, today. */
	tmpdir_write(s->root, "nvml.ctl",
		     "process 77 1\nsample 77 9000 1 0\nerror DeviceGetProcessUtilization 3\n");
	a = later(s);
	assert_null(fakecards_text(a, "loads.0.error"));
	assert_true(busy_of(a, 0) == -1);
	json_decref(a);
}

static void one_lost_card_is_not_all(void **state)
{
	struct scene *s = *state;
	json_t *a = cards(s);

	json_decref(a);
	tmpdir_write(s->root, "nvml.ctl", "error DeviceGetUtilizationRates 15\n");
	a = load(s);
	assert_null(fakecards_text(a, "error"));
	assert_string_equal(fakecards_text(a, "loads.0.error"), "utilisation: GPU is lost");
	assert_null(fakecards_at(a, "loads.0.busy"));
	json_decref(a);
	tmpdir_write(s->root, "nvml.ctl", "error Processes 15\n");
	a = load(s);
	assert_string_equal(fakecards_text(a, "loads.0.error"), "processes: GPU is lost");
	assert_null(fakecards_at(a, "loads.0.processes"));
	json_decref(a);
	tmpdir_write(s->root, "nvml.ctl", "error DeviceGetUUID 15\n");
	a = cards(s);
	assert_string_equal(fakecards_text(a, "error"), "a card's UUID: GPU is lost");
	assert_null(fakecards_at(a, "cards"));
	json_decref(a);
	tmpdir_write(s->root, "nvml.ctl", "error DeviceGetHandleByIndex 15 0\n");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_string_equal(fakecards_text(a, "left_out"),
			    "card 0 is left out: a card's handle: GPU is lost");
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 1);
	assert_string_equal(fakecards_text(a, "cards.0.uuid"), "GPU-0001");
	json_decref(a);
	/* And well again, from a start anew. */
	tmpdir_write(s->root, "nvml.ctl", "");
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	assert_null(fakecards_at(a, "left_out"));
	json_decref(a);
}

static void other_makers_library(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL, *l = NULL;

	use_library(s, "libfakenvml-old.so");
	tmpdir_write(s->root, "nvml.ctl", "used 300\nreserved 50\nutil 7\nprocess 9 3\nmig 0\n");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	assert_string_equal(fakecards_text(a, "cards.1.pci"), "0000:3b:01.0");
	l = load(s);
	assert_true(fakecards_number(l, "loads.1.busy") == 0.07);
	assert_int_equal((int)fakecards_number(l, "loads.1.memory_used"), 350);
	assert_int_equal(json_array_size(fakecards_at(l, "loads.1.processes")), 1);
	assert_int_equal((int)fakecards_number(l, "loads.1.processes.0.memory"), 3);
	/* It tells no process's load, however often it is asked. */
	json_decref(l);
	l = load(s);
	assert_null(fakecards_at(l, "loads.1.processes.0.busy"));
	assert_null(fakecards_at(l, "loads.1.busy_since_ms"));
}

static void no_library_or_no_driver(void **state)
{
	struct scene *s = *state;
	Dl_info other;
	json_t *a;

	/* The library is there, the driver is not loaded: no cards, and nothing is wrong. */
	tmpdir_write(s->root, "nvml.ctl", "error Init 9\n");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 0);
	json_decref(a);
	/* The same, and the driver is loaded. */
	assert_int_equal(unlink(tmpdir_path(s->root, "proc")), 0);
	tmpdir_write(s->root, "proc/devices",
		     "Character devices:\n  1 mem\n195 fakenv\n\nBlock devices:\n  7 loop\n");
	a = cards(s);
	assert_non_null(strstr(fakecards_text(a, "error"), "libfakenvml.so: "));
	json_decref(a);
	tell(s, "libfakenvml.so");
	assert_int_equal(unlink(tmpdir_path(s->root, "run/driver/usr/lib64/libfakenvml.so")), 0);
	a = cards(s);
	assert_non_null(strstr(fakecards_text(a, "error"), "libfakenvml.so"));
	json_decref(a);
	tmpdir_write(s->root, "proc/devices", "Character devices:\n\nBlock devices:\n  7 fakenv\n");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 0);
	json_decref(a);
	/* No NVML at all. */
	assert_true(dladdr((void *)&json_object, &other));
	use_library(s, other.dli_fname);
	a = cards(s);
	assert_string_equal(fakecards_text(a, "error"), "libfakenvml.so has no nvmlInit_v2()");
	json_decref(a);
}

/* An agent in a container that has no such library: the host's, by links as the host sees them. */
static void library_of_the_host(void **state)
{
	struct scene *s = *state;
	cleanup_free char *host = gs_asprintf("%s/host", s->root);
	json_t *a;

	assert_int_equal(unlink(tmpdir_path(s->root, "run/driver/usr/lib64/libfakenvml.so")), 0);
	fakecards_copy(s->root, "host/usr/lib/vendor/current/libfakenvml.so.7", "libfakenvml.so");
	fakecards_link(s->root, "host/usr/lib64/libfakenvml.so", "/etc/alternatives/nvml");
	fakecards_link(s->root, "host/etc/alternatives/nvml",
		       "/usr/lib/vendor/current/libfakenvml.so.7");
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 0);
	json_decref(a);
	assert_int_equal(setenv(PROBE_HOST_ENV, host, 1), 0);
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	json_decref(a);

	/* A driver that came in a container of its own lies below the host's root, too. */
	tell(s, "libfakenvml.so");
	assert_int_equal(unlink(tmpdir_path(s->root, "host/usr/lib64/libfakenvml.so")), 0);
	fakecards_copy(s->root, "host/run/driver/usr/lib64/libfakenvml.so", "libfakenvml.so");
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	json_decref(a);

	/* One that can't be loaded is named; what the container has itself is taken instead. */
	tell(s, "libfakenvml.so");
	assert_int_equal(unlink(tmpdir_path(s->root, "proc")), 0);
	tmpdir_write(s->root, "proc/devices", "Character devices:\n195 fakenv\n");
	tmpdir_write(s->root, "host/run/driver/usr/lib64/libfakenvml.so", "no library");
	a = cards(s);
	assert_non_null(strstr(fakecards_text(a, "error"), "/host/run/driver/usr/lib64/"));
	json_decref(a);
	use_library(s, "libfakenvml.so");
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	json_decref(a);
	assert_int_equal(unsetenv(PROBE_HOST_ENV), 0);
}

/* The same with the library's whole path, as other makers have it. */
static void library_of_the_host_by_its_path(void **state)
{
	struct scene *s = *state;
	cleanup_free char *host = gs_asprintf("%s/host", s->root);
	json_t *a;

	tell(s, "/corex/nvml.so");
	fakecards_copy(s->root, "host/corex/nvml.so", "libfakenvml.so");
	assert_int_equal(setenv(PROBE_HOST_ENV, host, 1), 0);
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	json_decref(a);
	assert_int_equal(unsetenv(PROBE_HOST_ENV), 0);
	tell(s, "/corex/nvml.so");
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 0);
	json_decref(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(whole_cards),
		T(slices_are_cards),
		T(load_and_processes),
		T(one_lost_card_is_not_all),
		T(other_makers_library),
		T(no_library_or_no_driver),
		T(load_of_processes),
		T(library_of_the_host),
		T(library_of_the_host_by_its_path),
	};

	return cmocka_run_group_tests_name("probe_nvml", tests, NULL, NULL);
}
