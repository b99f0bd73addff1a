// SPDX-License-Identifier: Apache-2.0
/* The configuration file: defaults, reading, checking. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/doc.h"
#include "common/file.h"
#include "common/xalloc.h"

#define CONFIG_MAX (1024 * 1024)

/*
 * containerd's shim stops serving the pod while one of its containers is created, and the kubelet
 * gives a create two minutes in all: no configuration may delay it longer than this.
 */
#define CREATE_WAIT_MAX_MS 15000

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

static int get_paths(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
		     struct gs_err *err)
{
	int r = gs_doc_strings(doc, v, key, ret, err);

	for (size_t i = 0; r == 0 && v.n && i < ret->n; i++)
		r = gs_doc_absolute(doc, v, key, ret->v[i], err);
	return r;
}

/*
 * A next runtime is a name, looked up in PATH and the usual folders, or an absolute path. The
 * working directory is the bundle, so a relative path would be looked for beside config.json.
 */
static int get_next(const struct gs_doc *doc, struct js v, struct gs_strv *ret, struct gs_err *err)
{
	int r = gs_doc_strings(doc, v, "next", ret, err);

	if (r < 0 || !v.n)
		return r;
	if (ret->n == 0)
		return gs_doc_wrong(doc, v, err, "next must name at least one runtime");
	for (size_t i = 0; i < ret->n; i++) {
		const char *s = ret->v[i];

		if (!s[0] || (s[0] != '/' && strchr(s, '/')))
			return gs_doc_wrong(doc, v, err,
					    "next must hold names or absolute paths, not \"%s\"",
					    s);
	}
	return 0;
}

/* Every profile is checked, so that a mistake shows before the day its name is used. */
static int get_profiles(const struct gs_doc *doc, struct js profiles, const char *profile,
			struct gs_strv *next, struct gs_err *err)
{
	static const struct gs_doc_key keys[] = { { "next", GS_DOC_LIST, true }, { 0 } };
	cleanup_strv struct gs_strv seen = { 0 };
	struct js_iter it = js_iter(profiles);
	struct js k, v, members[1];

	while (js_next_member(&it, &k, &v)) {
		cleanup_strv struct gs_strv list = { 0 };
		cleanup_free char *name = js_string(k);
		int r;

		if (!name)
			return gs_doc_wrong(doc, k, err, "a profile's name with U+0000");
		if (gs_strv_has(&seen, name))
			return gs_doc_wrong(doc, k, err, "profile \"%s\" stands twice", name);
		r = gs_doc_members(doc, v, "a profile", keys, members, err);
		if (r == 0)
			r = get_next(doc, members[0], &list, err);
		if (r < 0)
			return r;
		if (profile && strcmp(profile, name) == 0) {
			gs_strv_free(next);
			*next = list;
			list = (struct gs_strv){ 0 };
		}
		gs_strv_take(&seen, gs_steal(name));
	}
	return 0;
}

static int get_log(const struct gs_doc *doc, struct js log, struct gs_config *config,
		   struct gs_err *err)
{
	enum { LEVEL, FILE_, N };
	static const struct gs_doc_key keys[N + 1] = {
		[LEVEL] = { "level", GS_DOC_STRING, false },
		[FILE_] = { "file", GS_DOC_STRING, false },
	};
	static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
	int r, level = (int)config->log_level;
	struct js v[N];

	if (!log.n)
		return 0;
	r = gs_doc_members(doc, log, "log", keys, v, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[LEVEL], "level", levels, &level, err);
	if (r == 0)
		r = gs_doc_path(doc, v[FILE_], "file", &config->log_file, err);
	if (r == 0)
		config->log_level = (enum gs_log_level)level;
	return r;
}

