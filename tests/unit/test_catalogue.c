// SPDX-License-Identifier: Apache-2.0
/* The vendor catalogue: reading, mistakes, and what the shipped entries recognise and refuse. */
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

#include "common/catalogue.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/tmpdir.h"

static int setup(void **state)
{
	*state = tmpdir_make();
	return 0;
}

static int teardown(void **state)
{
	tmpdir_remove(*state);
	gs_catalogue_sysfs = "/sys";
	return 0;
}

static int load(struct gs_catalogue *cat, const char *dir, const char *dir2, struct gs_err *err)
{
	cleanup_strv struct gs_strv dirs = { 0 };

	gs_strv_add(&dirs, dir);
	if (dir2)
		gs_strv_add(&dirs, dir2);
	*cat = (struct gs_catalogue){ 0 };
	return gs_catalogue_load(cat, &dirs, err);
}

static void load_shipped(struct gs_catalogue *cat)
{
	struct gs_err err = { 0 };

	if (load(cat, "vendors", NULL, &err) < 0)
		fail_msg("%s", err.msg);
}

static const struct gs_vendor *find(const struct gs_catalogue *cat, const char *name)
{
	for (size_t i = 0; i < cat->n; i++)
		if (strcmp(cat->v[i].name, name) == 0)
			return &cat->v[i];
	fail_msg("no vendor %s", name);
	return NULL;
}

/* A vendor file with the two keys that every entry needs, and @more. */
static void write_vendor(const char *dir, const char *file, const char *name, const char *more)
{
	cleanup_free char *text =
		gs_asprintf("{\"name\": \"%s\", \"title\": \"T\", \"nodes\": "
			    "[{\"glob\": \"/dev/%s*\", \"kind\": \"card\"}]%s%s}\n",
			    name, name, more[0] ? ", " : "", more);

	tmpdir_write(dir, file, text);
}

/* ---- folders and files */

static void test_later_folder_replaces_by_file_name(void **state)
{
	cleanup_catalogue struct gs_catalogue cat;
	struct gs_err err = { 0 };

	write_vendor(*state, "usr/b.json", "bb", "");
	write_vendor(*state, "usr/a.json", "aa", "");
	write_vendor(*state, "usr/c.json", "cc", "");
	write_vendor(*state, "etc/b.json", "mine", "");
	write_vendor(*state, "etc/0.json", "zero", "");
	write_vendor(*state, "etc/.hidden.json", "hidden", "");
	write_vendor(*state, "etc/c.json.gpushare-0123456789abcdef", "half", "");
	write_vendor(*state, "etc/README", "readme", "");
	if (load(&cat, tmpdir_path(*state, "usr"), tmpdir_path(*state, "etc"), &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(err.code, 0);
	assert_int_equal(cat.n, 4);
	assert_string_equal(cat.v[0].name, "aa");
	assert_string_equal(cat.v[1].name, "mine");
	assert_string_equal(cat.v[1].file, tmpdir_path(*state, "etc/b.json"));
	assert_string_equal(cat.v[2].name, "cc");
	assert_string_equal(cat.v[3].name, "zero");
}

static void test_folders_that_are_missing_or_empty(void **state)
{
	cleanup_catalogue struct gs_catalogue cat, none;
	struct gs_err err = { 0 };

	write_vendor(*state, "etc/x.json", "xx", "");
	assert_int_equal(load(&cat, tmpdir_path(*state, "none"), tmpdir_path(*state, "etc"), &err),
			 0);
	assert_int_equal(cat.n, 1);
	assert_int_equal(mkdir(tmpdir_path(*state, "empty"), 0700), 0);
	assert_int_equal(load(&none, tmpdir_path(*state, "none"), tmpdir_path(*state, "empty"),
			      &err),
			 -ENOENT);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "none")));
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "empty")));
	assert_int_equal(none.n, 0);
}

static void test_one_name_twice_names_both_files(void **state)
{
	cleanup_catalogue struct gs_catalogue cat;
	struct gs_err err = { 0 };

	write_vendor(*state, "a.json", "same", "");
	write_vendor(*state, "b.json", "same", "");
	assert_int_equal(load(&cat, *state, NULL, &err), -EEXIST);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "a.json")));
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "b.json")));
	assert_int_equal(cat.n, 0);
}

static void test_file_that_cannot_be_read(void **state)
{
	cleanup_catalogue struct gs_catalogue cat, cat2;
	struct gs_err err = { 0 };

	assert_int_equal(mkdir(tmpdir_path(*state, "x.json"), 0700), 0);
	assert_int_equal(load(&cat, *state, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.msg, tmpdir_path(*state, "x.json")));
	tmpdir_write(*state, "plain", "");
	assert_int_equal(load(&cat2, tmpdir_path(*state, "plain"), NULL, &err), -ENOTDIR);
}

