/* SPDX-License-Identifier: Apache-2.0 */
/* Watches pods, and makes and removes shadow pods as shadow_plan() says, while we lead. */
#ifndef GPUSHARE_CONTROLLER_SHADOW_H
#define GPUSHARE_CONTROLLER_SHADOW_H

#include "controller/controller.h"

/* Begins to watch. */
void shadows_start(struct controller *controller);
void shadows_stop(struct controller *controller);

/* We began or ceased to lead. What is under way is given up at the end of it. */
void shadows_lead(struct controller *controller, bool leads);

/*
 * The shadow pod with that UID was not removed, and is planned for again in @ms. @used: somebody
 * shares its card, whatever the watch has told so far.
 */
void shadows_stays(struct controller *controller, const char *uid, bool used, unsigned int ms);

#endif
