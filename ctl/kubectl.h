/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: asking the Kubernetes API by the user's own kubectl, with the user's own rights. */
#ifndef GPUSHARE_CTL_KUBECTL_H
#define GPUSHARE_CTL_KUBECTL_H

#include <stddef.h>

#include "common/err.h"
#include "ctl/view.h"

/* What one answer may have at most: 5,000 nodes of 50 KiB. */
#define KUBECTL_MAX (256 * 1024 * 1024)

/*
 * What `kubectl get configmaps` prints of the nodes' views, as JSON; the caller frees. Errors as
 * view_of_cluster().
 */
int kubectl_get_maps(const struct view_kubectl *kubectl, char **ret, size_t *ret_len,
		     struct gs_err *err);

#endif
