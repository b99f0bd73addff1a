/* SPDX-License-Identifier: Apache-2.0 */
/* Is it UTF-8? */
#ifndef GPUSHARE_COMMON_UTF8_H
#define GPUSHARE_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Length of the valid UTF-8 sequence at @text (which is before @text_end): 1 to 4; 0: there is
 * none (overlong, a surrogate, cut off). The Unicode Standard, table 3-7.
 */
size_t gs_utf8_len(const char *text, const char *text_end);

/* Is the whole string UTF-8? */
bool gs_utf8_valid(const char *s);

#endif
