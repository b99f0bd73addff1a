/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes quantities: "1500m", "2", "512Mi", "1e3", "0.5". */
#ifndef GPUSHARE_COMMON_QUANTITY_H
#define GPUSHARE_COMMON_QUANTITY_H

#include <stdint.h>

#include "common/err.h"

/*
 * Reads @text in the grammar of k8s.io/apimachinery's resource.Quantity (sign, decimal number,
 * suffix n u m "" k M G T P E, Ki..Ei, or a decimal exponent) and gives it in thousandths,
 * rounded up. -EINVAL: malformed or negative; -ERANGE: too large for int64_t thousandths.
 */
int gs_quantity_milli(const char *text, int64_t *ret, struct gs_err *err);

/* The same in whole units, rounded up. */
int gs_quantity_units(const char *text, int64_t *ret, struct gs_err *err);

#endif
