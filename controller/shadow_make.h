/* SPDX-License-Identifier: Apache-2.0 */
/* From pods of the API to what is planned with, and from a plan to a pod of the API. */
#ifndef GPUSHARE_CONTROLLER_SHADOW_MAKE_H
#define GPUSHARE_CONTROLLER_SHADOW_MAKE_H

#include "controller/settings.h"
#include "controller/shadow_plan.h"

/*
 * Reads a pod's text: *shadow is true for a shadow pod (in the namespace of @settings, with its
 * annotation). NULL: it is neither that nor a share pod, or can't be read; most pods of a cluster
 * are neither. Whatever else its author wrote is not looked at. The caller frees.
 */
struct shadow_pod *shadow_read(struct js pod, const struct controller_settings *settings,
			       bool *shadow);

/* NULL is none. */
void shadow_pod_free(struct shadow_pod *pod);

/* The name of the shadow pod for @share: always the same, so that there are never two. Freed. */
char *shadow_name(const struct shadow_pod *share);

/*
 * The shadow pod for @share, whose .like is set, as the API takes it: Guaranteed, of its priority
 * class, where it may be, for its partition and account, with a container for each card. The caller
 * decrefs.
 */
json_t *shadow_make(const struct shadow_pod *share, const struct controller_settings *settings);

#endif
