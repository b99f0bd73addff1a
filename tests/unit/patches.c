// SPDX-License-Identifier: Apache-2.0
/* JSON patches as an API server reads and applies them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/patches.h"

json_t *patch_decode(const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";
	cleanup_free char *out = NULL;
	size_t n = 0, len;
	json_t *json;

	if (!text)
		return NULL;
	len = strlen(text);
	assert_int_equal(len % 4, 0);
	out = gs_malloc(len / 4 * 3 + 1);
	for (size_t i = 0; i < len; i += 4) {
		unsigned int bits = 0, pad = 0;

		for (size_t j = 0; j < 4; j++) {
			const char *at = strchr(digits, text[i + j]);

			pad += text[i + j] == '=';
			assert_true(at || (text[i + j] == '=' && i + 4 == len));
			bits = bits << 6 | (at ? (unsigned int)(at - digits) : 0);
		}
		assert_true(pad <= 2);
		for (size_t j = 0; j < 3 - pad; j++)
			out[n++] = (char)(bits >> (16 - 8 * j) & 255);
	}
	json = json_loadb(out, n, 0, NULL);
	assert_true(json_is_array(json));
	return json;
}

/* The next part of the pointer at *@path, unescaped; the caller frees. */
static char *next_part(const char **path)
{
	size_t len = strcspn(++*path, "/"), n = 0;
	char *part = gs_strndup(*path, len);

	for (size_t i = 0; i < len; i++, n++) {
		part[n] = part[i];
		if (part[i] == '~')
			part[n] = part[++i] == '1' ? '/' : '~';
	}
	part[n] = '\0';
	*path += len;
	return part;
}

void patch_apply(json_t *object, const json_t *patch)
{
	const json_t *op;
	size_t i;

	json_array_foreach(patch, i, op) {
		const char *path = json_string_value(json_object_get(op, "path"));
		json_t *at = object;

		assert_string_equal(json_string_value(json_object_get(op, "op")), "add");
		while (at) {
			cleanup_free char *part = next_part(&path);

			if (!*path) {
				assert_true(json_is_object(at));
				json_object_set(at, part, json_object_get(op, "value"));
				break;
			}
			at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10)) :
						 json_object_get(at, part);
			assert_non_null(at);
		}
	}
}
