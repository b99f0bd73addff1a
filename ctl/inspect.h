/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: what inspect and top share: the options about the cluster, and a node's name. */
#ifndef GPUSHARE_CTL_INSPECT_H
#define GPUSHARE_CTL_INSPECT_H

#include "ctl/view.h"
#include "gpushare/view.h"

#define INSPECT_NAMESPACE GS_VIEW_NAMESPACE

/* For getopt_long(3); -n is "n:". */
enum { OPT_NODE = 256, OPT_CONTEXT, OPT_KUBECONFIG };
#define INSPECT_CLUSTER_OPTIONS                                       \
	{ "node", required_argument, NULL, OPT_NODE },                \
		{ "namespace", required_argument, NULL, 'n' },        \
		{ "context", required_argument, NULL, OPT_CONTEXT },  \
	{                                                             \
		"kubeconfig", required_argument, NULL, OPT_KUBECONFIG \
	}

/* Takes one of them, with its value in optarg; false: it is another one. */
bool inspect_cluster_option(int opt, struct view_kubectl *kubectl);

/* The node's name, with how long it has been silent where it is stale; the caller frees. */
char *inspect_node(const struct view_node *node);

#endif
