// SPDX-License-Identifier: Apache-2.0
/* The configuration file: defaults, reading, checking. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/json.h"
#include "common/xalloc.h"

#ifndef GPUSHARE_LIBEXECDIR
#define GPUSHARE_LIBEXECDIR "/usr/libexec/gpushare"
#endif
#ifndef GPUSHARE_DATADIR
#define GPUSHARE_DATADIR "/usr/share/gpushare"
#endif
#ifndef GPUSHARE_RUNSTATEDIR
#define GPUSHARE_RUNSTATEDIR "/run"
#endif
#ifndef GPUSHARE_LOCALSTATEDIR
#define GPUSHARE_LOCALSTATEDIR "/var"
#endif

#define CONFIG_MAX (1024 * 1024)

/*
 * containerd's shim stops serving the pod while one of its containers is created, and the kubelet
 * gives a create two minutes in all: no configuration may delay it longer than this.
 */
#define CREATE_WAIT_MAX_MS 15000

static const char *const known_keys[] = { "next",
					  "profiles",
					  "cri",
					  "run_dir",
					  "lib_dir",
					  "hook",
					  "vendor_dirs",
					  "cross_pod",
					  "state_dirs",
					  "log",
					  "agent",
					  "controller",
					  "fence_privileged",
					  "create_wait_ms",
					  "refuse_unconfirmed",
					  NULL };

static void set_defaults(struct gs_config *config)
{
	static const char *const next[] = { "nvidia-container-runtime", "runc", "crun" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(next); i++)
		gs_strv_add(&config->next, next[i]);
	config->cri = GS_CRI_CONTAINERD;
	config->run_dir = gs_strdup(GPUSHARE_RUNSTATEDIR "/gpushare");
	config->lib_dir = gs_strdup(GPUSHARE_LOCALSTATEDIR "/lib/gpushare");
	config->hook = gs_strdup(GPUSHARE_LIBEXECDIR "/gpushare-hook");
	gs_strv_add(&config->vendor_dirs, GPUSHARE_DATADIR "/vendors.d");
	gs_strv_add(&config->vendor_dirs, GPUSHARE_SYSCONFDIR "/gpushare/vendors.d");
	config->cross_pod = GS_CROSS_POD_GRANT;
	config->fence_privileged = true;
	gs_strv_add(&config->state_dirs, "/run/containerd/io.containerd.runtime.v2.task/k8s.io");
	config->create_wait_ms = CREATE_WAIT_MAX_MS;
	config->log_level = GS_LOG_INFO;
}

void gs_config_init(struct gs_config *config)
{
	const char *path = getenv(GS_CONFIG_ENV);

	*config = (struct gs_config){ 0 };
	config->path = gs_strdup(path && path[0] ? path : GS_CONFIG_PATH);
	set_defaults(config);
}

void gs_config_free(struct gs_config *config)
{
	free(config->path);
	gs_strv_free(&config->next);
	free(config->run_dir);
	free(config->lib_dir);
	free(config->hook);
	gs_strv_free(&config->vendor_dirs);
	gs_strv_free(&config->state_dirs);
	free(config->log_file);
	*config = (struct gs_config){ 0 };
}

static int absolute(const char *where, const char *key, const char *path, struct gs_err *err)
{
	if (path[0] == '/')
		return 0;
	return gs_err_set(err, EINVAL, "%s: %s must be an absolute path, not \"%s\"", where, key,
			  path);
}

static int get_path(const json_t *obj, const char *where, const char *key, char **ret,
		    struct gs_err *err)
{
	int r = gs_json_str(obj, where, key, false, ret, err);

	return r < 0 || !*ret ? r : absolute(where, key, *ret, err);
}

static int get_paths(const json_t *obj, const char *where, const char *key, struct gs_strv *ret,
		     struct gs_err *err)
{
	int r = gs_json_strv(obj, where, key, false, ret, err);

	for (size_t i = 0; r == 0 && i < ret->n; i++)
		r = absolute(where, key, ret->v[i], err);
	return r;
}

/*
 * A next runtime is a name, looked up in PATH and the usual folders, or an absolute path. The
 * working directory is the bundle, so a relative path would be looked for beside config.json.
 */
static int get_next(const json_t *obj, const char *where, struct gs_strv *ret, struct gs_err *err)
{
	int r = gs_json_strv(obj, where, "next", false, ret, err);

	if (r == 0 && ret->n == 0)
		r = gs_err_set(err, EINVAL, "%s: next must name at least one runtime", where);
	for (size_t i = 0; r == 0 && i < ret->n; i++) {
		const char *s = ret->v[i];

		if (!s[0] || (s[0] != '/' && strchr(s, '/')))
			r = gs_err_set(err, EINVAL,
				       "%s: next must hold names or absolute paths, not \"%s\"",
				       where, s);
	}
	return r;
}

/* Every profile is checked, so that a mistake shows before the day its name is used. */
static int get_profiles(const json_t *root, const char *file, const char *profile,
			struct gs_strv *next, struct gs_err *err)
{
	static const char *const known[] = { "next", NULL };
	json_t *profiles = json_object_get(root, "profiles"), *one;
	const char *name;

