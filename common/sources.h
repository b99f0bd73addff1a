/* SPDX-License-Identifier: Apache-2.0 */
/* What the annotation container-devices-from says: which containers one receives from. */
#ifndef GPUSHARE_COMMON_SOURCES_H
#define GPUSHARE_COMMON_SOURCES_H

#include <stddef.h>

#include "common/err.h"
#include "common/identity.h"

/* Longer values are no list of sources. */
#define GS_SOURCES_VALUE_MAX 16384

/*
 * Reads "<source>[,<source>...]" from @len bytes at @text, for the container @here, and gives each
 * source to @each, which may end it with -errno and a sentence. -EINVAL: a source that is no name,
 * or the container itself.
 */
int gs_sources_parse(const char *text, size_t len, const struct gs_identity *here,
		     int (*each)(const struct gs_identity *source, void *arg, struct gs_err *err),
		     void *arg, struct gs_err *err);

/*
 * Finds the entry of @container in the long form, "<container>=<source>[,<source>...]" separated by
 * ';' or newline. *ret points into @text; NULL: there is none. -EINVAL: an entry of anybody's that
 * is none, or a second one of that container.
 */
int gs_sources_find(const char *text, const char *container, const char **ret, size_t *ret_len,
		    struct gs_err *err);

#endif
