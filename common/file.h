/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read with a bound, written so that a reader sees the old or the new one, never half. */
#ifndef GPUSHARE_COMMON_FILE_H
#define GPUSHARE_COMMON_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/err.h"

/*
 * Reads the regular file @path (relative to @dirfd, as in openat(2); @flags may add O_NOFOLLOW)
 * of at most @max bytes. Gives its bytes, NUL-terminated (the caller frees), their number without
 * the NUL, and, if @ret_st is not NULL, its fstat. -EFBIG: larger; -EINVAL: no regular file; else
 * what open or read said.
 */
int gs_file_read(int dirfd, const char *path, int flags, size_t max, char **ret, size_t *ret_len,
		 struct stat *ret_st, struct gs_err *err);

/*
 * Opens @path (absolute) in the tree @root with the flags of open(2), which may be O_PATH. Links
 * are followed as they would be were @root "/": none leads out of it. -errno as openat2(2).
 */
int gs_file_open_in(const char *root, const char *path, int flags);

/*
 * Where @path is in the tree @root, once such links are followed: its name without any. The caller
 * frees. NULL: there is no such file, or it has no name any more.
 */
char *gs_file_real_in(const char *root, const char *path);

/*
 * Replaces @name in the directory @dirfd by a new file with @len bytes of @data: an unguessable
 * temporary name ("@name.gpushare-" and 16 hex digits, O_EXCL), owner and mode of @like, fsync,
 * rename. On any error the old file is untouched and the temporary name is gone; a SIGKILL may
 * leave the temporary file behind, never half of @name. Only st_mode, st_uid and st_gid of @like
 * are used.
 */
int gs_file_replace(int dirfd, const char *name, const char *data, size_t len,
		    const struct stat *like, struct gs_err *err);

/* The same with mode 0600, the caller as owner, and no fsync (files that do not outlive a boot). */
int gs_file_publish(int dirfd, const char *name, const char *data, size_t len, struct gs_err *err);

/*
 * Makes @name in @dirfd with @data only where there is none yet, whole or not at all (written
 * under a temporary name, fsync, link(2)). -EEXIST: it was there.
 */
int gs_file_create(int dirfd, const char *name, const char *data, size_t len, struct gs_err *err);

/*
 * Makes @name in @dirfd a symbolic link with the text @text, in place of what is there: under an
 * unguessable name first, then renamed.
 */
int gs_link_replace(int dirfd, const char *name, const char *text, struct gs_err *err);

/* The text of the link @name in @dirfd, NULL where there is none or it is too long; to be freed. */
char *gs_link_read(int dirfd, const char *name);

/*
 * Opens the directory @path/@sub (@sub may be NULL, or several parts), making what is missing:
 * @path and the parts of @sub with mode 0700, what leads to @path with 0755. @path and each part
 * of @sub are checked: -EPERM: not root's (or the caller's) own, or others may write to it;
 * -ENOTDIR: no directory, or a symbolic link. Gives a descriptor; the caller closes.
 */
int gs_dir_make(const char *path, const char *sub, struct gs_err *err);

/* The same without making anything; -ENOENT where it does not exist. */
int gs_dir_open(const char *path, const char *sub, struct gs_err *err);

/*
 * The directory @name in @dirfd (a symbolic link is not followed) to be read with readdir(3); NULL
 * with errno set. The caller closes; @dirfd, also where @name is ".", stays as it is.
 */
DIR *gs_opendirat(int dirfd, const char *name);

/*
 * The names in the directory @dirfd that end in @ending and are @valid without it, so cut and
 * sorted; the caller frees. -errno where it can't be read.
 */
int gs_dir_names(int dirfd, const char *ending, bool (*valid)(const char *name),
		 struct gs_strv *ret);

#endif