static void test_mistakes_have_file_line_column_and_key(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "x.json: line 1, column 1: " },
		{ "{\"name\": \"x\",}", "x.json: line 1, column 14: " },
		{ "[]", "x.json:1:1: must be a JSON object" },
		{ "{}", "x.json:1:1: key \"name\" is missing" },
		{ "{\"name\": \"x\", \"title\": \"X\"}", "key \"nodes\" is missing" },
		{ "{\"name\": \"X\", \"title\": \"X\", \"nodes\": []}", ":1:10: name must be" },
		{ "{\"name\": \"\", \"title\": \"X\", \"nodes\": []}", ":1:10: name must be" },
		{ "{\"name\": \"x\", \"title\": \"X\", \"nodes\": []}",
		  ":1:38: nodes must not be empty" },
		{ "{\"name\": \"x\", \"title\": \"X\", \"nodes\":\n [{\"glob\": \"/hostdev/x*\", "
		  "\"kind\": \"card\"}]}",
		  ":2:12: glob must begin with \"/dev/\", not \"/hostdev/x*\"" },
		{ "{\"name\": \"x\", \"title\": \"X\", \"nodes\": [{\"glob\": \"/{dev,x}/y\", "
		  "\"kind\": \"card\"}]}",
		  ":1:48: glob must begin with \"/dev/\", not \"/{dev,x}/y\"" },
		{ "{\"name\": \"x\",\n \"name\": \"y\"}", ":2:2: key \"name\" stands twice" },
		{ "{\"name\": \"x\",\n \"nmae\": \"y\"}", ":2:2: unknown key \"nmae\"" },
		{ "{\"name\": 1}", ":1:10: name must be a string" },
	};
	static const struct {
		const char *more, *want;
	} sections[] = {
		{ "\"nodes\": []", "key \"nodes\" stands twice" },
		{ "\"env\": {}", "env must be a list" },
		{ "\"env\": [1]", "a variable must be an object" },
		{ "\"env\": [{\"name\": \"A\"}]", "key \"merge\" is missing in a variable" },
		{ "\"env\": [{\"name\": \"A=B\", \"merge\": \"list\"}]", "name must be letters" },
		{ "\"env\": [{\"name\": \"1A\", \"merge\": \"list\"}]", "name must be letters" },
		{ "\"env\": [{\"name\": \"A\", \"merge\": \"join\"}]",
		  "merge must be \"list\", \"replace\" or \"local\"" },
		{ "\"env\": [{\"name\": \"A\", \"merge\": \"list\", \"selects\": 1}]",
		  "selects must be true or false" },
		{ "\"env\": [{\"name\": \"A\", \"merge\": \"list\"}, {\"name\": \"A\", \"merge\": "
		  "\"list\"}]",
		  "variable A stands twice" },
		{ "\"select_none\": [1]", "select_none must be a list of strings" },
		{ "\"mounts\": [1]", "a mount must be an object" },
		{ "\"mounts\": [\"lib/x\"]", "a mount must be an absolute path" },
		{ "\"mounts\": [\"/lib/../x\"]", "a mount must be an absolute path" },
		{ "\"mounts\": [\"/lib//x\"]", "a mount must be an absolute path" },
		{ "\"mounts\": [\"/lib/{a\"]", "the pattern \"/lib/{a\" has a '{' without" },
		{ "\"mounts\": [{\"to\": \"/x\", \"from\": []}]", "from must not be empty" },
		{ "\"mounts\": [{\"to\": \"/x\", \"from\": [\"/y[\"]}]", "from: the pattern" },
		{ "\"mounts\": [{\"from\": [\"/y\"]}]", "key \"to\" is missing in a mount" },
		{ "\"mounts\": [{\"to\": \"/x\", \"form\": [\"/y\"]}]", "unknown key \"form\"" },
		{ "\"mount_roots\": [\"run\"]", "mount_roots must hold" },
		{ "\"mount_roots\": [\"/run/\"]", "mount_roots must hold" },
		{ "\"hooks\": [\"\"]", "hooks: a pattern must not be empty" },
		{ "\"next\": []", "next must be an object" },
		{ "\"next\": {\"runtime\": []}", "unknown key \"runtime\" in next" },
		{ "\"next\": {\"hooks\": [\"[\"]}", "hooks: the pattern" },
		{ "\"notes\": [1]", "notes must be a list of strings" },
		{ "\"resources\": [\"a}\"]", "resources: the pattern" },
		{ "\"inventory\": {}", "key \"source\" is missing" },
		{ "\"inventory\": {\"source\": \"nvlm\"}",
		  "source must be \"nvml\", \"files\" or \"command\"" },
		{ "\"inventory\": {\"source\": \"nvml\", \"id\": \"{uuid}\"}",
		  "key \"library\" is missing" },
		{ "\"inventory\": {\"source\": \"nvml\", \"library\": \"l\", \"id\": \"{name}\"}",
		  "id: there is no field {name}" },
		{ "\"inventory\": {\"source\": \"nvml\", \"library\": \"l\", \"id\": \"{uuid\"}",
		  "id: a '{' without its '}'" },
		{ "\"inventory\": {\"source\": \"nvml\", \"library\": \"l\", \"id\": \"i\", "
		  "\"slices\": \"x\"}",
		  "slices must be \"mig\"" },
		{ "\"inventory\": {\"source\": \"files\", \"cards\": \"sys/x\", \"nodes\": [], "
		  "\"id\": \"i\"}",
		  "cards must be an absolute path" },
		{ "\"inventory\": {\"source\": \"files\", \"cards\": \"/sys/x\", \"nodes\": [1], "
		  "\"id\": \"i\"}",
		  "nodes must be a list of strings" },
		{ "\"inventory\": {\"source\": \"files\", \"cards\": \"/sys/x\", \"nodes\": "
		  "[\"/dev/x{uuid}\"], \"id\": \"i\"}",
		  "nodes: there is no field {uuid}" },
		{ "\"inventory\": {\"source\": \"files\", \"cards\": \"/sys/x\", \"nodes\": [], "
		  "\"id\": \"i\", \"fields\": {\"uuid\": \"/etc/x\"}}",
		  "fields: uuid must be a file below" },
		{ "\"inventory\": {\"source\": \"command\", \"argv\": [\"smi\"], \"columns\": [], "
		  "\"nodes\": [], \"id\": \"i\"}",
		  "argv must begin with an absolute path" },
		{ "\"driver\": {\"settle_ms\": 60001}", "settle_ms must be at most 60000" },
		{ "\"driver\": {\"hook_nodes\": [\"dev/x\"]}",
		  "hook_nodes must be an absolute path" },
		{ "\"driver\": {\"ioctl_magic\": [\"FF\"]}", "magic must be one character" },
		{ "\"driver\": {\"ioctl_magic\": [70]}", "magic must be one character" },
		{ "\"driver\": {\"passive_calls\": [{\"node\": \"/dev/x\", \"magic\": \"K\", "
		  "\"nr\": 256}]}",
		  "nr must be at most 255" },
		{ "\"driver\": {\"symbols\": [1]}", "symbols must be a list of strings" },
		{ "\"load\": {\"source\": \"files\"}", "key \"busy\" is missing in load" },
		{ "\"load\": {\"source\": \"nvml\", \"library\": \"l\", \"processes\": \"ps\"}",
		  "processes must be \"nvml\", \"fdinfo\" or \"open-files\"" },
		{ "\"load\": {\"source\": \"fdinfo\", \"engines\": [\"{\"]}",
		  "engines: the pattern" },
		{ "\"load\": {\"source\": \"command\", \"busy\": {\"argv\": [\"/smi\"]}}",
		  "key \"after\" is missing in busy" },
		{ "\"load\": {\"source\": \"command\", \"source\": \"nvml\"}",
		  "key \"source\" stands twice" },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(rows) + GS_ARRAY_SIZE(sections); i++) {
		cleanup_catalogue struct gs_catalogue cat;
		struct gs_err err = { 0 };
		const char *text, *want;

		if (i < GS_ARRAY_SIZE(rows)) {
			text = rows[i].text;
			want = rows[i].want;
			tmpdir_write(*state, "x.json", text);
		} else {
			text = sections[i - GS_ARRAY_SIZE(rows)].more;
			want = sections[i - GS_ARRAY_SIZE(rows)].want;
			write_vendor(*state, "x.json", "x", text);
		}
		if (load(&cat, *state, NULL, &err) != -EINVAL)
			fail_msg("accepted: %s", text);
		if (!strstr(err.msg, tmpdir_path(*state, "x.json")) || !strstr(err.msg, want))
			fail_msg("%s: \"%s\" does not say \"%s\"", text, err.msg, want);
		assert_int_equal(cat.n, 0);
	}
}

