/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a JSON file that people write (configuration, vendor catalogue) against a table of its
 * keys: every mistake is told with file, line, column and key.
 */
#ifndef GPUSHARE_COMMON_DOC_H
#define GPUSHARE_COMMON_DOC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/js.h"

/* A file's text with its name for messages; both borrowed. */
struct gs_doc {
	const char *name, *text;
};

/* The last three are strings that mean something; whether they do is asked of who reads them. */
enum gs_doc_type {
	GS_DOC_STRING,
	GS_DOC_BOOL,
	GS_DOC_UINT,
	GS_DOC_LIST,
	GS_DOC_OBJECT,
	GS_DOC_PATH,
	GS_DOC_DURATION,
	GS_DOC_QUANTITY
};

/* One key that an object may have; a table of them ends with {0} and has at most 32. */
struct gs_doc_key {
	const char *name;
	enum gs_doc_type type;
	bool required;
};

/* Checks that @len bytes of doc->text are one JSON object, and gives it. */
int gs_doc_parse(const struct gs_doc *doc, size_t len, struct js *ret, struct gs_err *err);

/*
 * Gives the value of each key of the table, in the table's order ({0}: absent). -EINVAL: @object
 * is none (@what it is, for the message), has an unknown key, one key twice, a value of the wrong
 * type, or lacks a required one. null counts as absent.
 */
int gs_doc_members(const struct gs_doc *doc, struct js object, const char *what,
		   const struct gs_doc_key *keys, struct js *ret, struct gs_err *err);

/* Sets "<file>:<line>:<column>: <sentence>" for the place @at in the text; gives -EINVAL. */
__attribute__((format(printf, 4, 5))) int gs_doc_wrong(const struct gs_doc *doc, struct js at,
						       struct gs_err *err, const char *fmt, ...);

/*
 * Values of a type that gs_doc_members() has checked; each leaves *ret as it is where @v is {0}.
 * @key is for messages. A string or list replaces (frees) what *ret held.
 */
int gs_doc_string(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		  struct gs_err *err);
int gs_doc_strings(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
		   struct gs_err *err);
int gs_doc_path(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		struct gs_err *err);
int gs_doc_uint(const struct gs_doc *doc, struct js v, const char *key, uint64_t max, uint64_t *ret,
		struct gs_err *err);
void gs_doc_bool(struct js v, bool *ret);
/* A duration ("10m") of at most a day and at least @min ms, in milliseconds. */
#define GS_DOC_DURATION_MAX (24U * 3600 * 1000)
int gs_doc_duration(const struct gs_doc *doc, struct js v, const char *key, unsigned int min,
		    unsigned int *ret, struct gs_err *err);
/* A quantity as Kubernetes writes it ("500m", "2Gi"), rounded down to multiples of @unit
 * thousandths. */
int gs_doc_quantity(const struct gs_doc *doc, struct js v, const char *key, int64_t unit,
		    uint64_t *ret, struct gs_err *err);
/* Is @path, which stands at @at, absolute? gs_doc_path() asks that. -EINVAL. */
int gs_doc_absolute(const struct gs_doc *doc, struct js at, const char *key, const char *path,
		    struct gs_err *err);
/* The string must be one of @names (NULL-terminated); *ret gets its index. */
int gs_doc_enum(const struct gs_doc *doc, struct js v, const char *key, const char *const *names,
		int *ret, struct gs_err *err);

#endif
