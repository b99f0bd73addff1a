// SPDX-License-Identifier: Apache-2.0
/* Our own JSON files, read with jansson: typed members with errors that name file and key. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/json.h"
#include "common/xalloc.h"

int gs_json_parse(const char *name, const char *text, size_t len, json_t **ret, struct gs_err *err)
{
	cleanup_json json_t *json = NULL;
	json_error_t where;

	/* JSON_DECODE_ANY: a lone scalar gets the sentence below, not a puzzling syntax error. */
	json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
	if (!json)
		return gs_err_set(err, EINVAL, "%s:%d:%d: %s", name, where.line, where.column,
				  where.text);
	if (!json_is_object(json))
		return gs_err_set(err, EINVAL, "%s:1:1: must be a JSON object", name);
	*ret = gs_steal(json);
	return 0;
}

int gs_json_read(int dirfd, const char *path, int flags, size_t max, json_t **ret,
		 struct gs_err *err)
{
	cleanup_free char *text = NULL;
	size_t len;
	int r;

	r = gs_file_read(dirfd, path, flags, max, &text, &len, NULL, err);
	return r < 0 ? r : gs_json_parse(path, text, len, ret, err);
}

/* The member @key; NULL where it is absent, with an error set where it is required. */
static const json_t *member(const json_t *obj, const char *where, const char *key, bool required,
			    int *ret, struct gs_err *err)
{
	const json_t *v = json_object_get(obj, key);

	*ret = 0;
	if (!v && required)
		*ret = gs_err_set(err, EINVAL, "%s: %s is missing", where, key);
	return v;
}

int gs_json_str(const json_t *obj, const char *where, const char *key, bool required, char **ret,
		struct gs_err *err)
{
	int r;
	const json_t *v = member(obj, where, key, required, &r, err);

	if (!v)
		return r;
	if (!json_is_string(v))
		return gs_err_set(err, EINVAL, "%s: %s must be a string", where, key);
	free(*ret);
	*ret = gs_strdup(json_string_value(v));
	return 0;
}

int gs_json_uint(const json_t *obj, const char *where, const char *key, bool required,
		 uint64_t *ret, struct gs_err *err)
{
	int r;
	const json_t *v = member(obj, where, key, required, &r, err);

	if (!v)
		return r;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return gs_err_set(err, EINVAL, "%s: %s must be a whole number, not negative", where,
				  key);
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

int gs_json_strv(const json_t *obj, const char *where, const char *key, bool required,
		 struct gs_strv *ret, struct gs_err *err)
{
	int r;
	const json_t *v = member(obj, where, key, required, &r, err), *item;
	size_t i;

	if (!v)
		return r;
	if (!json_is_array(v))
		return gs_err_set(err, EINVAL, "%s: %s must be a list of strings", where, key);
	json_array_foreach(v, i, item) {
		if (!json_is_string(item))
			return gs_err_set(err, EINVAL, "%s: %s must be a list of strings", where,
					  key);
	}
	gs_strv_free(ret);
	json_array_foreach(v, i, item) {
		gs_strv_add(ret, json_string_value(item));
	}
	return 0;
}

int gs_json_enum(const json_t *obj, const char *where, const char *key, bool required,
		 const char *const *names, int *ret, struct gs_err *err)
{
	cleanup_buf struct gs_buf all = { 0 };
	int r;
	const json_t *v = member(obj, where, key, required, &r, err);

	if (!v)
		return r;
	for (int i = 0; names[i]; i++) {
		if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	for (int i = 0; names[i]; i++)
		gs_buf_addf(&all, "%s\"%s\"", i == 0 ? "" : names[i + 1] ? ", " : " or ", names[i]);
	return gs_err_set(err, EINVAL, "%s: %s must be %s", where, key, all.data);
}

int gs_json_known(const json_t *obj, const char *where, const char *const *known,
		  struct gs_err *err)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)obj, key, v) {
		bool found = false;

		for (size_t i = 0; known[i] && !found; i++)
			found = strcmp(known[i], key) == 0;
		if (!found)
			return gs_err_set(err, EINVAL, "%s: unknown key \"%s\"", where, key);
	}
	return 0;
}

json_t *gs_json_list(const struct gs_strv *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		(void)json_array_append_new(array, json_string(list->v[i]));
	return array;
}
