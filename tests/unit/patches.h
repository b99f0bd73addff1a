/* SPDX-License-Identifier: Apache-2.0 */
/* JSON patches as an API server reads and applies them. */
#ifndef GPUSHARE_TESTS_UNIT_PATCHES_H
#define GPUSHARE_TESTS_UNIT_PATCHES_H

#include <jansson.h>

/* Base64 of a JSON text; NULL where @text is. Fails the test where it is neither. */
json_t *patch_decode(const char *text);

/* Does every "add" of @patch to @object (members of objects alone, as all of ours are). */
void patch_apply(json_t *object, const json_t *patch);

#endif