/* "agent" and "controller" are for other programs; only their type counts. */
static int get_all(const struct gs_doc *doc, struct js root, struct gs_config *config,
		   const char *profile, struct gs_err *err)
{
	enum {
		NEXT,
		PROFILES,
		CRI,
		RUN_DIR,
		LIB_DIR,
		HOOK,
		VENDOR_DIRS,
		CROSS_POD,
		FENCE,
		REFUSE,
		STATE_DIRS,
		WAIT,
		LOG,
		AGENT,
		CONTROLLER,
		N
	};
	static const struct gs_doc_key keys[N + 1] = {
		[NEXT] = { "next", GS_DOC_LIST, false },
		[PROFILES] = { "profiles", GS_DOC_OBJECT, false },
		[CRI] = { "cri", GS_DOC_STRING, false },
		[RUN_DIR] = { "run_dir", GS_DOC_STRING, false },
		[LIB_DIR] = { "lib_dir", GS_DOC_STRING, false },
		[HOOK] = { "hook", GS_DOC_STRING, false },
		[VENDOR_DIRS] = { "vendor_dirs", GS_DOC_LIST, false },
		[CROSS_POD] = { "cross_pod", GS_DOC_STRING, false },
		[FENCE] = { "fence_privileged", GS_DOC_BOOL, false },
		[REFUSE] = { "refuse_unconfirmed", GS_DOC_BOOL, false },
		[STATE_DIRS] = { "state_dirs", GS_DOC_LIST, false },
		[WAIT] = { "create_wait_ms", GS_DOC_UINT, false },
		[LOG] = { "log", GS_DOC_OBJECT, false },
		[AGENT] = { "agent", GS_DOC_OBJECT, false },
		[CONTROLLER] = { "controller", GS_DOC_OBJECT, false },
	};
	static const char *const cris[] = { "containerd", "cri-o", "none", NULL };
	static const char *const cross_pods[] = { "grant", "annotation", NULL };
	int r, cri = (int)config->cri, cross_pod = (int)config->cross_pod;
	uint64_t wait_ms = config->create_wait_ms;
	struct js v[N];

	r = gs_doc_members(doc, root, "the configuration", keys, v, err);
	if (r == 0)
		r = get_next(doc, v[NEXT], &config->next, err);
	if (r == 0)
		r = get_profiles(doc, v[PROFILES], profile, &config->next, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[CRI], "cri", cris, &cri, err);
	if (r == 0)
		r = gs_doc_path(doc, v[RUN_DIR], "run_dir", &config->run_dir, err);
	if (r == 0)
		r = gs_doc_path(doc, v[LIB_DIR], "lib_dir", &config->lib_dir, err);
	if (r == 0)
		r = gs_doc_path(doc, v[HOOK], "hook", &config->hook, err);
	if (r == 0)
		r = get_paths(doc, v[VENDOR_DIRS], "vendor_dirs", &config->vendor_dirs, err);
	if (r == 0)
		r = gs_doc_enum(doc, v[CROSS_POD], "cross_pod", cross_pods, &cross_pod, err);
	if (r == 0)
		r = get_paths(doc, v[STATE_DIRS], "state_dirs", &config->state_dirs, err);
	if (r == 0)
		r = gs_doc_uint(doc, v[WAIT], "create_wait_ms", CREATE_WAIT_MAX_MS, &wait_ms, err);
	if (r == 0)
		r = get_log(doc, v[LOG], config, err);
	if (r < 0)
		return r;
	gs_doc_bool(v[FENCE], &config->fence_privileged);
	gs_doc_bool(v[REFUSE], &config->refuse_unconfirmed);
	config->cri = (enum gs_cri)cri;
	config->cross_pod = (enum gs_cross_pod)cross_pod;
	config->create_wait_ms = (unsigned int)wait_ms;
	return 0;
}

int gs_config_read(const char *path, char **text, struct gs_doc *doc, struct js *root,
		   struct gs_err *err)
{
	struct gs_err read_err;
	size_t len;
	int r;

	r = gs_file_read(AT_FDCWD, path, 0, CONFIG_MAX, text, &len, NULL, &read_err);
	if (r == -ENOENT)
		return r;
	if (r < 0)
		return gs_err_set(err, -r, "%s", read_err.msg);
	*doc = (struct gs_doc){ path, *text };
	return gs_doc_parse(doc, len, root, err);
}

int gs_config_load(struct gs_config *config, const char *profile, struct gs_err *err)
{
	cleanup_config struct gs_config fresh = { 0 };
	cleanup_free char *text = NULL;
	struct gs_doc doc;
	struct js root;
	int r;

	/* The working directory is whatever the engine chose, often the bundle. */
	if (config->path[0] != '/')
		return gs_err_set(err, EINVAL, "%s must be an absolute path, not \"%s\"",
				  GS_CONFIG_ENV, config->path);
	r = gs_config_read(config->path, &text, &doc, &root, err);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	/* Into a fresh one, so that no half of a broken file is ever in force. */
	fresh.path = gs_strdup(config->path);
	set_defaults(&fresh);
	r = get_all(&doc, root, &fresh, profile, err);
	if (r < 0)
		return r;
	gs_config_free(config);
	*config = fresh;
	fresh = (struct gs_config){ 0 };
	return 0;
}
