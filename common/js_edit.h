/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits of a JSON text: collected first, applied in one pass, every byte outside of them copied
 * as it is. White space around new members follows that of their neighbours, so a file that was
 * printed for people stays so.
 */
#ifndef GPUSHARE_COMMON_JS_EDIT_H
#define GPUSHARE_COMMON_JS_EDIT_H

#include "common/buf.h"
#include "common/js.h"

struct js_splice;

/* Starts as {0} with @text and @len set to what js_parse() has checked. */
struct js_edit {
	const char *text;
	size_t len;
	struct js_splice *splices;
	size_t n;
};

/* Frees the collected edits, not the text. */
void js_edit_free(struct js_edit *edit);
#define cleanup_js_edit __attribute__((cleanup(js_edit_free)))

/* The value at @old becomes @json. Two edits must not overlap. */
void js_edit_replace(struct js_edit *edit, struct js old, const char *json);

/*
 * @object gets the member @key (which it does not have; plain ASCII) with value @json, after its
 * last one. Several new members of one object come in the order of the calls.
 */
void js_edit_add_member(struct js_edit *edit, struct js object, const char *key, const char *json);

/*
 * A new version of an array, built element by element; when no call changed anything, no byte is
 * edited. Start with js_array_begin() on the present array ({0} or null where there is none).
 */
struct js_array {
	struct js old;
	char *drop; /* one flag for each old element */
	struct gs_strv repl; /* for each old element: new text, or "" */
	size_t n_old;
	struct gs_strv added;
	bool changed;
};
void js_array_begin(struct js_array *array, struct js old);
void js_array_drop(struct js_array *array, size_t index);
void js_array_replace(struct js_array *array, size_t index, const char *json);
void js_array_append(struct js_array *array, const char *json);
/* Every old element goes, and every one that was added so far. */
void js_array_clear(struct js_array *array);
void js_array_free(struct js_array *array);
#define cleanup_js_array __attribute__((cleanup(js_array_free)))

/* The new array as text: raw old elements with the white space they had, then the added ones. */
char *js_array_text(const struct js_array *array);

/*
 * Records @array as an edit: the old array's text is replaced, or, where it was absent, @object
 * gets it as member @key. Nothing where nothing changed.
 */
void js_edit_array(struct js_edit *edit, const struct js_array *array, struct js object,
		   const char *key);

/* The whole text with all edits applied, appended to @out. */
void js_edit_apply(struct js_edit *edit, struct gs_buf *out);

#endif
