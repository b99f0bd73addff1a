/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's view: one ConfigMap a node, which its agent writes and gpusharectl, called as
 * kubectl-gpushare, reads.
 *
 *   name      GS_VIEW_PREFIX and the node's name: whose node it is says the name alone, which the
 *             ValidatingAdmissionPolicy binds to the writer's token, never what is in it
 *   labels    GS_VIEW_LABEL, by which all of them are found, and GS_VIEW_OWNER
 *   data      GS_VIEW_KEY: {"v":1,"time":"2026-11-30T13:00:00Z","left_out":N, ...}
 *
 * "..." is what the agent answers to "status" (agent.h): cards, holdings, borrowers, kernel; its
 * since_ms are of that time. left_out: so many cards and containers did not fit; absent: none.
 */
#ifndef GPUSHARE_VIEW_H
#define GPUSHARE_VIEW_H

#include "gpushare/annotations.h"

#define GS_VIEW_VERSION 1
#define GS_VIEW_PREFIX "gpushare-node-"
#define GS_VIEW_NAMESPACE "gpushare-system" /* where nothing else is said */
#define GS_VIEW_LABEL GS_ANNOTATION_PREFIX "view"
#define GS_VIEW_LABEL_VALUE "node"
#define GS_VIEW_OWNER "app.kubernetes.io/managed-by"
#define GS_VIEW_OWNER_VALUE "gpushared"
#define GS_VIEW_KEY "status.json"

/*
 * A ConfigMap may have 1 MiB. Half of that is a node with 400 containers on eight cards each, and
 * a list of many nodes has to fit somewhere, too.
 */
#define GS_VIEW_MAX (512 * 1024)

/* Written anew after so long although nothing changed; who has not for two of these is silent. */
#define GS_VIEW_REFRESH_S 300
#define GS_VIEW_STALE_S (2 * GS_VIEW_REFRESH_S + 60)

#endif
