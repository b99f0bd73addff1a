/* SPDX-License-Identifier: Apache-2.0 */
/* What the controller counts, for Prometheus; docs/controller.md has the list. */
#ifndef GPUSHARE_CONTROLLER_FIGURES_H
#define GPUSHARE_CONTROLLER_FIGURES_H

#include "controller/controller.h"

/* Makes controller->metrics; metrics_free() ends it. */
void figures_start(struct controller *controller);

/* A review was answered: "allowed", "changed", "refused", or "failed" where it could not be. */
void figures_review(struct controller *controller, const char *answer);

/* Something was done to a shadow pod: "made", "deleted", "refused". */
void figures_shadow(struct controller *controller, const char *what);

/* How many shadow pods there are with a node and without, and how many share pods wait. */
void figures_shadows(struct controller *controller, size_t placed, size_t pending, size_t waiting);

/* Appends the exposition. */
void figures_text(struct controller *controller, struct gs_buf *out);

#endif
