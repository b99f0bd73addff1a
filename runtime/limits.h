/* SPDX-License-Identifier: Apache-2.0 */
/* CPU and memory limits of an over-sold container. */
#ifndef GPUSHARE_RUNTIME_LIMITS_H
#define GPUSHARE_RUNTIME_LIMITS_H

#include "runtime/request.h"
#include "runtime/rewrite.h"

/*
 * Sets linux.resources.cpu.{quota,period,shares} and memory.limit from the request: the kubelet
 * sets none for extended resources. A tighter limit that the spec has already stays. A cpu.burst
 * above the new quota becomes the quota, and what memory.swap leaves for swap alone stays; neither
 * is set where it is absent. -EINVAL: what the spec has is no whole number, or in no object;
 * -EEXIST: it stands twice; -ERANGE: a vcpu too large to be a quota.
 */
int limits_apply(struct rewrite *rw, const struct request *req, struct gs_err *err);

#endif
