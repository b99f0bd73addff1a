// SPDX-License-Identifier: Apache-2.0
/* gpusharectl containers: the registry as a table. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/catalogue.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/js.h"
#include "common/json.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

/* How much of an id and how many devices the table shows. */
#define SHORT_ID 12
#define SHOWN_MAX 3

/* One row. */
struct row {
	struct gs_record record;
	pid_t pid; /* 0: not running */
	char *name; /* NULL: it has none */
	struct gs_strv devices, selectors, sources;
};

static void row_free(struct row *row)
{
	gs_record_free(&row->record);
	free(row->name);
	gs_strv_free(&row->devices);
	gs_strv_free(&row->selectors);
	gs_strv_free(&row->sources);
}

/* Does some vendor's chain select cards by this NAME=VALUE? */
static bool selects(const struct gs_catalogue *cat, const char *env)
{
	for (size_t i = 0; i < cat->n; i++) {
		const struct gs_env *known = gs_vendor_env(&cat->v[i], env, strcspn(env, "="));

		if (known && known->selects)
			return true;
	}
	return false;
}

/* @s, if it is one, becomes the list's. */
static void take(struct gs_strv *list, char *s)
{
	if (s)
		gs_strv_take(list, s);
}

/* Takes the devices and the selectors out of the record's slice. */
static void read_slice(const struct gs_catalogue *cat, struct row *row)
{
	struct js spec, list, item, path;
	struct js_iter it;

	if (js_parse(row->record.spec, row->record.spec_len, &spec, NULL) < 0)
		return;
	if (js_path(spec, &list, NULL, "linux", "devices", NULL) == 0)
		for (it = js_iter(list); js_next_element(&it, &item);)
			if (js_member(item, "path", &path, NULL) == 0)
				take(&row->devices, js_string(path));
	if (js_path(spec, &list, NULL, "process", "env", NULL) < 0)
		return;
	for (it = js_iter(list); js_next_element(&it, &item);) {
		char *env = js_string(item);

		if (env && selects(cat, env))
			take(&row->selectors, env);
		else
			free(env);
	}
}

/* A source's name where its record is still there, else the beginning of its id. */
static void read_sources(const char *run_dir, struct row *row)
{
	for (size_t i = 0; i < row->record.sources.n; i++) {
		const char *id = row->record.sources.v[i];
		cleanup_record struct gs_record source = { 0 };

		if (gs_registry_read(run_dir, id, &source, NULL) == 0 &&
		    gs_identity_is_set(&source.identity))
			gs_strv_take(&row->sources, gs_identity_text(&source.identity));
		else
			gs_strv_take(&row->sources, gs_asprintf("%.*s", SHORT_ID, id));
	}
}

static int read_row(const char *run_dir, const char *id, const struct gs_catalogue *cat,
		    struct row *row, struct gs_err *err)
{
	int r = gs_registry_read(run_dir, id, &row->record, err);

	if (r < 0)
		return r;
	if (gs_registry_alive(run_dir, &row->record, &row->pid, NULL) < 0)
		row->pid = 0;
	if (gs_identity_is_set(&row->record.identity))
		row->name = gs_identity_text(&row->record.identity);
	read_slice(cat, row);
	read_sources(run_dir, row);
	return 0;
}

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Joins the list with commas; unless @all, only so many of it and without "/dev/". */
static void join(struct gs_buf *out, const struct gs_strv *list, bool all)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *s = list->v[i];

		if (i == SHOWN_MAX && !all) {
			gs_buf_addf(out, ",+%zu", list->n - i);
			return;
		}
		if (!all && strncmp(s, "/dev/", 5) == 0)
			s += 5;
		gs_buf_addf(out, "%s%s", out->len ? "," : "", s);
	}
}

static void add_row(struct ctl_table *table, const struct row *row, bool wide)
{
	cleanup_buf struct gs_buf devices = { 0 }, sources = { 0 };
	const struct gs_record *record = &row->record;
	char id[SHORT_ID + 1], pid[16] = "gone", grant[10];

	(void)snprintf(id, sizeof(id), "%.*s", SHORT_ID, record->id);
	if (row->pid)
		(void)snprintf(pid, sizeof(pid), "%d", (int)row->pid);
	join(&devices, &row->devices, wide);
	join(&devices, &row->selectors, wide);
	join(&sources, &row->sources, true);
	ctl_table_add(table, wide ? record->id : id);
	ctl_table_add(table, row->name);
	ctl_table_add(table, gs_role_name(record->role));
	ctl_table_add(table, pid);
	ctl_table_add(table, devices.data);
	ctl_table_add(table, sources.data);
	ctl_table_add(table, wide ? record->next : last_part(record->next));
	if (!wide)
		return;
	ctl_table_add(table, record->grant ? gs_grant_short(record->grant, grant) : NULL);
	ctl_table_add(table, record->pod_uid);
	ctl_table_add(table, record->bundle);
}