/* ---- the shipped entries */

static void test_shipped_entries_are_complete(void **state)
{
	static const char *const names[] = { "amd",	  "ascend", "biren",	"cambricon",
					     "enflame",	  "hygon",  "iluvatar", "intel",
					     "kunlunxin", "metax",  "mthreads", "nvidia" };
	cleanup_catalogue struct gs_catalogue cat;

	load_shipped(&cat);
	assert_int_equal(cat.n, GS_ARRAY_SIZE(names));
	for (size_t i = 0; i < cat.n; i++) {
		const struct gs_vendor *v = &cat.v[i];
		bool selects = false, card = false;

		assert_string_equal(v->name, names[i]);
		assert_true(v->resources.n > 0);
		for (size_t k = 0; k < v->n_envs; k++) {
			selects = selects || v->envs[k].selects;
			/* a position means nothing to the runtime that selects */
			assert_false(v->envs[k].selects && v->envs[k].merge == GS_ENV_LOCAL);
		}
		for (size_t k = 0; k < v->n_nodes; k++)
			card = card || v->nodes[k].kind == GS_NODE_CARD;
		assert_true(card);
		/* who selects must be able to say "none", and somebody must be there to read it */
		assert_true(selects == (v->select_none.n > 0));
		assert_true(selects == (v->next_runtimes.n > 0));
		if (selects)
			assert_true(v->select_none.v[0][0] != '\0');
	}
}

