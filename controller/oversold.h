/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Over-sold CPU and memory: beside a card that is sold no ordinary CPU is left, so spot pods and
 * data jobs ask for gpushare/vcpu (thousandths) and gpushare/vmem (MiB) instead.
 */
#ifndef GPUSHARE_CONTROLLER_OVERSOLD_H
#define GPUSHARE_CONTROLLER_OVERSOLD_H

#include "controller/admission.h"
#include "controller/pod.h"

/* Is it a spot pod, of a class of data jobs, or does it ask for over-sold CPU or memory itself? */
bool oversold_is(const struct admission_policy *policy, const json_t *pod);

/*
 * Turns every container's cpu and memory into vcpu and vmem: what it requests, or else its limit.
 * Where another webhook asked for more after us, the larger one counts. Annotations tell the
 * runtime: <key> the most that a container of the pod has, <key>.<container> what those with less
 * have; so one that comes later (an ephemeral one) is limited, too.
 * -EINVAL: a quantity that is none; a container that runs all the time and says nothing (it would
 * have no limit); resources of the pod as a whole; a container's name too long for its key.
 * -EACCES: such an annotation is there already, is not what we write, and @trusted says that
 * whoever asks may not write it; what one who may wrote stays.
 */
int oversold_apply(json_t *pod, bool trusted, struct gs_err *err);

/* Is @key one that oversold_apply() writes on this pod, or refuses with a better sentence? */
bool oversold_writes(const json_t *pod, const char *key);

/*
 * Has a container of the updated pod @now cpu or memory that it had not in @before, or the pod as a
 * whole? -EACCES, -EINVAL.
 */
int oversold_update(const json_t *before, const json_t *now, struct gs_err *err);

#endif
