/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod's author should hear of though the pod is let in: kubectl shows it. "Response",
 * Dynamic Admission Control, Kubernetes documentation.
 */
#ifndef GPUSHARE_CONTROLLER_WARN_H
#define GPUSHARE_CONTROLLER_WARN_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Sentences about @pod, which was checked: misspelt keys of ours, sources for a container that is
 * not there, the switch without a card (@asks: it asks for one, or for a share). A bounded number.
 * The caller owns the array.
 */
json_t *warn_make(const json_t *pod, bool asks);

#endif
