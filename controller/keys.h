/* SPDX-License-Identifier: Apache-2.0 */
/* The annotations that only the platform may write. */
#ifndef GPUSHARE_CONTROLLER_KEYS_H
#define GPUSHARE_CONTROLLER_KEYS_H

#include <jansson.h>
#include <stdbool.h>

#include "controller/admission.h"

/*
 * Refuses with -EACCES a platform's key that @now has and @before (NULL: nothing was) has not or
 * has otherwise, and one that is gone. @space: annotations of the namespace; what equals them
 * anybody may write. @oversold: oversold_apply() looks after those that it writes.
 */
int keys_check(const json_t *space, const json_t *before, const json_t *now, bool oversold,
	       struct gs_err *err);

/* Gives @pod what its namespace says and the pod itself does not. */
void keys_inherit(const json_t *space, json_t *pod);

/* Says the namespace anything for its pods? */
bool keys_are_in(const json_t *space);

#endif