static json_t *row_json(const struct row *row)
{
	const struct gs_record *record = &row->record;
	const struct gs_identity *name = &record->identity;
	char grant[10];

	return json_pack("{s:s,s:s?,s:s?,s:s?,s:s,s:o,s:o,s:o,s:o,s:o,s:s?,s:s?,s:s?,s:s?,s:s}",
			 "id", record->id, "namespace", name->ns, "pod", name->pod, "container",
			 name->container, "role", gs_role_name(record->role), "pid",
			 row->pid ? json_integer(row->pid) : json_null(), "devices",
			 gs_json_list(&row->devices), "selectors", gs_json_list(&row->selectors),
			 "sources", gs_json_list(&row->sources), "source_ids",
			 gs_json_list(&record->sources), "next", record->next, "grant",
			 record->grant ? gs_grant_short(record->grant, grant) : NULL, "sandbox_id",
			 record->sandbox_id, "pod_uid", record->pod_uid, "bundle", record->bundle);
}

static void add_heading(struct ctl_table *table)
{
	static const char *const heading[] = { "ID",	  "NAMESPACE/POD/CONTAINER",
					       "ROLE",	  "PID",
					       "DEVICES", "SOURCES",
					       "NEXT",	  "GRANT",
					       "POD-UID", "BUNDLE" };

	for (size_t i = 0; i < table->columns; i++)
		ctl_table_add(table, heading[i]);
}

static int show(const struct gs_config *config, enum ctl_format format, bool all)
{
	cleanup_table struct ctl_table table = { .columns = format == CTL_WIDE ? 10 : 7 };
	cleanup_catalogue struct gs_catalogue cat = { 0 };
	cleanup_json json_t *array = json_array();
	cleanup_strv struct gs_strv ids = { 0 };
	struct gs_err err = { 0 };
	int ret = CTL_OK;

	if (gs_registry_ids(config->run_dir, &ids, &err) < 0)
		return ctl_failed(&err);
	/* Without it no selectors are shown, and `config check` says what is wrong with it. */
	(void)gs_catalogue_load(&cat, &config->vendor_dirs, NULL);
	add_heading(&table);
	for (size_t i = 0; i < ids.n; i++) {
		struct row row = { 0 };
		int r = read_row(config->run_dir, ids.v[i], &cat, &row, &err);

		if (r < 0 && r != -ENOENT)
			ret = ctl_failed(&err);
		/* Deleted and gone: the next create of this node takes the record away. */
		if (r == 0 && (all || row.pid || !gs_registry_marked(config->run_dir, ids.v[i]))) {
			add_row(&table, &row, format == CTL_WIDE);
			(void)json_array_append_new(array, row_json(&row));
		}
		row_free(&row);
	}
	if (format == CTL_JSON)
		ctl_print_json(gs_steal(array));
	else if (json_array_size(array))
		ctl_table_print(&table);
	else
		ctl_say("no container of this node holds or receives devices (registry: %s)",
			config->run_dir);
	return ret;
}

static int run(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config = { 0 };
	enum ctl_format format = CTL_TABLE;
	bool all = false;
	int opt, r;

	while ((opt = ctl_getopt(&ctl_containers, argc, argv, ":aho:", longs)) != -1) {
		if (opt == 'h')
			return ctl_help(&ctl_containers);
		if (opt == '?')
			return CTL_USAGE;
		if (opt == 'a')
			all = true;
		r = opt == 'o' ? ctl_read_format(&ctl_containers, optarg, CTL_ALSO_WIDE, &format) :
				 CTL_OK;
		if (r != CTL_OK)
			return r;
	}
	if (optind < argc)
		return ctl_misused(&ctl_containers, "what is %s?", argv[optind]);
	if (ctl_load_config(&config) != CTL_OK)
		return CTL_FAILED;
	return show(&config, format, all);
}

const struct ctl_verb ctl_containers = {
	.name = "containers",
	.summary = "which containers hold and receive devices",
	.help = "usage: gpusharectl containers [-a] [-o json|wide]\n"
		"\n"
		"Lists the registry of this node: every container that holds vendor devices or\n"
		"receives them. PID is \"gone\" where the container's process is not there.\n"
		"\n"
		"  -a, --all  also deleted containers whose record is still there\n"
		"  -o wide    whole ids and paths, the grant, the pod's UID, the bundle\n"
		"  -o json    JSON instead\n"
		"\n"
		"Example: gpusharectl containers -o json | jq '.[] | select(.role==\"target\")'\n",
	.run = run,
};