/* The catalogue that expect_node()'s vendors are of. */
static const struct gs_catalogue *shipped;

static void expect_node(const struct gs_vendor *v, const char *path, int kind)
{
	const struct gs_node *node = gs_vendor_node(v, path, 1, 1);
	const struct gs_node *by_letters = NULL;

	/* the short cut over all makers must not lose what one of them knows */
	if (node && shipped && !gs_catalogue_node(shipped, path, 1, 1, &by_letters))
		fail_msg("%s of %s is nobody's by its first letters", path, v->name);

	if (kind < 0) {
		if (node)
			fail_msg("%s took %s by %s", v->name, path, node->glob);
		return;
	}
	if (!node || (int)node->kind != kind)
		fail_msg("%s: %s is not of kind %d", v->name, path, kind);
}

static void test_nodes_of_shipped_entries(void **state)
{
	static const struct {
		const char *vendor, *path;
		int kind;
	} rows[] = {
		{ "nvidia", "/dev/nvidia0", GS_NODE_CARD },
		{ "nvidia", "/dev/nvidia15", GS_NODE_CARD },
		{ "nvidia", "/dev/nvidiactl", GS_NODE_CONTROL },
		{ "nvidia", "/dev/nvidia-modeset", GS_NODE_CONTROL },
		{ "nvidia", "/dev/nvidia-uvm", GS_NODE_SHARED },
		{ "nvidia", "/dev/nvidia-uvm-tools", GS_NODE_SHARED },
		/* cap1 and cap2 configure and watch every slice of the node */
		{ "nvidia", "/dev/nvidia-caps/nvidia-cap1", GS_NODE_CONTROL },
		{ "nvidia", "/dev/nvidia-caps/nvidia-cap2", GS_NODE_CONTROL },
		{ "nvidia", "/dev/nvidia-caps/nvidia-cap12", GS_NODE_CARD },
		{ "nvidia", "/dev/nvidia-caps/nvidia-cap30", GS_NODE_CARD },
		{ "nvidia", "/dev/nvidia-caps-imex-channels/channel0", GS_NODE_CARD },
		{ "nvidia", "/dev/nvidia", -1 },
		{ "nvidia", "/dev/nvidiactl2", -1 },
		{ "nvidia", "/dev/nvidia0/x", -1 },
		{ "nvidia", "/dev//nvidia0", -1 },
		{ "nvidia", "/dev/./nvidia0", -1 },
		{ "nvidia", "/dev/x/../nvidia0", -1 },
		{ "nvidia", "dev/nvidia0", -1 },
		{ "cambricon", "/dev/cambricon-caps/..", -1 },
		{ "cambricon", "/dev/cambricon-caps/", -1 },
		{ "nvidia", "", -1 },
		{ "nvidia", "/dev/null", -1 },
		{ "nvidia", "/dev/kfd", -1 },
		{ "amd", "/dev/kfd", GS_NODE_SHARED },
		{ "hygon", "/dev/kfd", GS_NODE_SHARED },
		{ "hygon", "/dev/mkfd", GS_NODE_SHARED },
		{ "enflame", "/dev/gcu0", GS_NODE_CARD },
		{ "enflame", "/dev/gcuctl", GS_NODE_CONTROL },
		{ "mthreads", "/dev/mtgpu.0", GS_NODE_CARD },
		{ "iluvatar", "/dev/iluvatar7", GS_NODE_CARD },
		{ "metax", "/dev/mxcd", GS_NODE_SHARED },
		{ "biren", "/dev/biren/card_0", GS_NODE_CARD },
		{ "biren", "/dev/biren-m", GS_NODE_CONTROL },
		{ "ascend", "/dev/davinci0", GS_NODE_CARD },
		{ "ascend", "/dev/vdavinci100", GS_NODE_CARD },
		{ "ascend", "/dev/davinci_manager", GS_NODE_SHARED },
		{ "ascend", "/dev/hisi_hdc", GS_NODE_SHARED },
		{ "cambricon", "/dev/cambricon_dev0", GS_NODE_CARD },
		{ "cambricon", "/dev/cambr-msgq:0", GS_NODE_CARD },
		{ "cambricon", "/dev/cambricon-caps/cap_dev0_mi1", GS_NODE_CARD },
		{ "cambricon", "/dev/cambricon_ctl", GS_NODE_CONTROL },
		{ "kunlunxin", "/dev/xpu0", GS_NODE_CARD },
		{ "kunlunxin", "/dev/xpuctrl", GS_NODE_CONTROL },
	};
	static const char *const common[] = { "/dev/null", "/dev/zero", "/dev/fuse", "/dev/net/tun",
					      "/dev/kmsg", "/dev/mem",	"/dev/sda",  "/dev/vfio/1",
					      "/dev/tty",  "/dev/ptmx", "/dev/fb0" };
	cleanup_catalogue struct gs_catalogue cat;

	load_shipped(&cat);
	shipped = &cat;
	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++)
		expect_node(find(&cat, rows[i].vendor), rows[i].path, rows[i].kind);
	for (size_t v = 0; v < cat.n; v++)
		for (size_t i = 0; i < GS_ARRAY_SIZE(common); i++)
			expect_node(&cat.v[v], common[i], -1);
	shipped = NULL;
}

