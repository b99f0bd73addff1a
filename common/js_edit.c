// SPDX-License-Identifier: Apache-2.0
/* Edits of a JSON text that leave every other byte as it is. */
#include <stdlib.h>
#include <string.h>

#include "common/js_edit.h"
#include "common/xalloc.h"

struct js_splice {
	const char *at; /* where in the old text */
	size_t remove; /* how many bytes of it go */
	size_t order; /* of the calls, for insertions at one place */
	char *insert; /* what comes instead */
};

void js_edit_free(struct js_edit *edit)
{
	for (size_t i = 0; i < edit->n; i++)
		free(edit->splices[i].insert);
	free(edit->splices);
	edit->splices = NULL;
	edit->n = 0;
}

/* Takes @insert over. */
static void add(struct js_edit *edit, const char *at, size_t remove, char *insert)
{
	edit->splices = gs_grow(edit->splices, edit->n, sizeof(*edit->splices));
	edit->splices[edit->n] = (struct js_splice){ at, remove, edit->n, insert };
	edit->n++;
}

void js_edit_replace(struct js_edit *edit, struct js old, const char *json)
{
	add(edit, old.p, old.n, gs_strdup(json));
}

/* Is something inserted at this place already? */
static bool inserts_at(const struct js_edit *edit, const char *at)
{
	for (size_t i = 0; i < edit->n; i++)
		if (edit->splices[i].at == at && edit->splices[i].remove == 0)
			return true;
	return false;
}

void js_edit_add_member(struct js_edit *edit, struct js object, const char *key, const char *json)
{
	struct js_iter it = js_iter(object);
	const char *at = object.p + 1; /* behind the last member, or behind '{' */
	const char *space = NULL; /* the white space before the first key */
	size_t n_space = 0;
	struct js k, v;
	struct gs_buf out = { 0 };

	while (js_next_member(&it, &k, &v)) {
		if (!space) {
			space = object.p + 1;
			n_space = (size_t)(k.p - space);
		}
		at = v.p + v.n;
	}
	if (space || inserts_at(edit, at))
		gs_buf_addc(&out, ',');
	gs_buf_add(&out, space, n_space);
	gs_buf_add_json(&out, key);
	gs_buf_adds(&out, n_space ? ": " : ":");
	gs_buf_adds(&out, json);
	add(edit, at, 0, gs_buf_steal(&out));
}

void js_array_begin(struct js_array *array, struct js old)
{
	struct js_iter it = js_iter(old);
	struct js v;

	*array = (struct js_array){ .old = old };
	if (!js_is(old, JS_ARRAY))
		return;
	while (js_next_element(&it, &v)) {
		gs_strv_add(&array->repl, "");
		array->n_old++;
	}
	array->drop = gs_calloc(array->n_old, 1);
}

void js_array_free(struct js_array *array)
{
	free(array->drop);
	gs_strv_free(&array->repl);
	gs_strv_free(&array->added);
	*array = (struct js_array){ 0 };
}

void js_array_drop(struct js_array *array, size_t index)
{
	array->drop[index] = 1;
	array->changed = true;
}

void js_array_replace(struct js_array *array, size_t index, const char *json)
{
	free(array->repl.v[index]);
	array->repl.v[index] = gs_strdup(json);
	array->changed = true;
}

void js_array_append(struct js_array *array, const char *json)
{
	gs_strv_add(&array->added, json);
	array->changed = true;
}

void js_array_clear(struct js_array *array)
{
	for (size_t i = 0; i < array->n_old; i++)
		array->drop[i] = 1;
	gs_strv_free(&array->added);
	array->changed = array->n_old > 0;
}

char *js_array_text(const struct js_array *array)
{
	struct js_iter it = js_iter(array->old);
	bool is_array = js_is(array->old, JS_ARRAY);
	const char *prev = is_array ? array->old.p + 1 : NULL; /* behind '[' or the last value */
	const char *space = NULL;
	size_t n_space = 0;
	struct gs_buf out = { 0 };
	bool first = true;
	struct js v;

	gs_buf_addc(&out, '[');
	for (size_t i = 0; js_next_element(&it, &v); i++) {
		const char *gap = prev, *start = prev;

		if (i > 0)
			start = (const char *)memchr(prev, ',', (size_t)(v.p - prev)) + 1;
		if (!space) {
			space = start;
			n_space = (size_t)(v.p - start);
		}
		prev = v.p + v.n;
		if (array->drop[i])
			continue;
		if (i > 0 && !array->drop[i - 1])
			start = gap; /* both neighbours stay: so does all between, its comma too */
		else if (!first)
			gs_buf_addc(&out, ',');
		first = false;
		gs_buf_add(&out, start, (size_t)(v.p - start));
		if (array->repl.v[i][0])
			gs_buf_adds(&out, array->repl.v[i]);
		else
			gs_buf_add(&out, v.p, v.n);
	}
	for (size_t i = 0; i < array->added.n; i++) {
		if (!first)
			gs_buf_addc(&out, ',');
		first = false;
		gs_buf_add(&out, space, n_space);
		gs_buf_adds(&out, array->added.v[i]);
	}
	if (is_array) /* the white space before ']' */
		gs_buf_add(&out, prev, (size_t)(array->old.p + array->old.n - 1 - prev));
	gs_buf_addc(&out, ']');
	return gs_buf_steal(&out);
}

void js_edit_array(struct js_edit *edit, const struct js_array *array, struct js object,
		   const char *key)
{
	char *text;

	if (!array->changed)
		return;
	text = js_array_text(array);
	if (array->old.n)
		js_edit_replace(edit, array->old, text);
	else
		js_edit_add_member(edit, object, key, text);
	free(text);
}

static int by_place(const void *a, const void *b)
{
	const struct js_splice *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void js_edit_apply(struct js_edit *edit, struct gs_buf *out)
{
	const char *p = edit->text;

	if (edit->n)
		qsort(edit->splices, edit->n, sizeof(*edit->splices), by_place);
	for (size_t i = 0; i < edit->n; i++) {
		const struct js_splice *s = &edit->splices[i];

		gs_buf_add(out, p, (size_t)(s->at - p));
		gs_buf_adds(out, s->insert);
		p = s->at + s->remove;
	}
	gs_buf_add(out, p, (size_t)(edit->text + edit->len - p));
}
