// SPDX-License-Identifier: Apache-2.0
/* Which containers the kernel module's names stand for, by the registry. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/identity.h"
#include "common/kname.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "ctl/names.h"

void ctl_names_free(struct ctl_names *names)
{
	gs_strv_free(&names->keys);
	gs_strv_free(&names->labels);
}

/* Takes @key. The first one that has it keeps it. */
static void learn(struct ctl_names *names, char *key, const char *label)
{
	if (gs_strv_has(&names->keys, key)) {
		free(key);
		return;
	}
	gs_strv_take(&names->keys, key);
	gs_strv_add(&names->labels, label);
}

static void learn_record(struct ctl_names *names, const struct gs_record *rec)
{
	cleanup_free char *label = NULL;
	gs_kname name;

	if (!gs_identity_is_set(&rec->identity))
		return;
	label = gs_identity_text(&rec->identity);
	gs_kname_watch(rec, name);
	learn(names, gs_strdup(name), label);
	gs_kname_holding(rec, name);
	learn(names, gs_strdup(name), label);
}

static void read_registry(struct ctl_names *names)
{
	cleanup_strv struct gs_strv ids = { 0 };

	if (gs_registry_ids(names->run_dir, &ids, NULL) < 0)
		return;
	for (size_t i = 0; i < ids.n; i++) {
		cleanup_record struct gs_record rec = { 0 };

		if (!gs_strv_has(&names->keys, ids.v[i]) &&
		    gs_registry_read(names->run_dir, ids.v[i], &rec, NULL) == 0)
			learn_record(names, &rec);
	}
}

static const char *look_up(const struct ctl_names *names, const char *name)
{
	for (size_t i = 0; i < names->keys.n; i++)
		if (strcmp(names->keys.v[i], name) == 0)
			return names->labels.v[i];
	return NULL;
}

const char *ctl_names_find(struct ctl_names *names, const char *name)
{
	const char *label;

	if (!names || !*name)
		return NULL;
	label = look_up(names, name);
	if (!label) {
		read_registry(names);
		label = look_up(names, name);
	}
	if (!label) {
		/* A record is older than what is named for it: there will be none. */
		learn(names, gs_strdup(name), "");
		return NULL;
	}
	return *label ? label : NULL;
}

const char *ctl_names_label(struct ctl_names *names, const char *name)
{
	const char *label = ctl_names_find(names, name);

	return label ? label : name;
}
