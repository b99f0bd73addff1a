// SPDX-License-Identifier: Apache-2.0
/* Cards and load from files of sysfs, and what the probe reads of it. */
#include <errno.h>
#include <fcntl.h>
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
#include "common/file.h"
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

static void tell_file(struct scene *s, const char *path)
{
	cleanup_free char *text = NULL;
	size_t len;

	assert_int_equal(gs_file_read(AT_FDCWD, path, 0, 65536, &text, &len, NULL, NULL), 0);
	fakecards_tell(&s->probe, text);
}

static json_t *cards(struct scene *s)
{
	return fakecards_ask(&s->probe, "{\"seq\":1,\"op\":\"cards\"}");
}

static json_t *load(struct scene *s, const char *when)
{
	cleanup_free char *request =
		gs_asprintf("{\"seq\":2,\"op\":\"load\",\"processes\":\"%s\"}", when);

	return fakecards_ask(&s->probe, request);
}

/* A card of the amdgpu driver, as sysfs shows it: a link in the driver's folder. */
static void add_amd(struct scene *s, const char *pci, const char *drm, const char *node,
		    const char *number)
{
	cleanup_free char *device = gs_asprintf("sys/devices/pci0000:00/0000:00:01.0/%s", pci);
	cleanup_free char *link = gs_asprintf("sys/bus/pci/drivers/amdgpu/%s", pci);
	cleanup_free char *to = gs_asprintf("%s/%s", s->root, device);
	cleanup_free char *file = gs_asprintf("%s/drm/%s/dev", device, drm);
	cleanup_free char *uevent = gs_asprintf("%s/drm/%s/uevent", device, drm);
	cleanup_free char *text =
		gs_asprintf("MAJOR=226\nDEVNAME=dri/%s\nDEVTYPE=drm_minor\n", drm);
	cleanup_free char *dev = gs_asprintf("dev/dri/%s", drm);
	cleanup_free char *busy = gs_asprintf("%s/gpu_busy_percent", device);
	cleanup_free char *used = gs_asprintf("%s/mem_info_vram_used", device);
	cleanup_free char *total = gs_asprintf("%s/mem_info_vram_total", device);

	tmpdir_write(s->root, file, number);
	tmpdir_write(s->root, uevent, text);
	tmpdir_write(s->root, busy, "25\n");
	tmpdir_write(s->root, used, "1048576\n");
	tmpdir_write(s->root, total, "17163091968\n");
	fakecards_link(s->root, link, to);
	fakecards_link(s->root, dev, node);
}

static void cards_on_the_pci_bus(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL, *l = NULL;

	tell_file(s, "vendors/amd.json");
	/* In the order of addresses, whose domains may be longer, not of names. */
	add_amd(s, "10000:03:00.0", "renderD130", "/dev/zero", "226:130\n");
	add_amd(s, "0000:0a:00.0", "renderD129", "/dev/full", "226:129\n");
	add_amd(s, "0000:03:00.0", "card0", "/dev/null", "226:0\n");
	add_amd(s, "0000:03:00.0", "renderD128", "/dev/urandom", "226:128\n");
	tmpdir_write(s->root, "sys/bus/pci/drivers/amdgpu/module", "");
	tmpdir_write(s->root, "sys/bus/pci/drivers/amdgpu/0000:03:00.0/unique_id", "0xaabbccdd\n");
	/* A folder there without a dev file is no device. */
	tmpdir_write(s->root, "sys/bus/pci/drivers/amdgpu/0000:03:00.0/drm/ttm/x", "");
	fakecards_link(s->root, "dev/kfd", "/dev/random");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 3);
	assert_string_equal(fakecards_text(a, "cards.0.id"), "0000:03:00.0");
	assert_string_equal(fakecards_text(a, "cards.0.pci"), "0000:03:00.0");
	assert_string_equal(fakecards_text(a, "cards.0.uuid"), "0xaabbccdd");
	assert_string_equal(fakecards_text(a, "cards.0.select.0"), "0");
	assert_string_equal(fakecards_text(a, "cards.0.select.1"), "0xaabbccdd");
	assert_int_equal(json_array_size(fakecards_at(a, "cards.0.nodes")), 3);
	assert_string_equal(fakecards_text(a, "cards.0.nodes.0.path"), "/dev/dri/card0");
	assert_string_equal(fakecards_text(a, "cards.0.nodes.1.path"), "/dev/dri/renderD128");
	/* The number is the node's, whatever sysfs says. */
	assert_int_equal((int)fakecards_number(a, "cards.0.nodes.1.minor"), 9);
	assert_string_equal(fakecards_text(a, "cards.0.nodes.2.path"), "/dev/kfd");
	assert_true(json_is_false(fakecards_at(a, "cards.0.nodes.2.own")));
	assert_true(json_is_false(fakecards_at(a, "cards.0.nodes.0.revocable")));
	assert_string_equal(fakecards_text(a, "cards.1.id"), "0000:0a:00.0");
	assert_int_equal((int)fakecards_number(a, "cards.1.index"), 1);
	assert_null(fakecards_at(a, "cards.1.uuid"));
	assert_string_equal(fakecards_text(a, "cards.2.id"), "10000:03:00.0");

	l = load(s, "free");
	assert_int_equal(json_array_size(fakecards_at(l, "loads")), 3);
	assert_true(fakecards_number(l, "loads.0.busy") == 0.25);
	assert_true(fakecards_number(l, "loads.0.memory_used") == 1048576);
	assert_true(fakecards_number(l, "loads.0.memory_total") == 17163091968.0);
	assert_null(fakecards_at(l, "loads.0.processes"));
}

