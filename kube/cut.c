// SPDX-License-Identifier: Apache-2.0
/*
 * Cuts what comes from the server into objects, one in memory at a time: a list may hold hundreds
 * of pods, and a server is free to ignore the number that was asked for.
 */
#include <errno.h>
#include <string.h>

#include "kube/impl.h"

/* What stands around a list's items. */
#define REST_MAX (1 << 20)
/* A buffer that an unusually large object left is not kept. */
#define KEEP_MAX (64 << 10)

void kube_cut_reset(struct kube_cut *cut)
{
	gs_buf_free(&cut->buf);
	gs_buf_free(&cut->rest);
	cut->depth = 0;
	cut->second = '\0';
	cut->skip = cut->string = cut->escape = cut->item = false;
}

static void add(struct kube_cut *cut, const char *data, size_t len)
{
	if (cut->skip)
		return;
	if (cut->buf.len + len > cut->kube->tune.object_max) {
		gs_buf_free(&cut->buf);
		cut->skip = true;
		return;
	}
	gs_buf_add(&cut->buf, data, len);
}

/* An object is complete. */
static int give(struct kube_cut *cut)
{
	struct js object;
	int r = 0;

	if (cut->skip) {
		kube_note(cut->kube, "a %s of more than %zu bytes is left out", cut->what,
			  cut->kube->tune.object_max);
		cut->skip = false;
	} else if (cut->buf.len > 0) {
		r = js_parse_wrapped(cut->buf.data, cut->buf.len, &object, NULL);
		r = r < 0 || !js_is(object, JS_OBJECT) ? -EBADMSG : cut->object(object, cut->arg);
	}
	cut->buf.len = 0;
	if (cut->buf.cap > KEEP_MAX)
		gs_buf_free(&cut->buf);
	return r;
}

int kube_cut_lines(struct kube_cut *cut, const char *data, size_t len)
{
	const char *end;
	int r = 0;

	while (r == 0 && (end = memchr(data, '\n', len)) != NULL) {
		add(cut, data, (size_t)(end - data));
		r = give(cut);
		len -= (size_t)(end + 1 - data);
		data = end + 1;
	}
	if (r == 0 && len > 0)
		add(cut, data, len);
	return r;
}

/* Keeps track of strings and levels; what is no JSON at all shows when a part is parsed. */
static int step(struct kube_cut *cut, char c)
{
	if (cut->string) {
		if (cut->escape)
			cut->escape = false;
		else if (c == '\\')
			cut->escape = true;
		else if (c == '"')
			cut->string = false;
		return 0;
	}
	switch (c) {
	case '"':
		cut->string = true;
		break;
	case '{':
	case '[':
		cut->depth++;
		if (cut->depth == 2)
			cut->second = c;
		break;
	case '}':
	case ']':
		if (cut->depth == 0)
			return -EBADMSG;
		cut->depth--;
		break;
	default:
		break;
	}
	return 0;
}

/* The only list right in a list object is its items. */
int kube_cut_list(struct kube_cut *cut, const char *data, size_t len)
{
	size_t from = 0;
	int r;

	for (size_t i = 0; i < len; i++) {
		bool plain = !cut->string;

		r = step(cut, data[i]);
		if (r < 0)
			return r;
		if (!plain)
			continue;
		if (!cut->item && data[i] == '{' && cut->depth == 3 && cut->second == '[') {
			gs_buf_add(&cut->rest, data + from, i - from);
			gs_buf_addc(&cut->rest, '0');
			cut->item = true;
			from = i;
		} else if (cut->item && data[i] == '}' && cut->depth == 2) {
			add(cut, data + from, i + 1 - from);
			cut->item = false;
			from = i + 1;
			r = give(cut);
			if (r < 0)
				return r;
		}
	}
	if (cut->item)
		add(cut, data + from, len - from);
	else
		gs_buf_add(&cut->rest, data + from, len - from);
	return cut->rest.len > REST_MAX ? -EBADMSG : 0;
}
