/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that can never receive, because of when a pod's containers start. */
#ifndef GPUSHARE_CONTROLLER_ORDER_H
#define GPUSHARE_CONTROLLER_ORDER_H

#include <jansson.h>

#include "common/err.h"

/*
 * Is a container of @pod (which pod_check() has seen, and each of which has a name) to receive from
 * one of the same pod that starts only after it, or has ended by then? -EINVAL names both. What
 * can't be read is the runtime's to refuse: it says so on the node.
 */
int order_check(const json_t *pod, struct gs_err *err);

#endif
