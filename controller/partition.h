/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions keep apart: a pod only comes to nodes of its own. */
#ifndef GPUSHARE_CONTROLLER_PARTITION_H
#define GPUSHARE_CONTROLLER_PARTITION_H

#include "controller/admission.h"

/*
 * Where @pod has the annotation partition, each term of its required node affinity also asks for
 * the partition's label; there is one if there was none. A pod that names its node (nodeName) is
 * held by it as well: the kubelet looks again. -EINVAL: the partition is no value of a label.
 */
int partition_apply(const struct admission_policy *policy, json_t *pod, struct gs_err *err);

#endif
