// SPDX-License-Identifier: Apache-2.0
/* Finds and executes the next runtime. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/file.h"
#include "common/identity.h"
#include "common/xalloc.h"
#include "runtime/next.h"

static bool same_bytes(const char *a, const char *b)
{
	cleanup_close int fa = open(a, O_RDONLY | O_CLOEXEC);
	cleanup_close int fb = open(b, O_RDONLY | O_CLOEXEC);
	char ba[4096], bb[4096];

	if (fa < 0 || fb < 0)
		return false;
	for (;;) {
		ssize_t na = read(fa, ba, sizeof(ba));
		ssize_t nb = read(fb, bb, sizeof(bb));

		if (na != nb || na < 0 || memcmp(ba, bb, (size_t)na) != 0)
			return false;
		if (na == 0)
			return true;
	}
}

/*
 * A link to us has our inode; a copy has our size and bytes. Either would exec itself for ever,
 * as no argument may tell the second one that it is the second.
 */
static bool is_self(const char *path, const struct stat *st)
{
	struct stat self;

	if (stat("/proc/self/exe", &self) < 0)
		return false;
	if (self.st_dev == st->st_dev && self.st_ino == st->st_ino)
		return true;
	return self.st_size == st->st_size && same_bytes("/proc/self/exe", path);
}

/* Says why @path can't be used, or NULL. */
static const char *unusable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a file";
	if (access(path, X_OK) < 0)
		return "not executable";
	if (is_self(path, &st))
		return "this is gpushare-runtime itself";
	return NULL;
}

/* The default one: the config, which may name another, is what can't be read. */
#define REMEMBER_DIR GPUSHARE_RUNSTATEDIR "/gpushare"
#define REMEMBER_SUB "next"

/* One for each config and name: what another file said is no answer. */
static char *remembered_name(const struct gs_config *config, const char *profile)
{
	return gs_id_valid(profile) ? gs_asprintf("%s-%016llx", profile,
						  (unsigned long long)gs_hash(config->path)) :
				      NULL;
}

bool next_remembered(const struct gs_config *config, const char *profile, char **ret_path,
		     char **ret_run_dir)
{
	cleanup_close int dir = gs_dir_open(REMEMBER_DIR, REMEMBER_SUB, NULL);
	cleanup_free char *name = remembered_name(config, profile);
	cleanup_free char *text = dir >= 0 && name ? gs_link_read(dir, name) : NULL;
	char *newline = text ? strchr(text, '\n') : NULL;

	if (!newline)
		return false;
	*ret_path = gs_strndup(text, (size_t)(newline - text));
	*ret_run_dir = gs_strdup(newline + 1);
	return true;
}

void next_remember(const struct gs_config *config, const char *profile, const char *path)
{
	cleanup_close int dir = gs_dir_make(REMEMBER_DIR, REMEMBER_SUB, NULL);
	cleanup_free char *name = remembered_name(config, profile);
	cleanup_free char *known = dir >= 0 && name ? gs_link_read(dir, name) : NULL;
	cleanup_free char *text = gs_asprintf("%s\n%s", path, config->run_dir);

	if (dir >= 0 && name && !(known && strcmp(known, text) == 0))
		(void)gs_link_replace(dir, name, text, NULL);
}

bool next_allows_without_rules(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strcmp(name, "crun") == 0 || strcmp(name, "krun") == 0;
}

bool next_usable(const char *path)
{
	return !unusable(path);
}

static void note_failure(struct gs_buf *tried, const char *path, const char *why)
{
	gs_buf_addf(tried, "%s%s (%s)", tried->len ? ", " : "", path, why);
}

static char *search(const char *name, const char *dirs, struct gs_buf *tried)
{
	while (dirs && *dirs) {
		size_t n = strcspn(dirs, ":");
		cleanup_free char *path = gs_asprintf("%.*s/%s", (int)n, dirs, name);
		const char *why;

		dirs += n + (dirs[n] == ':');
		if (path[0] != '/') /* an empty or relative part: where we are is no place */
			continue;
		why = unusable(path);
		if (!why)
			return gs_steal(path);
		note_failure(tried, path, why);
	}
	return NULL;
}

int next_find(const struct gs_strv *names, char **ret, struct gs_err *err)
{
	cleanup_buf struct gs_buf tried = { 0 };

	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->v[i];
		char *path = NULL;

		if (strchr(name, '/')) {
			const char *why = name[0] == '/' ? unusable(name) : "not absolute";

			if (!why)
				path = gs_strdup(name);
			else
				note_failure(&tried, name, why);
		} else {
			path = search(name, getenv("PATH"), &tried);
			if (!path)
				path = search(name, GS_SYSTEM_PATH, &tried);
		}
		if (path) {
			*ret = path;
			return 0;
		}
	}
	return gs_err_set(err, ENOENT, "no next runtime found; tried %s",
			  tried.len ? tried.data : "nothing: \"next\" is empty");
}

int next_exec(const char *path, char **argv, struct gs_err *err)
{
	argv[0] = (char *)path;
	(void)execv(path, argv);
	return gs_err_errno(err, errno, "exec %s", path);
}
