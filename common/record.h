/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the registry's files (include/gpushare/registry.h describes it). */
#ifndef GPUSHARE_COMMON_RECORD_H
#define GPUSHARE_COMMON_RECORD_H

#include "common/registry.h"

/*
 * Appends the record as JSON text. -EINVAL where it could not be read back: an id, bundle, role or
 * spec is missing, spec or annotations are no JSON object, a string is no valid UTF-8.
 */
int gs_record_format(const struct gs_record *record, struct gs_buf *out, struct gs_err *err);

/*
 * Reads a record of @id from @len bytes of @text; @name is the file's, for messages. Unknown
 * members are ignored, because a newer version may write some; what is there must have its type.
 * -EINVAL with file and member.
 */
int gs_record_parse(const char *name, const char *id, const char *text, size_t len,
		    struct gs_record *ret, struct gs_err *err);

/* The same for the hook's file. */
int gs_hook_record_format(const char *id, const struct gs_hook_record *hook, struct gs_buf *out,
			  struct gs_err *err);
int gs_hook_record_parse(const char *name, const char *id, const char *text, size_t len,
			 struct gs_hook_record *ret, struct gs_err *err);

#endif
