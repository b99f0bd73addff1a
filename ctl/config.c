// SPDX-License-Identifier: Apache-2.0
/* gpusharectl config check: is the configuration right, and the catalogue, and what do they say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/catalogue.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/sections.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

/* What the file says for other names and programs: checked when it was loaded, kept nowhere. */
static void add_sections(json_t *config, const char *file)
{
	static const char *const sections[] = { "profiles", "agent", "controller" };
	cleanup_json json_t *root = json_load_file(file, 0, NULL);

	for (size_t i = 0; i < GS_ARRAY_SIZE(sections); i++) {
		json_t *section = json_object_get(root, sections[i]);

		if (json_is_object(section))
			(void)json_object_set(config, sections[i], section);
	}
}

/* The configuration in force, in the shape of the file. */
static json_t *config_json(const struct gs_config *config)
{
	static const char *const cri[] = { "containerd", "cri-o", "none" };
	static const char *const cross_pod[] = { "grant", "annotation" };
	static const char *const level[] = { "error", "warn", "info", "debug" };

	json_t *json;

	json = json_pack("{s:o,s:s,s:s,s:s,s:s,s:o,s:s,s:b,s:b,s:o,s:i,s:{s:s,s:s?}}", "next",
			 gs_json_list(&config->next), "cri", cri[config->cri], "run_dir",
			 config->run_dir, "lib_dir", config->lib_dir, "hook", config->hook,
			 "vendor_dirs", gs_json_list(&config->vendor_dirs), "cross_pod",
			 cross_pod[config->cross_pod], "fence_privileged", config->fence_privileged,
			 "refuse_unconfirmed", config->refuse_unconfirmed, "state_dirs",
			 gs_json_list(&config->state_dirs), "create_wait_ms",
			 (int)config->create_wait_ms, "log", "level", level[config->log_level],
			 "file", config->log_file);
	add_sections(json, config->path);
	return json;
}

/* What is gathered while the catalogue's files are read. */
struct vendors {
	struct ctl_table table;
	json_t *json;
	bool wrong;
};

static void add_count(struct ctl_table *table, size_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%zu", n);
	ctl_table_add(table, text);
}

static void add_vendor(const char *file, const struct gs_vendor *v, const struct gs_err *wrong,
		       void *arg)
{
	struct vendors *vendors = arg;

	if (!v) {
		/* The message begins with the file's name. */
		(void)ctl_failed(wrong);
		vendors->wrong = true;
		return;
	}
	ctl_table_add(&vendors->table, v->name);
	add_count(&vendors->table, v->n_nodes);
	add_count(&vendors->table, v->n_envs);
	add_count(&vendors->table, v->n_mounts);
	ctl_table_add(&vendors->table, file);
	(void)json_array_append_new(vendors->json,
				    json_pack("{s:s,s:s,s:i,s:i,s:i,s:o}", "name", v->name, "file",
					      file, "nodes", (int)v->n_nodes, "env", (int)v->n_envs,
					      "mounts", (int)v->n_mounts, "resources",
					      gs_json_list(&v->resources)));
}

/* Checks every file of the catalogue; CTL_FAILED, after telling, where one is wrong. */
static int check_vendors(const struct gs_config *config, struct vendors *vendors)
{
	static const char *const heading[] = { "VENDOR", "NODES", "ENV", "MOUNTS", "FILE" };
	struct gs_err err = { 0 };

	vendors->table.columns = GS_ARRAY_SIZE(heading);
	vendors->json = json_array();
	for (size_t i = 0; i < GS_ARRAY_SIZE(heading); i++)
		ctl_table_add(&vendors->table, heading[i]);
	if (gs_catalogue_check(&config->vendor_dirs, add_vendor, vendors, &err) < 0)
		return ctl_failed(&err);
	return vendors->wrong ? CTL_FAILED : CTL_OK;
}

/* Is there a program @name on the search path @path? Only absolute parts count, as at create. */
static bool on_path(const char *name, const char *path)
{
	while (path && *path) {
		size_t len = strcspn(path, ":");
		cleanup_free char *file = gs_asprintf("%.*s/%s", (int)len, path, name);

		if (path[0] == '/' && access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* What is no mistake in the file, but would show at the first container. */
static void warn(const struct gs_config *config)
{
	bool found = false;

	for (size_t i = 0; i < config->next.n && !found; i++) {
		const char *name = config->next.v[i];

		found = strchr(name, '/') ?
				access(name, X_OK) == 0 :
				on_path(name, getenv("PATH")) || on_path(name, GS_SYSTEM_PATH);
	}
	if (!found)
		ctl_say("warning: none of the runtimes in \"next\" is installed");
	if (access(config->hook, X_OK) < 0)
		ctl_say("warning: the program of \"hook\", %s: %s", config->hook, strerror(errno));
}

static void print(const struct gs_config *config, bool there, struct vendors *vendors,
		  enum ctl_format format)
{
	if (format == CTL_JSON) {
		ctl_print_json(json_pack("{s:s,s:b,s:o,s:O}", "file", config->path, "exists", there,
					 "config", config_json(config), "vendors", vendors->json));
		return;
	}
	printf("%s: %s\n", config->path, there ? "ok" : "no such file, so the defaults");
	ctl_print_json(config_json(config));
	if (json_array_size(vendors->json))
		ctl_table_print(&vendors->table);
}

static int check(const char *file, enum ctl_format format)
{
	cleanup_config struct gs_config config = { 0 };
	struct vendors vendors = { 0 };
	struct gs_err err = { 0 };
	bool there;
	int r;

	gs_config_init(&config);
	if (file) {
		char *path = realpath(file, NULL);

		if (!path) {
			ctl_say("%s: %s", file, strerror(errno));
			return CTL_FAILED;
		}
		free(config.path);
		config.path = path;
	}
	there = access(config.path, F_OK) == 0;
	if (gs_config_load(&config, NULL, &err) < 0 || gs_sections_check(config.path, &err) < 0)
		return ctl_failed(&err);
	r = check_vendors(&config, &vendors);
	print(&config, there, &vendors, format);
	warn(&config);
	if (r != CTL_OK)
		ctl_say("the catalogue counts as broken: until that is mended every container that "
			"asks for devices is refused");
	ctl_table_free(&vendors.table);
	json_decref(vendors.json);
	return r;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	enum ctl_format format = CTL_TABLE;
	int opt, r;

	while ((opt = ctl_getopt(&ctl_config, argc, argv, ":ho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_config);
		if (opt != 'o')
			return CTL_USAGE;
		r = ctl_read_format(&ctl_config, optarg, 0, &format);
		if (r != CTL_OK)
			return r;
	}
	if (optind == argc)
		return ctl_misused(&ctl_config, "config needs to know what to do: check");
	if (strcmp(argv[optind], "check") != 0)
		return ctl_misused(&ctl_config, "config can check, not %s", argv[optind]);
	if (argc - optind > 2)
		return ctl_misused(&ctl_config, "config check takes one file");
	return check(argv[optind + 1], format);
}

const struct ctl_verb ctl_config = {
	.name = "config",
	.summary = "check the configuration and the vendor catalogue",
	.help = "usage: gpusharectl config check [-o json] [FILE]\n"
		"\n"
		"Reads the configuration - FILE, else $GPUSHARE_CONFIG, else the system's - and\n"
		"the vendor catalogue that it names. Prints what is in force, defaults included,\n"
		"and one line for each vendor; and what is wrong, with file, line and column.\n"
		"\n"
		"  -o json  one JSON object instead\n"
		"\n"
		"Example: gpusharectl config check ./config.json\n",
	.run = run,
};