	if (profiles && !json_is_object(profiles))
		return gs_err_set(err, EINVAL, "%s: profiles must be an object", file);
	json_object_foreach(profiles, name, one)
	{
		cleanup_free char *where = gs_asprintf("%s: profiles.%s", file, name);
		cleanup_strv struct gs_strv list = { 0 };
		int r;

		if (!json_is_object(one))
			return gs_err_set(err, EINVAL, "%s must be an object", where);
		r = gs_json_known(one, where, known, err);
		if (r == 0)
			r = gs_json_strv(one, where, "next", true, &list, err);
		if (r == 0)
			r = get_next(one, where, &list, err);
		if (r < 0)
			return r;
		if (profile && strcmp(profile, name) == 0) {
			gs_strv_free(next);
			*next = list;
			list = (struct gs_strv){ 0 };
		}
	}
	return 0;
}

static int get_log(const json_t *root, const char *file, struct gs_config *config,
		   struct gs_err *err)
{
	static const char *const known[] = { "level", "file", NULL };
	static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
	cleanup_free char *where = gs_asprintf("%s: log", file);
	json_t *log = json_object_get(root, "log");
	int r, level = (int)config->log_level;

	if (!log)
		return 0;
	if (!json_is_object(log))
		return gs_err_set(err, EINVAL, "%s must be an object", where);
	r = gs_json_known(log, where, known, err);
	if (r == 0)
		r = gs_json_enum(log, where, "level", false, levels, &level, err);
	if (r == 0 && !json_is_null(json_object_get(log, "file")))
		r = get_path(log, where, "file", &config->log_file, err);
	if (r == 0)
		config->log_level = (enum gs_log_level)level;
	return r;
}

/* The sections of other programs: theirs to read. */
static int check_section(const json_t *root, const char *file, const char *key, struct gs_err *err)
{
	const json_t *v = json_object_get(root, key);

	if (v && !json_is_object(v))
		return gs_err_set(err, EINVAL, "%s: %s must be an object", file, key);
	return 0;
}

static int get_all(const json_t *root, struct gs_config *config, const char *profile,
		   struct gs_err *err)
{
	static const char *const cris[] = { "containerd", "cri-o", "none", NULL };
	static const char *const cross_pods[] = { "grant", "annotation", NULL };
	const char *file = config->path;
	int r, cri = (int)config->cri, cross_pod = (int)config->cross_pod;
	uint64_t wait_ms = config->create_wait_ms;
	bool unconfirmed;

	if ((r = gs_json_known(root, file, known_keys, err)) < 0 ||
	    (r = get_next(root, file, &config->next, err)) < 0 ||
	    (r = get_profiles(root, file, profile, &config->next, err)) < 0 ||
	    (r = gs_json_enum(root, file, "cri", false, cris, &cri, err)) < 0 ||
	    (r = get_path(root, file, "run_dir", &config->run_dir, err)) < 0 ||
	    (r = get_path(root, file, "lib_dir", &config->lib_dir, err)) < 0 ||
	    (r = get_path(root, file, "hook", &config->hook, err)) < 0 ||
	    (r = get_paths(root, file, "vendor_dirs", &config->vendor_dirs, err)) < 0 ||
	    (r = gs_json_enum(root, file, "cross_pod", false, cross_pods, &cross_pod, err)) < 0 ||
	    (r = gs_json_bool(root, file, "fence_privileged", &config->fence_privileged, err)) <
		    0 ||
	    (r = gs_json_bool(root, file, "refuse_unconfirmed", &unconfirmed, err)) < 0 ||
	    (r = get_paths(root, file, "state_dirs", &config->state_dirs, err)) < 0 ||
	    (r = gs_json_uint(root, file, "create_wait_ms", false, &wait_ms, err)) < 0 ||
	    (r = get_log(root, file, config, err)) < 0 ||
	    (r = check_section(root, file, "agent", err)) < 0 ||
	    (r = check_section(root, file, "controller", err)) < 0)
		return r;
	if (wait_ms > CREATE_WAIT_MAX_MS)
		return gs_err_set(err, EINVAL, "%s: create_wait_ms must be at most %d", file,
				  CREATE_WAIT_MAX_MS);
	config->cri = (enum gs_cri)cri;
	config->cross_pod = (enum gs_cross_pod)cross_pod;
	config->create_wait_ms = (unsigned int)wait_ms;
	return 0;
}

int gs_config_load(struct gs_config *config, const char *profile, struct gs_err *err)
{
	cleanup_config struct gs_config fresh = { 0 };
	cleanup_json json_t *root = NULL;
	int r;

	r = absolute(GS_CONFIG_ENV, "the file", config->path, err);
	if (r < 0)
		return r;
	r = gs_json_read(config->path, CONFIG_MAX, &root, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	/* Into a fresh one, so that no half of a broken file is ever in force. */
	fresh.path = gs_strdup(config->path);
	set_defaults(&fresh);
	r = get_all(root, &fresh, profile, err);
	if (r < 0)
		return r;
	gs_config_free(config);
	*config = fresh;
	fresh = (struct gs_config){ 0 };
	return 0;
}
