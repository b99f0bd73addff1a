// SPDX-License-Identifier: Apache-2.0
/* The configuration file: it is read or refused, and what it does not set has its default. */
#include <errno.h>

#include "common/config.h"
#include "tests/fuzz/fuzz.h"

static void check_paths(const struct gs_strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		CHECK(list->v[i][0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_config struct gs_config config;
	struct gs_err err = { 0 };
	int r;

	fuzz_file("config.json", data, size);
	gs_config_init(&config);
	free(config.path);
	config.path = gs_asprintf("%s/config.json", fuzz_dir());
	r = gs_config_load(&config, "crun", &err);
	if (r < 0) {
		check_error(r, &err);
		CHECK(strstr(err.msg, "config.json"));
	}
	/* also after an error */
	CHECK(config.next.n && config.run_dir[0] == '/' && config.lib_dir[0] == '/' &&
	      config.hook[0] == '/');
	for (size_t i = 0; i < config.next.n; i++)
		CHECK(config.next.v[i][0] == '/' || !strchr(config.next.v[i], '/'));
	check_paths(&config.vendor_dirs);
	check_paths(&config.state_dirs);
	CHECK(config.create_wait_ms <= 15000);
	return 0;
}
