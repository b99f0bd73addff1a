/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes shadow pods that nobody needs. What a watch tells may be old, and with a shadow pod those
 * who share its card are ended: so one that is on a node goes only after the API server was asked
 * who else is there now.
 */
#ifndef GPUSHARE_CONTROLLER_SHADOW_REMOVE_H
#define GPUSHARE_CONTROLLER_SHADOW_REMOVE_H

#include <stdbool.h>

#include "controller/controller.h"
#include "controller/shadow_plan.h"

/*
 * Begins to remove @shadow; @why is for the log. shadows_stays() is told if it stays. False: too
 * many are being removed already, and nothing was begun.
 */
bool shadow_remove(struct controller *controller, const struct shadow_pod *shadow, const char *why);

/* Gives up what is under way. Whether the server has removed one of those is not known. */
void shadow_remove_stop(struct controller *controller);

#endif
