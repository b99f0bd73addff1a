/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that does not fail: a program of ours that gets no few kilobytes from the kernel
 * can do nothing useful, so it aborts. Sizes that come from outside are bounded before.
 */
#ifndef GPUSHARE_COMMON_XALLOC_H
#define GPUSHARE_COMMON_XALLOC_H

#include <stddef.h>

/* As malloc, calloc, reallocarray, strdup, strndup; never NULL. The caller frees. */
void *gs_malloc(size_t size);
void *gs_calloc(size_t n, size_t size);
void *gs_reallocarray(void *p, size_t n, size_t size);
char *gs_strdup(const char *s);
char *gs_strndup(const char *s, size_t n);

/* As asprintf, giving the string; never NULL. The caller frees. */
__attribute__((format(printf, 1, 2))) char *gs_asprintf(const char *fmt, ...);

/*
 * Makes room for one more element in an array that grows: @v is the array, @n its length, @size
 * the size of an element. Gives the (perhaps moved) array; room is doubled at powers of two, so
 * no capacity has to be kept.
 */
void *gs_grow(void *v, size_t n, size_t size);

#endif
