/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer and a list of strings. */
#ifndef GPUSHARE_COMMON_BUF_H
#define GPUSHARE_COMMON_BUF_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as {0}. @data ends in a NUL that @len does not count, once anything was added. */
struct gs_buf {
	char *data;
	size_t len, cap;
};

/* Frees what the buffer holds; it can be used again. */
void gs_buf_free(struct gs_buf *buf);
#define cleanup_buf __attribute__((cleanup(gs_buf_free)))

/* Appends @len bytes, a string, a character, a formatted string. */
void gs_buf_add(struct gs_buf *buf, const char *data, size_t len);
void gs_buf_adds(struct gs_buf *buf, const char *s);
void gs_buf_addc(struct gs_buf *buf, char c);
__attribute__((format(printf, 2, 3))) void gs_buf_addf(struct gs_buf *buf, const char *fmt, ...);

/*
 * Appends @s as a JSON string with its quotes. Control characters, '"' and '\' are escaped as
 * RFC 8259 section 7 asks; a byte that is no part of UTF-8 becomes U+FFFD, since JSON has no way to
 * write it; every other byte stays as it is.
 */
void gs_buf_add_json(struct gs_buf *buf, const char *s);

/* Takes the bytes out of the buffer (never NULL, NUL-terminated); the caller frees. */
char *gs_buf_steal(struct gs_buf *buf);

/* A list of strings that it owns. Starts as {0}; @v is not NULL-terminated. */
struct gs_strv {
	char **v;
	size_t n;
};

/* Frees the strings and the list; it can be used again. */
void gs_strv_free(struct gs_strv *list);
#define cleanup_strv __attribute__((cleanup(gs_strv_free)))

/* Appends a copy of @s; or @s itself, which the list then owns. */
void gs_strv_add(struct gs_strv *list, const char *s);
void gs_strv_take(struct gs_strv *list, char *s);

/* Is @s in the list? */
bool gs_strv_has(const struct gs_strv *list, const char *s);

/* Sorts the list byte by byte, whatever the locale. */
void gs_strv_sort(struct gs_strv *list);

/* The same, and leaves each only once. */
void gs_strv_sort_once(struct gs_strv *list);

/* Appends a copy of @s unless it is in the list. */
void gs_strv_add_once(struct gs_strv *list, const char *s);

/* Appends copies of what is in @from and not yet in @list. */
void gs_strv_merge(struct gs_strv *list, const struct gs_strv *from);

/* Have the two a string in common? */
bool gs_strv_intersect(const struct gs_strv *a, const struct gs_strv *b);

/* Is @s one of the parts between commas of the @len bytes at @list? An empty @s is in none. */
bool gs_commas_have(const char *list, size_t len, const char *s);

/* All of them with commas between ("" for an empty list); the caller frees. */
char *gs_strv_join(const struct gs_strv *list);

#endif
