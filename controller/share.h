/* SPDX-License-Identifier: Apache-2.0 */
/* The switch: share: "true" makes shares of cards out of the cards that a pod asks for. */
#ifndef GPUSHARE_CONTROLLER_SHARE_H
#define GPUSHARE_CONTROLLER_SHARE_H

#include "controller/admission.h"
#include "controller/pod.h"

/*
 * Where @pod's switch is on, the whole cards that each container asks for become as many of
 * gpushare/share-gpu. -EINVAL: the switch is neither "true" nor "false"; a slice of a card; a
 * number that is none; shares or cards together with gpushare/spot-gpu in one container.
 */
int share_apply(const struct admission_policy *policy, json_t *pod, struct gs_err *err);

#endif
