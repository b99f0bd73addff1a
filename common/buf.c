// SPDX-License-Identifier: Apache-2.0
/* A growing byte buffer and a list of strings. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/utf8.h"
#include "common/xalloc.h"

void gs_buf_free(struct gs_buf *buf)
{
	free(buf->data);
	*buf = (struct gs_buf){ 0 };
}

static void room(struct gs_buf *buf, size_t more)
{
	size_t need = buf->len + more + 1;

	if (need <= buf->cap)
		return;
	buf->cap = buf->cap ? buf->cap : 64;
	while (buf->cap < need)
		buf->cap *= 2;
	buf->data = gs_reallocarray(buf->data, buf->cap, 1);
}

void gs_buf_add(struct gs_buf *buf, const char *data, size_t len)
{
	room(buf, len);
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void gs_buf_adds(struct gs_buf *buf, const char *s)
{
	gs_buf_add(buf, s, strlen(s));
}

void gs_buf_addc(struct gs_buf *buf, char c)
{
	gs_buf_add(buf, &c, 1);
}

void gs_buf_addf(struct gs_buf *buf, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	room(buf, (size_t)n);
	(void)vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, again);
	va_end(again);
	buf->len += (size_t)n;
}

void gs_buf_add_json(struct gs_buf *buf, const char *s)
{
	const char *end = s + strlen(s);
	const char *run = s;

	gs_buf_addc(buf, '"');
	while (s < end) {
		unsigned char c = (unsigned char)*s;
		size_t n = gs_utf8_len(s, end);

		if (n && c >= 0x20 && c != '"' && c != '\\') {
			s += n;
			continue;
		}
		gs_buf_add(buf, run, (size_t)(s - run));
		run = ++s;
		if (n == 0)
			gs_buf_adds(buf, "\xef\xbf\xbd");
		else if (c == '"' || c == '\\')
			gs_buf_addf(buf, "\\%c", c);
		else
			gs_buf_addf(buf, "\\u%04x", c);
	}
	gs_buf_add(buf, run, (size_t)(s - run));
	gs_buf_addc(buf, '"');
}

char *gs_buf_steal(struct gs_buf *buf)
{
	char *data;

	room(buf, 0);
	buf->data[buf->len] = '\0';
	data = buf->data;
	*buf = (struct gs_buf){ 0 };
	return data;
}

void gs_strv_free(struct gs_strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	*list = (struct gs_strv){ 0 };
}

void gs_strv_take(struct gs_strv *list, char *s)
{
	list->v = gs_grow(list->v, list->n, sizeof(*list->v));
	list->v[list->n++] = s;
}

void gs_strv_add(struct gs_strv *list, const char *s)
{
	gs_strv_take(list, gs_strdup(s));
}

bool gs_strv_has(const struct gs_strv *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return true;
	return false;
}

void gs_strv_add_once(struct gs_strv *list, const char *s)
{
	if (!gs_strv_has(list, s))
		gs_strv_add(list, s);
}

void gs_strv_merge(struct gs_strv *list, const struct gs_strv *from)
{
	for (size_t i = 0; i < from->n; i++)
		gs_strv_add_once(list, from->v[i]);
}

bool gs_strv_intersect(const struct gs_strv *a, const struct gs_strv *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (gs_strv_has(b, a->v[i]))
			return true;
	return false;
}

bool gs_commas_have(const char *list, size_t len, const char *s)
{
	size_t s_len = strlen(s);
	const char *end = list + len;

	while (s_len) {
		const char *comma = memchr(list, ',', (size_t)(end - list));
		const char *stop = comma ? comma : end;

		if ((size_t)(stop - list) == s_len && memcmp(list, s, s_len) == 0)
			return true;
		if (!comma)
			break;
		list = comma + 1;
	}
	return false;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void gs_strv_sort(struct gs_strv *list)
{
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare);
}

void gs_strv_sort_once(struct gs_strv *list)
{
	size_t n = 0;

	gs_strv_sort(list);
	for (size_t i = 0; i < list->n; i++) {
		if (n > 0 && strcmp(list->v[n - 1], list->v[i]) == 0)
			free(list->v[i]);
		else
			list->v[n++] = list->v[i];
	}
	list->n = n;
}

char *gs_strv_join(const struct gs_strv *list)
{
	struct gs_buf out = { 0 };

	for (size_t i = 0; i < list->n; i++)
		gs_buf_addf(&out, "%s%s", i ? "," : "", list->v[i]);
	return gs_buf_steal(&out);
}
