// SPDX-License-Identifier: Apache-2.0
/*
 * Finding containers that were made before gpushare was installed, by their bundles. The layouts
 * are containerd's (<state>/<namespace>/<id>/{config.json,init.pid}) and CRI-O's
 * (<storage>/overlay-containers/<id>/userdata/{config.json,pidfile}).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/registry.h"
#include "runtime/source.h"

#define USERDATA "userdata"

struct scan {
	const struct gs_config *config;
	const struct gs_identity *name;
	char *own; /* real path of the bundle that is being created */
	void (*each)(struct gs_record *record, struct spec *spec, void *arg);
	void *arg;
};

static bool has_record(const struct scan *scan, const char *id)
{
	cleanup_free char *path =
		gs_asprintf("%s/" GS_REGISTRY_CONTAINERS "/%s.json", scan->config->run_dir, id);

	return access(path, F_OK) == 0;
}

/* Did it get its devices through us? Then it is not older than gpushare: its record is lost. */
static bool is_ours(const struct gs_config *config, const struct spec *spec)
{
	for (size_t i = 0; i < spec->n_hooks; i++) {
		const char *slash = strrchr(spec->hook[i].path, '/');

		if (strcmp(spec->hook[i].path, config->hook) == 0 ||
		    (slash && strcmp(slash, "/gpushare-hook") == 0))
			return true;
	}
	return false;
}

static char *pid_file_of(const char *dir)
{
	char *path = gs_asprintf("%s/init.pid", dir);

	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return gs_asprintf("%s/pidfile", dir);
}

/* Looks at one bundle; what can't be read is not the source, and never stops the search. */
static void look(struct scan *scan, const char *dir, const char *id)
{
	cleanup_free char *path = gs_asprintf("%s/config.json", dir);
	cleanup_free char *text = NULL;
	cleanup_spec struct spec spec = { 0 };
	cleanup_who struct who who = { 0 };
	cleanup_record struct gs_record record = { 0 };
	char boot_id[37];
	size_t len;

	if (!gs_id_valid(id) || has_record(scan, id))
		return;
	if (gs_file_read(AT_FDCWD, path, 0, SPEC_MAX, &text, &len, NULL, NULL) < 0)
		return;
	/* most bundles are ruled out without parsing them */
	if (!memmem(text, len, scan->name->pod, strlen(scan->name->pod)))
		return;
	if (spec_read(&spec, gs_steal(text), len, NULL) < 0)
		return;
	if (who_read(&spec, scan->config->cri, &who, NULL) < 0 || !gs_identity_is_set(&who.id) ||
	    !gs_identity_equal(&who.id, scan->name))
		return;
	if (gs_boot_id(boot_id, NULL) < 0)
		return;
	record.id = gs_strdup(id);
	record.bundle = gs_strdup(dir);
	record.pid_file = pid_file_of(dir);
	record.identity = who.id;
	who.id = (struct gs_identity){ 0 };
	record.sandbox_id = gs_steal(who.sandbox_id);
	record.pod_uid = gs_steal(who.pod_uid);
	record.annotations = spec_our_annotations(&spec);
	record.role = is_ours(scan->config, &spec) ? GS_ROLE_TARGET : GS_ROLE_HOLDER;
	record.cgroups_path = gs_strdup(spec.cgroups_path);
	record.boot_id = gs_strdup(boot_id);
	scan->each(&record, &spec, scan->arg);
}

/* All bundles in @dir: <id>/config.json, or <id>/userdata/config.json. */
static void scan_dir(struct scan *scan, const char *dir)
{
	cleanup_dir DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)) != NULL) {
		cleanup_free char *bundle = NULL;
		cleanup_free char *userdata = NULL;

		if (e->d_name[0] == '.')
			continue;
		bundle = gs_asprintf("%s/%s", dir, e->d_name);
		userdata = gs_asprintf("%s/" USERDATA, bundle);
		if (access(userdata, F_OK) == 0) {
			free(bundle);
			bundle = gs_steal(userdata);
		}
		if (!scan->own || strcmp(bundle, scan->own) != 0)
			look(scan, bundle, e->d_name);
	}
}

/* The folder that holds @bundle's siblings; NULL where it has none. */
static char *siblings(const char *bundle)
{
	char *dir = gs_strdup(bundle);
	char *slash = strrchr(dir, '/');

	if (slash && strcmp(slash, "/" USERDATA) == 0) {
		*slash = '\0';
		slash = strrchr(dir, '/');
	}
	if (!slash || slash == dir) {
		free(dir);
		return NULL;
	}
	*slash = '\0';
	return dir;
}

void scan_bundles(const struct gs_config *config, const char *bundle,
		  const struct gs_identity *name,
		  void (*each)(struct gs_record *record, struct spec *spec, void *arg), void *arg)
{
	cleanup_free char *own = realpath(bundle, NULL);
	cleanup_free char *beside = own ? siblings(own) : NULL;
	struct scan scan = { config, name, own, each, arg };

	if (beside)
		scan_dir(&scan, beside);
	for (size_t i = 0; i < config->state_dirs.n; i++) {
		cleanup_free char *dir = realpath(config->state_dirs.v[i], NULL);

		if (dir && (!beside || strcmp(dir, beside) != 0))
			scan_dir(&scan, dir);
	}
}
