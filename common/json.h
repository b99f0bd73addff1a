/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own JSON files, read with jansson: typed members with errors that name file and key. For what
 * programs write to each other (grants, bindings, answers); doc.h is for files that people write,
 * as it tells line and column of each mistake, and js.h for texts of which no byte may change.
 */
#ifndef GPUSHARE_COMMON_JSON_H
#define GPUSHARE_COMMON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

/*
 * Parses @len bytes of @text as one JSON object without duplicate keys; @name is for messages,
 * which hold "<name>:<line>:<column>". The caller decrefs.
 */
int gs_json_parse(const char *name, const char *text, size_t len, json_t **ret, struct gs_err *err);

/* gs_file_read() and gs_json_parse() of the file @path (relative to @dirfd; @flags as there). */
int gs_json_read(int dirfd, const char *path, int flags, size_t max, json_t **ret,
		 struct gs_err *err);

/*
 * Typed access. Each leaves the output as it is where @key is absent (and @required false), and
 * is -EINVAL with "<where>: <key> must be ..." where the type is wrong. Strings are copies of the
 * caller's; a string replaces (frees) what *ret held, a list replaces the list.
 */
int gs_json_str(const json_t *obj, const char *where, const char *key, bool required, char **ret,
		struct gs_err *err);
int gs_json_uint(const json_t *obj, const char *where, const char *key, bool required,
		 uint64_t *ret, struct gs_err *err);
int gs_json_strv(const json_t *obj, const char *where, const char *key, bool required,
		 struct gs_strv *ret, struct gs_err *err);
/* The string at @key must be one of @names (NULL-terminated); *ret gets its index. */
int gs_json_enum(const json_t *obj, const char *where, const char *key, bool required,
		 const char *const *names, int *ret, struct gs_err *err);

/* A new array of the list's strings, without those that are not UTF-8. The caller decrefs. */
json_t *gs_json_list(const struct gs_strv *list);

/* Every key of @obj must be in @known (NULL-terminated), else -EINVAL naming the key. */
int gs_json_known(const json_t *obj, const char *where, const char *const *known,
		  struct gs_err *err);

#endif
