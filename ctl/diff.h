/* SPDX-License-Identifier: Apache-2.0 */
/* A unified difference of two texts. */
#ifndef GPUSHARE_CTL_DIFF_H
#define GPUSHARE_CTL_DIFF_H

#include "common/buf.h"

/*
 * Appends what changes from @old (NULL: there is no file) to @new (NULL: it is removed), with three
 * lines around, as patch(1) reads it; nothing where they are the same. @path stands in the heading.
 */
void ctl_diff(const char *path, const char *old, const char *new, struct gs_buf *out);

#endif
