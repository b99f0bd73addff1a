/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of time as people write them: "10m", "1h30m", "500ms". */
#ifndef GPUSHARE_COMMON_DURATION_H
#define GPUSHARE_COMMON_DURATION_H

#include <stdint.h>

#include "common/err.h"

/*
 * Reads whole numbers with the units ms, s, m, h, largest first ("1h30m"), or "0", as milliseconds.
 * -EINVAL: it is none; -ERANGE: more than @max milliseconds.
 */
int gs_duration_ms(const char *text, uint64_t max, uint64_t *ret, struct gs_err *err);

/* The longest that gs_duration_text() writes, with its NUL. */
#define GS_DURATION_MAX 48

/*
 * Writes @ms so that gs_duration_ms() reads it, and gives @buf, which has room for GS_DURATION_MAX
 * bytes.
 */
const char *gs_duration_text(uint64_t ms, char *buf);

/* The same with the two largest units alone, cut: "3h12m", "12m5s", "5s"; below a second "0s". */
const char *gs_duration_short(uint64_t ms, char *buf);

#endif
