/* SPDX-License-Identifier: Apache-2.0 */
/* What the source files about grants share. No part of the interface. */
#ifndef GPUSHARE_COMMON_GRANT_DIR_H
#define GPUSHARE_COMMON_GRANT_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/grant.h"

#define GRANT_FILE ".json"
#define GRANT_BOUND ".bound"
#define GRANT_NAME_MAX 64
#define GRANT_FILE_MAX 65536

/* Begins every message about a grant. */
struct grant_label {
	char s[32];
};
struct grant_label grant_label(const char *name);

/*
 * Opens the folder of grants, made where it is missing if @make is set. -EPERM: it is not root's
 * with mode 0700; -ENOENT: there is none; -EINVAL: @name (may be NULL) is no grant's name.
 */
int grant_open_dir(const char *lib_dir, const char *name, bool make, struct gs_err *err);

/*
 * Reads the grant's file with that ending. Gives its bytes; the caller frees. -ENOENT, silently
 * where @err is NULL; -EPERM: others than root may change it. No message holds the whole name.
 */
int grant_read_file(int dir, const char *name, const char *ending, char **ret, size_t *ret_len,
		    struct gs_err *err);

/* Reads the grant out of its text. */
int grant_parse(const char *name, const char *text, size_t len, struct gs_grant *ret,
		struct gs_err *err);

/* The text of a grant, appended. */
void grant_format(const struct gs_grant *grant, struct gs_buf *out);

#endif
