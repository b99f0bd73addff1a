/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl grant: the parts of its work. */
#ifndef GPUSHARE_CTL_GRANT_H
#define GPUSHARE_CTL_GRANT_H

#include "common/grant.h"
#include "ctl/ctl.h"

/* The grant as JSON, with @name (the whole one or its beginning) as the member @key. */
json_t *ctl_grant_json(const struct gs_grant *grant, const char *key, const char *name);

/* Prints all grants of @lib_dir; gives the exit status, CTL_FAILED where one can't be read. */
int ctl_grant_list(const char *lib_dir, enum ctl_format format);

/*
 * Has the agent make a spot grant on the cards of @wanted for its @to, and prints its name; gives
 * the exit status.
 */
int ctl_grant_spot(const struct gs_config *config, const struct gs_grant *wanted,
		   enum ctl_format format);

/*
 * Finds the one grant whose name begins with @prefix, at least six hex digits. Gives its name (the
 * caller frees), or an error: -EINVAL no such prefix, -ENOENT, -EEXIST several.
 */
int ctl_grant_find(const char *lib_dir, const char *prefix, char **ret, struct gs_err *err);

#endif
