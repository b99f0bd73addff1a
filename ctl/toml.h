/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read-only view of a TOML text (version 1.0): what stands in it, and where, for edits that keep
 * the author's comments and layout. Debian has no TOML library with a C interface, and none tells
 * where a value stands.
 */
#ifndef GPUSHARE_CTL_TOML_H
#define GPUSHARE_CTL_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/err.h"

/* No runtime's file comes near it. */
#define TOML_SIZE_MAX (1024 * 1024)

enum toml_type {
	TOML_TABLE, /* [a.b], and a.b[0] of [[a.b]] */
	TOML_ELEMENT, /* a.b of [[a.b]] */
	TOML_PARENT, /* a of [a.b], or of [[a.b]] */
	TOML_DOTTED, /* a of the key a.b */
	TOML_STRING,
	TOML_SCALAR, /* number, truth value, date */
	TOML_ARRAY,
	TOML_INLINE, /* { ... }, whose members are items too */
};

/*
 * One thing that a text defines. @path has dots between its parts; a part that is no bare key is in
 * double quotes, with '"' and '\' escaped, whichever way the text writes it. In an array of tables
 * the n-th is "path[n]", from 0. Offsets count bytes.
 */
struct toml_item {
	char *path;
	enum toml_type type;
	bool inside; /* of an inline table: not on lines of its own */
	size_t from, to; /* the value, or a table's header from '[' to behind ']' */
	size_t line, end; /* from the start of its first line to behind the newline of its last */
	char *string; /* a string's value, NULL for others */
};

/* Starts as {0}. Items are in the order of the text, which must outlive it. */
struct toml {
	const char *text;
	size_t len;
	struct toml_item *items;
	size_t n;
};

/*
 * Reads @len bytes, of which the last is followed by a NUL. -EINVAL: no TOML, with line and column;
 * or something is defined twice.
 */
int toml_parse(const char *text, size_t len, struct toml *ret, struct gs_err *err);

/* Frees the items. */
void toml_free(struct toml *doc);
#define cleanup_toml __attribute__((cleanup(toml_free)))

/* The value or table of that path; NULL: there is none. */
const struct toml_item *toml_find(const struct toml *doc, const char *path);

/* The first item that is @path or below it; NULL: there is none. */
const struct toml_item *toml_below(const struct toml *doc, const char *path);

/* The text of the string at @path; NULL: there is none. */
const char *toml_string(const struct toml *doc, const char *path);

/* Is the value at @path written as @text? */
bool toml_is(const struct toml *doc, const char *path, const char *text);

/* The strings of an array; nothing for other items. False: it has something else in it. */
bool toml_strings(const struct toml *doc, const struct toml_item *item, struct gs_strv *ret);

#endif
