/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cards that nobody holds: what a container gets of one comes out of the node's inventory and the
 * catalogue, in the shape of a source.
 */
#ifndef GPUSHARE_RUNTIME_FREE_H
#define GPUSHARE_RUNTIME_FREE_H

#include "runtime/source.h"

/*
 * Makes a source of the card of that name in run_dir/cards.json: its selector where @next acts on
 * that, else its nodes and those that all of its vendor's cards share. -ENODEV: there is no such
 * card, or no entry of its vendor; -EINVAL: the file is not the agent's.
 */
int free_source(const struct gs_config *config, const struct gs_catalogue *cat, const char *next,
		const char *card, struct source *ret, struct gs_err *err);

#endif
