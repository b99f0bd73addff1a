/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: values as YAML 1.2. */
#ifndef GPUSHARE_CTL_YAML_H
#define GPUSHARE_CTL_YAML_H

#include <jansson.h>

#include "common/buf.h"

/*
 * Appends the value in block style, as kubectl writes it, with a newline at its end. A text that
 * could be taken for anything else, or that a terminal would obey, is quoted and escaped.
 */
void yaml_add(struct gs_buf *out, const json_t *value);

/* Prints it to stdout. Takes the reference. */
void yaml_print(json_t *value);

#endif
