/* SPDX-License-Identifier: Apache-2.0 */
/* What a spot pod may not be: what could get out of our hands must not borrow a card. */
#ifndef GPUSHARE_CONTROLLER_SPOT_H
#define GPUSHARE_CONTROLLER_SPOT_H

#include "controller/pod.h"

/*
 * Refuses with -EACCES, where @pod asks for gpushare/spot-gpu: the host's PID, network or IPC
 * namespace, and in any container of any kind privileged and the capabilities of
 * common/capability.h. @before: the pod before an update, of which only what is new counts (the
 * API lets ephemeral containers be added, and no other change of these); NULL on creation.
 */
int spot_check(const json_t *before, const json_t *pod, struct gs_err *err);

#endif
