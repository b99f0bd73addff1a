/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a node whose root folder may be anywhere (an image, a host's that is mounted in a
 * container). Links are followed as they would be on that node: none leads out of the folder.
 */
#ifndef GPUSHARE_CTL_ROOT_H
#define GPUSHARE_CTL_ROOT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "common/buf.h"
#include "common/err.h"

/* What a configuration of some runtime may be long. */
#define ROOT_FILE_MAX (1024 * 1024)

/* "@root@path" for what follows links by itself; the caller frees. */
char *root_path(const char *root, const char *path);

/* Is there anything? With its stat, and its true path, where those are asked for. */
bool root_stat(const char *root, const char *path, struct stat *ret);
bool root_has(const char *root, const char *path);

/*
 * Reads a text of at most ROOT_FILE_MAX bytes; the caller frees. -ENOENT: there is none. -EFBIG:
 * larger. -EINVAL: no regular file, a link that leads nowhere, no UTF-8, or a NUL in it. Messages
 * begin with @path.
 */
int root_read(const char *root, const char *path, char **ret, struct gs_err *err);

/* The text of a file of /proc or /sys without its last newline; NULL: it can't be read. */
char *root_line(const char *root, const char *path);

/*
 * Makes @text the content of @path: whole or not at all, with the owner and mode that the file had,
 * behind a link where it is one. A new file has mode 0644; folders on the way are made with 0755
 * and added to @made.
 */
int root_write(const char *root, const char *path, const char *text, struct gs_strv *made,
	       struct gs_err *err);

/* Makes @path with mode 0600 unless it is there; true: it was made. */
bool root_keep(const char *root, const char *path, const char *text);

/* Removes a file; none is no error. */
int root_remove(const char *root, const char *path, struct gs_err *err);

/* Removes the folder if it is empty. */
void root_rmdir(const char *root, const char *path);

/* The program's path, looked for where a service would; NULL: there is none. The caller frees. */
char *root_program(const char *root, const char *name);

/* Calls @each with every path that the pattern (glob(7)) has below @root, as the node sees it. */
void root_glob(const char *root, const char *pattern, void (*each)(const char *path, void *arg),
	       void *arg);

#endif
