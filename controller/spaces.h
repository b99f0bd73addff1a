/* SPDX-License-Identifier: Apache-2.0 */
/* What namespaces say for their pods: a watch of all of them, of which our annotations are kept. */
#ifndef GPUSHARE_CONTROLLER_SPACES_H
#define GPUSHARE_CONTROLLER_SPACES_H

#include <jansson.h>

#include "controller/controller.h"

/* Begins to watch. @changed (may be NULL) is called when one came, changed or went, and once all
 * are known. */
void spaces_start(struct controller *controller, void (*changed)(struct controller *controller));
void spaces_stop(struct controller *controller);

/* Are all of them known? */
bool spaces_synced(const struct controller *controller);

/* Our annotations on that namespace, borrowed, maybe empty; NULL: no such one is known. */
const json_t *spaces_get(const struct controller *controller, const char *name);

#endif