static void fake_driver(const char *dir, const char *number, const char *driver)
{
	cleanup_free char *device = gs_asprintf("dev/char/%s/device", number);
	cleanup_free char *target = gs_asprintf("../../../bus/pci/drivers/%s", driver);
	cleanup_free char *here = gs_asprintf("%s/x", device);
	cleanup_free char *link = gs_asprintf("%s/%s/driver", dir, device);

	tmpdir_write(dir, here, "");
	assert_int_equal(symlink(target, link), 0);
}

/* A pattern whose beginning is not known must not be lost by the short cut. */
static void test_nodes_that_begin_with_anything(void **state)
{
	static const char *const globs[] = { "/dev/*card",     "/dev/ab*",     "/dev/{a*,xyz}",
					     "/dev/{ab,xyz}q", "/dev/{,abc}d", "/dev/[a-c]bcd" };
	static const char *const paths[] = { "/dev/mycard", "/dev/abc", "/dev/apple",
					     "/dev/abq",    "/dev/d",	"/dev/cbcd" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(globs); i++) {
		cleanup_free char *nodes =
			gs_asprintf("\"nodes\":[{\"glob\":\"%s\",\"kind\":\"card\"}]", globs[i]);
		cleanup_free char *text =
			gs_asprintf("{\"name\":\"acme\",\"title\":\"A\",%s}", nodes);
		cleanup_catalogue struct gs_catalogue cat;
		const struct gs_node *node;
		struct gs_err err = { 0 };

		tmpdir_write(*state, "acme.json", text);
		if (load(&cat, *state, NULL, &err) < 0)
			fail_msg("%s", err.msg);
		if (!gs_catalogue_node(&cat, paths[i], 1, 1, &node))
			fail_msg("%s is not found by %s", paths[i], globs[i]);
	}
}

/* /dev/dri belongs to several makers: only the driver behind the number tells whose a node is. */
static void test_drm_nodes_are_told_apart_by_driver(void **state)
{
	static const struct {
		const char *driver, *vendor;
	} rows[] = {
		{ "amdgpu", "amd" },  { "nvidia", "nvidia" },  { "i915", "intel" },
		{ "xe", "intel" },    { "mtgpu", "mthreads" }, { "metax", "metax" },
		{ "hydcu", "hygon" }, { "ast", NULL },	       { "amdgpu-evil", NULL },
	};
	cleanup_catalogue struct gs_catalogue cat;

	load_shipped(&cat);
	gs_catalogue_sysfs = *state;
	for (unsigned int i = 0; i < GS_ARRAY_SIZE(rows); i++) {
		cleanup_free char *number = gs_asprintf("226:%u", 128 + i);

		fake_driver(*state, number, rows[i].driver);
		for (size_t v = 0; v < cat.n; v++) {
			bool want = rows[i].vendor && strcmp(cat.v[v].name, rows[i].vendor) == 0;

			if (!!gs_vendor_node(&cat.v[v], "/dev/dri/renderD128", 226, 128 + i) !=
			    want)
				fail_msg("%s and driver %s: not %d", cat.v[v].name, rows[i].driver,
					 want);
		}
	}
	/* nothing known about the number: nobody's */
	for (size_t v = 0; v < cat.n; v++)
		assert_null(gs_vendor_node(&cat.v[v], "/dev/dri/renderD128", 226, 200));
	/* the number decides, not the name */
	assert_non_null(gs_vendor_node(find(&cat, "amd"), "/dev/dri/card7", 226, 128));
	assert_null(gs_vendor_node(find(&cat, "amd"), "/dev/dri/by-path/x", 226, 128));
}

