/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read-only view of a JSON text, for reading a container's config.json without losing a byte of
 * it. A JSON library would turn 18446744073709551615 into a real or refuse it, sort keys and drop
 * escapes; here a value is just the place in the text where it stands, and js_edit.h changes text
 * at such places. RFC 8259.
 */
#ifndef GPUSHARE_COMMON_JS_H
#define GPUSHARE_COMMON_JS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/*
 * What is nested deeper is refused: the limit of Go's decoder, so no file that runc reads, and no
 * object that an API server takes. What that server itself puts around an object is more.
 */
#define JS_DEPTH_MAX 10000
#define JS_WRAPPED_DEPTH_MAX (JS_DEPTH_MAX + 8)

/* One value: a part of a text that js_parse() has checked. {0}: no such value. */
struct js {
	const char *p;
	size_t n;
};

enum js_type { JS_NONE, JS_NULL, JS_BOOL, JS_NUMBER, JS_STRING, JS_ARRAY, JS_OBJECT };

/*
 * Checks that @text is one JSON value with only white space around it, in strict RFC 8259 and
 * valid UTF-8 (no lone surrogates), and gives it. @text must outlive every value taken from it.
 * Everything else below relies on this check and cannot run over the end.
 * -EINVAL: not JSON (the message has line and column); -E2BIG: nested deeper than JS_DEPTH_MAX.
 */
int js_parse(const char *text, size_t len, struct js *ret, struct gs_err *err);

/* The same up to JS_WRAPPED_DEPTH_MAX: an event of a watch, with an object inside. */
int js_parse_wrapped(const char *text, size_t len, struct js *ret, struct gs_err *err);

/* What kind of value that is; JS_NONE for {0}. */
enum js_type js_type(struct js v);
static inline bool js_is(struct js v, enum js_type type)
{
	return js_type(v) == type;
}

/* Absent or null: Go's decoder makes no difference between the two. */
static inline bool js_absent(struct js v)
{
	return v.n == 0 || v.p[0] == 'n';
}

/* Walks the members of an object or the elements of an array; start with js_iter(). */
struct js_iter {
	const char *p, *end;
};
struct js_iter js_iter(struct js container);
bool js_next_element(struct js_iter *it, struct js *ret);
bool js_next_member(struct js_iter *it, struct js *ret_key, struct js *ret_value);

/*
 * The member @key of @object; {0} where it is absent or @object is no object. -EEXIST where it
 * stands twice, or another member differs from it in case alone: Go's decoder takes those for the
 * same member and other runtimes do not, so nobody can say what the text means.
 */
int js_member(struct js object, const char *key, struct js *ret, struct gs_err *err);

/* js_member() for @n keys in one walk; @ret has room for @n, and is undefined on an error. */
int js_members(struct js object, const char *const *keys, size_t n, struct js *ret,
	       struct gs_err *err);

/*
 * The member of an object that is a map (annotations, labels): keys are data, so only the very
 * same key stands for it. -EEXIST where it stands twice.
 */
int js_map_member(struct js object, const char *key, struct js *ret, struct gs_err *err);

/* js_member() through a chain of keys that ends in NULL; {0} as soon as one is absent. */
__attribute__((sentinel)) int js_path(struct js object, struct js *ret, struct gs_err *err, ...);

/*
 * The string's value with its escapes resolved; NULL where @v is no string, or holds U+0000 (no C
 * string, and nothing that a kernel or runtime takes). The caller frees.
 */
char *js_string(struct js v);

/* Is @v the string @s? */
bool js_string_is(struct js v, const char *s);

/* A whole number that int64_t holds, written without fraction or exponent; false: it is not. */
bool js_int64(struct js v, int64_t *ret);

/* true or false; false: @v is neither. */
bool js_bool(struct js v, bool *ret);

/* Line and column (in bytes, from 1) of a place in a text, for messages. */
void js_where(const char *text, const char *at, size_t *ret_line, size_t *ret_col);

#endif
