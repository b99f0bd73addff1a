// SPDX-License-Identifier: Apache-2.0
/* gpusharectl grant: the list, and finding a grant by the beginning of its name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/grant.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "ctl/grant.h"
#include "ctl/table.h"
#include "gpushare/grant.h"

#define PREFIX_MIN 6

int ctl_grant_find(const char *lib_dir, const char *prefix, char **ret, struct gs_err *err)
{
	size_t len = strlen(prefix), found = 0;
	cleanup_strv struct gs_strv names = { 0 };
	const char *name = NULL;
	char buf[10];
	int r;

	if (len < PREFIX_MIN || len > GS_GRANT_NAME_LEN ||
	    strspn(prefix, "0123456789abcdef") != len)
		return gs_err_set(err, EINVAL, "a grant is named by at least %d of its hex digits",
				  PREFIX_MIN);
	r = gs_grant_list(lib_dir, &names, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n; i++) {
		if (strncmp(names.v[i], prefix, len) != 0)
			continue;
		name = names.v[i];
		found++;
	}
	if (found == 0)
		return gs_err_set(err, ENOENT, "no grant %s in %s/%s (see --list)",
				  gs_grant_short(prefix, buf), lib_dir, GS_GRANT_DIR);
	if (found > 1)
		return gs_err_set(err, EEXIST, "%zu grants begin with %s; give more digits", found,
				  gs_grant_short(prefix, buf));
	*ret = gs_strdup(name);
	return 0;
}

/* The sources' names; and that of the one who may use it, NULL where anybody may. */
static void read_names(const struct gs_grant *grant, struct gs_strv *sources, char **to)
{
	for (size_t i = 0; i < grant->n_sources; i++)
		gs_strv_take(sources, gs_identity_text(&grant->sources[i]));
	*to = gs_identity_is_set(&grant->to) ? gs_identity_text(&grant->to) : NULL;
}

json_t *ctl_grant_json(const struct gs_grant *grant, const char *key, const char *name)
{
	cleanup_strv struct gs_strv sources = { 0 };
	cleanup_free char *to = NULL;

	read_names(grant, &sources, &to);
	return json_pack("{s:s,s:s,s:o,s:s?,s:o,s:s?}", key, name, "kind",
			 grant->kind == GS_GRANT_SPOT ? "spot" : "share", "sources",
			 gs_json_list(&sources), "to", to, "cards", gs_json_list(&grant->cards),
			 "resource", grant->resource);
}

/* active, revoked or, for a spot grant whose lease has run out, expired. */
static const char *state_of(const struct gs_grant *grant)
{
	if (grant->revoked)
		return "revoked";
	return gs_grant_in_force(grant, NULL) == 0 ? "active" : "expired";
}

static void add_row(struct ctl_table *table, const struct gs_grant *grant, bool bound)
{
	cleanup_strv struct gs_strv names = { 0 };
	cleanup_free char *to = NULL, *sources = NULL, *cards = gs_strv_join(&grant->cards);
	char buf[10];

	read_names(grant, &names, &to);
	sources = gs_strv_join(&names);
	ctl_table_add(table, gs_grant_short(grant->name, buf));
	ctl_table_add(table, grant->kind == GS_GRANT_SPOT ? "spot" : "share");
	ctl_table_add(table, state_of(grant));
	ctl_table_add(table, bound ? "yes" : "no");
	ctl_table_add(table, sources);
	ctl_table_add(table, to);
	ctl_table_add(table, cards);
}

static json_t *row_json(const struct gs_grant *grant, bool bound)
{
	char prefix[PREFIX_MIN + 1];
	json_t *row;

	(void)snprintf(prefix, sizeof(prefix), "%.*s", PREFIX_MIN, grant->name);
	row = ctl_grant_json(grant, "prefix", prefix);
	(void)json_object_set_new(row, "state", json_string(state_of(grant)));
	(void)json_object_set_new(row, "bound", json_boolean(bound));
	return row;
}

int ctl_grant_list(const char *lib_dir, enum ctl_format format)
{
	static const char *const heading[] = { "NAME",	  "KIND", "STATE", "BOUND",
					       "SOURCES", "TO",	  "CARDS" };
	cleanup_table struct ctl_table table = { .columns = GS_ARRAY_SIZE(heading) };
	cleanup_json json_t *all = json_array();
	cleanup_strv struct gs_strv names = { 0 };
	struct gs_err err = { 0 };
	int ret = CTL_OK;

	if (gs_grant_list(lib_dir, &names, &err) < 0)
		return ctl_failed(&err);
	for (size_t i = 0; i < GS_ARRAY_SIZE(heading); i++)
		ctl_table_add(&table, heading[i]);
	for (size_t i = 0; i < names.n; i++) {
		cleanup_grant struct gs_grant grant = { 0 };
		bool bound = gs_grant_is_bound(lib_dir, names.v[i]);

		if (gs_grant_read(lib_dir, names.v[i], &grant, &err) < 0) {
			ret = ctl_failed(&err);
			continue;
		}
		add_row(&table, &grant, bound);
		(void)json_array_append_new(all, row_json(&grant, bound));
	}
	if (format == CTL_JSON)
		ctl_print_json(gs_steal(all));
	else if (names.n)
		ctl_table_print(&table);
	else
		ctl_say("no grants in %s/%s", lib_dir, GS_GRANT_DIR);
	return ret;
}