static void every_file_is_checked(void **state)
{
	static const char *const rubbish[] = { "",	"\n",	       "-1\n",	   "nan\n",
					       "inf\n", "12 apples\n", "load: 3\n" };
	struct scene *s = *state;
	json_t *a;

	tell_file(s, "tests/fakegpu/fakegpu.json");
	fakecards_add(s->root, 0, "/dev/full");
	fakecards_add(s->root, 1, "/dev/zero");
	a = cards(s);
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 2);
	json_decref(a);
	for (size_t i = 0; i < GS_ARRAY_SIZE(rubbish); i++) {
		fakecards_set(s->root, 1, "load", rubbish[i]);
		a = load(s, "free");
		assert_non_null(strstr(fakecards_text(a, "loads.1.error"), "fakegpu1/load holds"));
		assert_null(fakecards_at(a, "loads.1.busy"));
		assert_true(fakecards_number(a, "loads.0.busy") == 0);
		assert_null(fakecards_at(a, "loads.0.error"));
		json_decref(a);
	}
	/* More than fully busy is fully busy, and a percent sign no rubbish. */
	fakecards_set(s->root, 1, "load", " 130 %\n");
	a = load(s, "free");
	assert_true(fakecards_number(a, "loads.1.busy") == 1);
	json_decref(a);
	fakecards_set(s->root, 1, "mem_used", "1e300\n");
	a = load(s, "free");
	assert_non_null(strstr(fakecards_text(a, "loads.1.error"), "mem_used"));
	json_decref(a);
	assert_int_equal(unlink(tmpdir_path(s->root, "sys/class/fakegpu/fakegpu1/load")), 0);
	fakecards_set(s->root, 1, "mem_used", "1\n");
	a = load(s, "free");
	assert_non_null(strstr(fakecards_text(a, "loads.1.error"), "No such file"));
	assert_true(fakecards_number(a, "loads.1.memory_used") == 1);
	json_decref(a);
	/* A template that needs what the card does not tell. */
	assert_int_equal(unlink(tmpdir_path(s->root, "sys/class/fakegpu/fakegpu0/uuid")), 0);
	a = cards(s);
	assert_non_null(strstr(fakecards_text(a, "error"), "id: the card has no {uuid}"));
	assert_null(fakecards_at(a, "cards"));
	json_decref(a);
}

static void fields_of_a_class_device(void **state)
{
	struct scene *s = *state;
	cleanup_json json_t *a = NULL;

	fakecards_tell(
		&s->probe,
		"{\"name\":\"x\",\"title\":\"x\",\"nodes\":["
		"{\"glob\":\"/dev/x*\",\"kind\":\"card\"}],\"inventory\":{\"source\":"
		"\"files\",\"cards\":\"/sys/class/{x/x,y}[0-9]*\",\"nodes\":[\"/dev/x{minor}\"],"
		"\"id\":\"{pci}/{index}/{minor}\"}}");
	tmpdir_write(s->root, "sys/devices/pci0000:00/0000:00:1f.7/x/x10/dev", "240:4\n");
	tmpdir_write(s->root, "sys/devices/virtual/x2/dev", "240:5\n");
	fakecards_link(s->root, "sys/class/x/x10",
		       tmpdir_path(s->root, "sys/devices/pci0000:00/0000:00:1f.7/x/x10"));
	fakecards_link(s->root, "dev/x4", "/dev/null");
	a = cards(s);
	assert_null(fakecards_text(a, "error"));
	assert_int_equal(json_array_size(fakecards_at(a, "cards")), 1);
	assert_string_equal(fakecards_text(a, "cards.0.id"), "0000:00:1f.7/0/4");
	assert_string_equal(fakecards_text(a, "cards.0.nodes.0.path"), "/dev/x4");
	/* No variable selects: nothing names it. */
	assert_int_equal(json_array_size(fakecards_at(a, "cards.0.select")), 0);
	/* Not hooked, as there is no driver section. */
	assert_true(json_is_false(fakecards_at(a, "cards.0.nodes.0.hook")));
}

