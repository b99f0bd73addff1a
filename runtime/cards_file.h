/* SPDX-License-Identifier: Apache-2.0 */
/* Reading run_dir/cards.json, which the agent writes (include/gpushare/cards.h). */
#ifndef GPUSHARE_RUNTIME_CARDS_FILE_H
#define GPUSHARE_RUNTIME_CARDS_FILE_H

#include <jansson.h>

#include "common/err.h"

/*
 * Gives the whole file, which the caller decrefs. -ENOENT: there is none, so no agent has looked
 * at this node since it booted. -EINVAL: it is of another version, or no JSON.
 */
int cards_file_read(const char *run_dir, json_t **ret, struct gs_err *err);

#endif
