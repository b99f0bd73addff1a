// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of the vendor catalogue. Input: an entry's text, and behind a NUL byte paths, one a
 * line, that are matched against it.
 */
#include <errno.h>

#include "common/catalogue.h"
#include "common/glob.h"
#include "tests/fuzz/fuzz.h"

/* What gs_path_plain() promises, apart from lengths. */
static bool is_plain(const char *path)
{
	char *ended = gs_asprintf("%s/", path);
	bool plain = path[0] == '/' && !strstr(ended, "//") && !strstr(ended, "/./") &&
		     !strstr(ended, "/../");

	free(ended);
	return plain;
}

static void match(const struct gs_vendor *vendor, const char *path)
{
	bool plain = is_plain(path);

	CHECK(!gs_path_plain(path) || plain);
	CHECK(!gs_vendor_node(vendor, path, 1, 3) || plain);
	CHECK(!gs_vendor_mount(vendor, path, path) || plain);
	CHECK(!gs_vendor_hook(vendor, path) || plain);
	CHECK(!gs_vendor_next_hook(vendor, path) || plain);
	(void)gs_vendor_mount(vendor, "/usr/lib/libx.so.1", path);
	(void)gs_vendor_mount(vendor, path, "/dev/null");
	(void)gs_vendor_env(vendor, path, strlen(path));
	(void)gs_vendor_next_runtime(vendor, path);
}

/* What a loaded entry promises to those who use it. */
static void check_vendor(const struct gs_vendor *v)
{
	CHECK(v->name && v->name[0] && !strchr(v->name, '/') && v->n_nodes && v->roots.n);
	for (size_t i = 0; i < v->n_nodes; i++)
		CHECK(strncmp(v->nodes[i].glob, "/dev/", 5) == 0 &&
		      !gs_glob_mistake(v->nodes[i].glob));
	for (size_t i = 0; i < v->n_mounts; i++)
		CHECK(v->mounts[i].to[0] == '/' && !gs_glob_mistake(v->mounts[i].to));
	for (size_t i = 0; i < v->n_envs; i++)
		CHECK(v->envs[i].name[0] && !strchr(v->envs[i].name, '='));
	for (size_t i = 0; i < v->hooks.n; i++)
		CHECK(!gs_glob_mistake(v->hooks.v[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *dirs[] = { (char *)fuzz_dir() };
	const struct gs_strv list = { dirs, 1 };
	struct gs_catalogue cat = { 0 };
	struct gs_err err = { 0 };
	char *text = next_part(&data, &size, '\0');
	int r;

	fuzz_file("x.json", text, strlen(text));
	r = gs_catalogue_load(&cat, &list, &err);
	if (r < 0) {
		check_error(r, &err);
		CHECK(strstr(err.msg, "/x.json") && !cat.v);
	} else {
		CHECK(cat.n == 1);
		check_vendor(&cat.v[0]);
		match(&cat.v[0], "/dev/nvidia0");
		match(&cat.v[0], "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
		while (size) {
			char *path = next_part(&data, &size, '\n');

			match(&cat.v[0], path);
			free(path);
		}
	}
	gs_catalogue_free(&cat);
	free(text);
	return 0;
}