static void test_variables(void **state)
{
	cleanup_catalogue struct gs_catalogue cat;
	const struct gs_vendor *nvidia;
	const struct gs_env *env;

	load_shipped(&cat);
	nvidia = find(&cat, "nvidia");
	env = gs_vendor_env(nvidia, "NVIDIA_VISIBLE_DEVICES=all", 22);
	assert_non_null(env);
	assert_true(env->selects);
	assert_int_equal(env->merge, GS_ENV_LIST);
	assert_null(gs_vendor_env(nvidia, "NVIDIA_VISIBLE_DEVICES=all", 23));
	assert_null(gs_vendor_env(nvidia, "NVIDIA_VISIBLE_DEVICES", 21));
	assert_null(gs_vendor_env(nvidia, "", 0));
	assert_null(gs_vendor_env(nvidia, "LD_PRELOAD", 10));
	assert_int_equal(gs_vendor_env(nvidia, "CUDA_VISIBLE_DEVICES", 20)->merge, GS_ENV_LOCAL);
	assert_true(gs_strv_has(&nvidia->select_none, ""));
	assert_string_equal(nvidia->select_none.v[0], "void");
	for (size_t v = 0; v < cat.n; v++) {
		assert_null(gs_vendor_env(&cat.v[v], "LD_PRELOAD", 10));
		assert_null(gs_vendor_env(&cat.v[v], "LD_LIBRARY_PATH", 15));
		assert_null(gs_vendor_env(&cat.v[v], "PATH", 4));
	}
}

/* What a specification written by nvidia-ctk mounts, host path and destination. */
static void test_mounts_of_an_nvidia_cdi_spec(void **state)
{
	static const char *const same[] = {
		"/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15",
		"/usr/lib/aarch64-linux-gnu/libcuda.so.570.86.15",
		"/usr/lib64/libcuda.so.570.86.15",
		"/usr/lib64/libcudadebugger.so.570.86.15",
		"/lib/x86_64-linux-gnu/libnvidia-ml.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
		"/usr/lib/x86_64-linux-gnu/libnvidia-ptxjitcompiler.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libnvidia-egl-gbm.so.1.1.2",
		"/usr/lib/x86_64-linux-gnu/libnvcuvid.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libnvoptix.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libGLX_nvidia.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libGLESv2_nvidia.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/libGLESv1_CM_nvidia.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so",
		"/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.535.183.01",
		"/usr/lib32/libcuda.so.570.86.15",
		"/usr/lib/xorg/modules/drivers/nvidia_drv.so",
		"/usr/lib/xorg/modules/extensions/libglxserver_nvidia.so.570.86.15",
		"/usr/lib/x86_64-linux-gnu/nvidia/xorg/nvidia_drv.so",
		"/usr/bin/nvidia-smi",
		"/usr/bin/nvidia-debugdump",
		"/usr/bin/nvidia-persistenced",
		"/usr/bin/nvidia-cuda-mps-control",
		"/usr/bin/nvidia-cuda-mps-server",
		"/usr/bin/nvidia-imex",
		"/lib/firmware/nvidia/570.86.15/gsp_ga10x.bin",
		"/usr/lib/firmware/nvidia/570.86.15/gsp_tu10x.bin",
		"/usr/share/nvidia/nvoptix.bin",
		"/etc/vulkan/icd.d/nvidia_icd.json",
		"/usr/share/vulkan/icd.d/nvidia_icd.json",
		"/etc/vulkan/implicit_layer.d/nvidia_layers.json",
		"/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
		"/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
		"/usr/share/X11/xorg.conf.d/10-nvidia.conf",
		"/usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
		"/run/nvidia-persistenced/socket",
		"/var/run/nvidia-persistenced/socket",
		"/run/nvidia-fabricmanager/socket",
		"/tmp/nvidia-mps",
	};
	cleanup_catalogue struct gs_catalogue cat;
	const struct gs_vendor *nvidia;

	load_shipped(&cat);
	nvidia = find(&cat, "nvidia");
	for (size_t i = 0; i < GS_ARRAY_SIZE(same); i++) {
		cleanup_free char *driver_root = gs_asprintf("/run/nvidia/driver%s", same[i]);
		cleanup_free char *pod =
			gs_asprintf("/var/lib/kubelet/pods/u/volumes/x%s", same[i]);

		if (!gs_vendor_mount(nvidia, same[i], same[i]))
			fail_msg("not the vendor's: %s", same[i]);
		if (!gs_vendor_mount(nvidia, same[i], driver_root))
			fail_msg("not the vendor's: %s from the driver container", same[i]);
		if (gs_vendor_mount(nvidia, same[i], pod))
			fail_msg("took %s from a pod's volume", same[i]);
	}
	/* the volume-mounts device list strategy */
	assert_true(
		gs_vendor_mount(nvidia, "/var/run/nvidia-container-devices/GPU-0aa1", "/dev/null")
			->selects);
	assert_false(
		gs_vendor_mount(nvidia, "/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi")->selects);
}

