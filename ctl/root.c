// SPDX-License-Identifier: Apache-2.0
/* Files below a root folder. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/file.h"
#include "common/utf8.h"
#include "common/xalloc.h"
#include "ctl/root.h"

/* What /proc and /sys say in one line. */
#define LINE_LEN_MAX 65536

char *root_path(const char *root, const char *path)
{
	return gs_asprintf("%s%s", strcmp(root, "/") == 0 ? "" : root, path);
}

bool root_stat(const char *root, const char *path, struct stat *ret)
{
	cleanup_close int fd = gs_file_open_in(root, path, O_PATH);

	return fd >= 0 && fstat(fd, ret) == 0;
}

bool root_has(const char *root, const char *path)
{
	struct stat st;

	return root_stat(root, path, &st);
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? gs_strdup("/") : gs_strndup(path, (size_t)(slash - path));
}

static const char *name_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/*
 * Where @path really is, once links are followed: its folder, opened, and its name there. -ENOENT
 * where the folder is missing; the file itself may be.
 */
static int locate(const char *root, const char *path, int *ret_dir, char **ret_name,
		  struct gs_err *err)
{
	cleanup_close int fd = gs_file_open_in(root, path, O_PATH);
	cleanup_close int link = -1;
	cleanup_free char *real = NULL, *dir = NULL;

	if (fd < 0 && fd != -ENOENT)
		return gs_err_errno(err, -fd, "%s", path);
	real = fd >= 0 ? gs_file_real_in(root, path) : NULL;
	if (real) {
		dir = dir_of(real);
		*ret_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (*ret_dir < 0)
			return gs_err_errno(err, errno, "%s", dir);
		*ret_name = gs_strdup(name_of(real));
		return 0;
	}
	link = gs_file_open_in(root, path, O_PATH | O_NOFOLLOW);
	if (link >= 0)
		return gs_err_set(err, EINVAL, "%s: a link that leads nowhere", path);
	dir = dir_of(path);
	*ret_dir = gs_file_open_in(root, dir, O_RDONLY | O_DIRECTORY);
	if (*ret_dir < 0)
		return gs_err_errno(err, -*ret_dir, "%s", path);
	*ret_name = gs_strdup(name_of(path));
	return 0;
}

int root_read(const char *root, const char *path, char **ret, struct gs_err *err)
{
	cleanup_close int dir = -1;
	cleanup_free char *name = NULL, *text = NULL;
	struct gs_err why = { 0 };
	size_t len;
	int r;

	r = locate(root, path, &dir, &name, err);
	if (r < 0)
		return r;
	r = gs_file_read(dir, name, O_NOFOLLOW, ROOT_FILE_MAX, &text, &len, NULL, &why);
	if (r == -ENOENT)
		return gs_err_errno(err, ENOENT, "%s", path);
	if (r == -EFBIG)
		return gs_err_set(err, EFBIG, "%s: larger than %d bytes", path, ROOT_FILE_MAX);
	if (r == -EINVAL)
		return gs_err_set(err, EINVAL, "%s: not a file", path);
	if (r < 0)
		return gs_err_errno(err, -r, "%s", path);
	if (memchr(text, 0, len) || !gs_utf8_valid(text))
		return gs_err_set(err, EINVAL, "%s: this is no UTF-8 text", path);
	*ret = gs_steal(text);
	return 0;
}

char *root_line(const char *root, const char *path)
{
	cleanup_close int fd = gs_file_open_in(root, path, O_RDONLY);
	cleanup_free char *text = gs_malloc(LINE_LEN_MAX + 1);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return NULL;
	while (len < LINE_LEN_MAX && (n = read(fd, text + len, LINE_LEN_MAX - len)) != 0) {
		if (n < 0)
			return NULL;
		len += (size_t)n;
	}
	while (len > 0 && text[len - 1] == '\n')
		len--;
	text[len] = 0;
	return gs_steal(text);
}

/* Makes the folder @path and those above it that are missing. */
static int make_dirs(const char *root, const char *path, struct gs_strv *made, struct gs_err *err)
{
	cleanup_free char *above = NULL;
	cleanup_close int dir = gs_file_open_in(root, path, O_PATH | O_DIRECTORY);
	cleanup_close int parent = -1;
	int r;

	if (dir >= 0)
		return 0;
	if (dir != -ENOENT || strcmp(path, "/") == 0)
		return gs_err_errno(err, -dir, "%s", path);
	above = dir_of(path);
	r = make_dirs(root, above, made, err);
	if (r < 0)
		return r;
	parent = gs_file_open_in(root, above, O_RDONLY | O_DIRECTORY);
	if (parent < 0)
		return gs_err_errno(err, -parent, "%s", above);
	if (mkdirat(parent, name_of(path), 0755) < 0)
		return gs_err_errno(err, errno, "%s", path);
	/* Whatever the caller's umask is: services that are not root read it. */
	if (fchmodat(parent, name_of(path), 0755, 0) < 0)
		return gs_err_errno(err, errno, "%s", path);
	gs_strv_add(made, path);
	return 0;
}

int root_write(const char *root, const char *path, const char *text, struct gs_strv *made,
	       struct gs_err *err)
{
	cleanup_free char *folder = dir_of(path), *name = NULL;
	cleanup_close int dir = -1;
	struct stat st = { .st_mode = S_IFREG | 0644, .st_uid = geteuid(), .st_gid = getegid() };
	struct gs_err why = { 0 };
	int r;

	r = make_dirs(root, folder, made, err);
	if (r == 0)
		r = locate(root, path, &dir, &name, err);
	if (r < 0)
		return r;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return gs_err_errno(err, errno, "%s", path);
	r = gs_file_replace(dir, name, text, strlen(text), &st, &why);
	return r < 0 ? gs_err_errno(err, -r, "%s", path) : 0;
}

bool root_keep(const char *root, const char *path, const char *text)
{
	cleanup_free char *name = NULL;
	cleanup_close int dir = -1;

	return locate(root, path, &dir, &name, NULL) == 0 &&
	       gs_file_create(dir, name, text, strlen(text), NULL) == 0;
}

int root_remove(const char *root, const char *path, struct gs_err *err)
{
	cleanup_free char *name = NULL;
	cleanup_close int dir = -1;
	int r = locate(root, path, &dir, &name, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return gs_err_errno(err, errno, "%s", path);
	return 0;
}

void root_rmdir(const char *root, const char *path)
{
	cleanup_free char *above = dir_of(path);
	cleanup_close int dir = gs_file_open_in(root, above, O_RDONLY | O_DIRECTORY);

	if (dir >= 0)
		(void)unlinkat(dir, name_of(path), AT_REMOVEDIR);
}

char *root_program(const char *root, const char *name)
{
	const char *dirs = GS_SYSTEM_PATH;

	while (*dirs) {
		size_t n = strcspn(dirs, ":");
		cleanup_free char *path = gs_asprintf("%.*s/%s", (int)n, dirs, name);
		struct stat st;

		if (root_stat(root, path, &st) && S_ISREG(st.st_mode) && st.st_mode & 0111)
			return gs_steal(path);
		dirs += n + (dirs[n] == ':');
	}
	return NULL;
}

void root_glob(const char *root, const char *pattern, void (*each)(const char *path, void *arg),
	       void *arg)
{
	cleanup_free char *full = root_path(root, pattern);
	size_t skip = strlen(full) - strlen(pattern);
	glob_t found;

	/* The root's own name may hold a star: then something else is found, or nothing. */
	if (glob(full, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		each(found.gl_pathv[i] + skip, arg);
	globfree(&found);
}