static void patterns_find_files(void **state)
{
	struct scene *s = *state;
	cleanup_strv struct gs_strv found = { 0 };

	tmpdir_write(s->root, "a/b1/c", "");
	tmpdir_write(s->root, "a/b2/c", "");
	tmpdir_write(s->root, "a/b3/d/c", "");
	tmpdir_write(s->root, "a/x*y/c", "");
	assert_int_equal(probe_glob("/a/b[12]/c", &found, NULL), 0);
	assert_int_equal(found.n, 2);
	assert_string_equal(found.v[0], "/a/b1/c");
	assert_int_equal(probe_glob("/a/{b3/d,b2}/c", &found, NULL), 0);
	assert_int_equal(found.n, 2);
	assert_string_equal(found.v[1], "/a/b3/d/c");
	assert_int_equal(probe_glob("/a/b1/c", &found, NULL), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(probe_glob("/a/x\\*y/*", &found, NULL), 0);
	assert_int_equal(found.n, 1);
	assert_string_equal(found.v[0], "/a/x*y/c");
	assert_int_equal(probe_glob("/*/b1", &found, NULL), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(probe_glob("/nowhere/*", &found, NULL), 0);
	assert_int_equal(found.n, 0);
}

static void wrong_requests(void **state)
{
	static const char *const wrong[][2] = {
		{ "{\"seq\":1,\"op\":\"cards\"}", "no vendor yet" },
		{ "{\"seq\":1}", "op is missing" },
		{ "{\"op\":\"cards\"}", "seq is missing" },
		{ "{\"seq\":1,\"op\":\"sing\"}", "op must be" },
		{ "rubbish", "request:1:" },
		{ "{\"seq\":1,\"op\":\"vendor\",\"file\":\"f.json\",\"text\":\"{}\"}",
		  "f.json: no name" },
		{ "{\"seq\":1,\"op\":\"vendor\",\"file\":\"f.json\",\"text\":"
		  "\"{\\\"load\\\":{\\\"source\\\":\\\"x\\\"}}\"}",
		  "f.json:1:19: source must be" },
	};
	struct scene *s = *state;

	for (size_t i = 0; i < GS_ARRAY_SIZE(wrong); i++) {
		cleanup_json json_t *a = fakecards_ask(&s->probe, wrong[i][0]);

		if (!strstr(fakecards_text(a, "error"), wrong[i][1]))
			fail_msg("%s: %s", wrong[i][0], fakecards_text(a, "error"));
	}
}

/* Every entry that we ship is understood, null members too. */
static void all_entries(void **state)
{
	static const char *const names[] = { "amd",	  "ascend", "biren",	"cambricon",
					     "enflame",	  "hygon",  "iluvatar", "intel",
					     "kunlunxin", "metax",  "mthreads", "nvidia" };
	struct scene *s = *state;

	for (size_t i = 0; i < GS_ARRAY_SIZE(names); i++) {
		cleanup_free char *path = gs_asprintf("vendors/%s.json", names[i]);
		cleanup_json json_t *a = NULL;

		tell_file(s, path);
		assert_string_equal(s->probe.side.name, names[i]);
		if (s->probe.side.inventory.source == INVENTORY_NVML)
			continue; /* this machine may have the library */
		a = cards(s);
		/* There are none on this machine made of files. */
		assert_null(fakecards_text(a, "error"));
		assert_int_equal(json_array_size(fakecards_at(a, "cards")), 0);
	}
	fakecards_tell(&s->probe, "{\"name\":\"x\",\"title\":\"x\",\"nodes\":[{\"glob\":\"/dev/x\","
				  "\"kind\":\"card\",\"drivers\":null}],\"inventory\":null,"
				  "\"driver\":{\"settle_ms\":null},\"load\":null}");
	assert_int_equal(s->probe.side.inventory.source, INVENTORY_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(cards_on_the_pci_bus), T(every_file_is_checked), T(fields_of_a_class_device),
		T(patterns_find_files),	 T(wrong_requests),	   T(all_entries),
	};

	return cmocka_run_group_tests_name("probe_files", tests, NULL, NULL);
}