/*
 * A pod's author chooses the destinations of his own volumes, and what is in them. Nothing that
 * is not the vendor's file on the host may be taken for one, wherever it is mounted.
 */
static void test_hostile_mounts_are_nobodys(void **state)
{
	static const struct {
		const char *to, *from;
	} rows[] = {
		{ "/usr/lib64/libcuda.so.1",
		  "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/v/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1",
		  "/var/lib/kubelet/pods/u/volumes/kubernetes.io~secret/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1",
		  "/var/lib/kubelet/pods/u/volume-subpaths/v/c/0/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "/etc/shadow" },
		{ "/usr/lib64/libcuda.so.1", "/" },
		{ "/usr/lib64/libcuda.so.1", "/usr/lib64/libc.so.6" },
		{ "/usr/lib64/libcuda.so.1", "/usr/lib64" },
		{ "/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.1/../../../etc/shadow" },
		{ "/usr/lib64/libcuda.so.1", "/usr/lib64/x/../libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "/usr/lib64//libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "/usr/lib64/./libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "/evil/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "/run/nvidia/driver/../evil/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "/run/nvidia/driver-evil/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/libcuda.so.1", "" },
		{ "/usr/lib64/libcuda.so.1/", "/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64/../lib64/libcuda.so.1", "/usr/lib64/libcuda.so.1" },
		{ "/usr/lib64", "/usr/lib64" },
		{ "/data", "/usr/lib64/libcuda.so.1" },
		{ "/etc/passwd", "/usr/lib64/libcuda.so.1" },
		{ "/var/run/nvidia-container-devices/GPU-0", "/etc" },
		{ "/var/run/nvidia-container-devices/GPU-0",
		  "/var/run/nvidia-container-devices/GPU-0" },
		{ "/var/run/nvidia-container-devices/a/b", "/dev/null" },
		{ "/var/run/secrets/kubernetes.io/serviceaccount",
		  "/var/lib/kubelet/pods/u/volumes/kubernetes.io~projected/kube-api-access" },
		{ "/usr/share/nvidia/x", "/usr/share/nvidia/../../../etc/shadow" },
		{ "/usr/share/nvidia/x", "/usr/share/nvidia/.." },
		{ "/usr/share/nvidia/x", "/usr/share/nvidia/" },
		{ "/usr/share/nvidia/..", "/usr/share/nvidia/x" },
		{ "/usr/share/nvidia/", "/usr/share/nvidia/x" },
		{ "/run/nvidia-persistenced/socket", "/run/containerd/containerd.sock" },
		{ "/dev/shm", "/dev/shm" },
		{ "/dev/shm", "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/x/shm" },
		{ "/mps", "/run/nvidia/mps/../../containerd" },
		{ "/proc", "/proc" },
		{ "/etc/hosts", "/var/lib/kubelet/pods/u/etc-hosts" },
		{ "/etc/resolv.conf", "/etc/resolv.conf" },
		{ "/opt/maca", "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/opt/maca" },
		{ "/usr/local/Ascend/driver", "/home/me/usr/local/Ascend/driver" },
	};
	cleanup_catalogue struct gs_catalogue cat;

	load_shipped(&cat);
	for (size_t v = 0; v < cat.n; v++)
		for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++)
			if (gs_vendor_mount(&cat.v[v], rows[i].to, rows[i].from))
				fail_msg("%s took %s from %s", cat.v[v].name, rows[i].to,
					 rows[i].from);
}

static void test_mounts_of_other_shipped_entries(void **state)
{
	static const struct {
		const char *vendor, *path;
	} rows[] = {
		{ "enflame", "/usr/lib/libefml.so.1" },
		{ "enflame", "/usr/bin/efsmi" },
		{ "mthreads", "/usr/lib/x86_64-linux-gnu/libmtml.so.2" },
		{ "mthreads", "/usr/bin/mthreads-gmi" },
		{ "iluvatar", "/usr/local/corex" },
		{ "iluvatar", "/usr/local/corex-4.2.0/lib64/libixml.so" },
		{ "metax", "/opt/mxdriver" },
		{ "metax", "/opt/maca-3.0/lib" },
		{ "biren", "/usr/lib/libbiren-ml.so.1" },
		{ "biren", "/usr/bin/brsmi" },
		{ "ascend", "/usr/local/Ascend/driver" },
		{ "ascend", "/usr/local/Ascend/driver/lib64/common" },
		{ "ascend", "/usr/local/dcmi" },
		{ "ascend", "/usr/local/bin/npu-smi" },
		{ "ascend", "/etc/ascend_install.info" },
		{ "cambricon", "/usr/bin/cnmon" },
		{ "hygon", "/opt/hyhal" },
		{ "kunlunxin", "/usr/local/xpu/lib" },
	};
	cleanup_catalogue struct gs_catalogue cat;

	load_shipped(&cat);
	for (size_t i = 0; i < GS_ARRAY_SIZE(rows); i++)
		for (size_t v = 0; v < cat.n; v++) {
			bool want = strcmp(cat.v[v].name, rows[i].vendor) == 0;

			if (!!gs_vendor_mount(&cat.v[v], rows[i].path, rows[i].path) != want)
				fail_msg("%s and %s: not %d", cat.v[v].name, rows[i].path, want);
		}
}

/* However wide an administrator's pattern is, a pod's own volume is never the driver's. */
static void test_wide_pattern_does_not_reach_volumes(void **state)
{
	cleanup_catalogue struct gs_catalogue cat;
	struct gs_err err = { 0 };

	write_vendor(*state, "x.json", "x",
		     "\"mounts\": [{\"to\": \"/x/*\", \"from\": [\"/*/*/*/*/*/*/*/*\", "
		     "\"/*/*\"]}, \"/y/*\"], \"mount_roots\": [\"/opt/x\"]");
	assert_int_equal(load(&cat, *state, NULL, &err), 0);
	assert_null(gs_vendor_mount(&cat.v[0], "/x/a",
				    "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/v"));
	assert_null(gs_vendor_mount(&cat.v[0], "/x/a", "/data/kl/pods/u/volume-subpaths/v/c/0"));
	assert_non_null(gs_vendor_mount(&cat.v[0], "/x/a", "/a/b"));
	/* roots that do not hold "" leave the host's own path out */
	assert_non_null(gs_vendor_mount(&cat.v[0], "/y/a", "/opt/x/y/a"));
	assert_null(gs_vendor_mount(&cat.v[0], "/y/a", "/y/a"));
}

static void test_hooks_and_next_runtimes(void **state)
{
	cleanup_catalogue struct gs_catalogue cat;
	const struct gs_vendor *nvidia;

	load_shipped(&cat);
	nvidia = find(&cat, "nvidia");
	assert_true(gs_vendor_hook(nvidia, "/usr/bin/nvidia-cdi-hook"));
	assert_true(gs_vendor_hook(nvidia, "/usr/local/nvidia/toolkit/nvidia-ctk"));
	assert_false(gs_vendor_hook(nvidia, "/usr/bin/nvidia-container-runtime-hook"));
	assert_false(gs_vendor_hook(nvidia, "/usr/bin/nvidia-ctk-evil"));
	assert_false(gs_vendor_hook(nvidia, "/tmp/../usr/bin/nvidia-ctk"));
	assert_false(gs_vendor_hook(nvidia, "nvidia-ctk"));
	assert_true(gs_vendor_next_hook(nvidia, "/usr/bin/nvidia-container-runtime-hook"));
	assert_true(gs_vendor_next_hook(nvidia, "/usr/bin/nvidia-container-toolkit"));
	assert_false(gs_vendor_next_hook(nvidia, "/usr/bin/nvidia-cdi-hook"));
	assert_true(gs_vendor_next_runtime(nvidia, "/usr/bin/nvidia-container-runtime"));
	assert_true(gs_vendor_next_runtime(nvidia, "nvidia-container-runtime.cdi"));
	assert_false(gs_vendor_next_runtime(nvidia, "/usr/bin/nvidia-container-runtime-hook"));
	assert_false(gs_vendor_next_runtime(nvidia, "/nvidia-container-runtime/runc"));
	assert_true(gs_strv_has(&nvidia->chrdevs, "nvidia-uvm"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_later_folder_replaces_by_file_name),
		T(test_folders_that_are_missing_or_empty),
		T(test_one_name_twice_names_both_files),
		T(test_file_that_cannot_be_read),
		T(test_mistakes_have_file_line_column_and_key),
		T(test_shipped_entries_are_complete),
		T(test_nodes_of_shipped_entries),
		T(test_nodes_that_begin_with_anything),
		T(test_drm_nodes_are_told_apart_by_driver),
		T(test_variables),
		T(test_mounts_of_an_nvidia_cdi_spec),
		T(test_hostile_mounts_are_nobodys),
		T(test_mounts_of_other_shipped_entries),
		T(test_wide_pattern_does_not_reach_volumes),
		T(test_hooks_and_next_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
