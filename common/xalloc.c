// SPDX-License-Identifier: Apache-2.0
/* Allocation that aborts instead of failing. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

void *gs_malloc(size_t size)
{
	return must(malloc(size ? size : 1));
}

void *gs_calloc(size_t n, size_t size)
{
	return must(calloc(n ? n : 1, size ? size : 1));
}

void *gs_reallocarray(void *p, size_t n, size_t size)
{
	return must(reallocarray(p, n ? n : 1, size));
}

char *gs_strdup(const char *s)
{
	return must(strdup(s));
}

char *gs_strndup(const char *s, size_t n)
{
	return must(strndup(s, n));
}

char *gs_asprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	return s;
}

void *gs_grow(void *v, size_t n, size_t size)
{
	if (n == 0)
		return gs_reallocarray(v, 4, size);
	if (n >= 4 && (n & (n - 1)) == 0)
		return gs_reallocarray(v, n * 2, size);
	return v;
}
