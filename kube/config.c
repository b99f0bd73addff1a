// SPDX-License-Identifier: Apache-2.0
/* The section "kubernetes" of a program's configuration. */
#include "common/sections.h"
#include "kube/kube.h"

int kube_config_read(const struct gs_doc *doc, struct js object, bool node,
		     struct kube_config *config, struct gs_err *err)
{
	struct js v[GS_KUBE_N] = { 0 };
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "kubernetes", node ? gs_kube_node_keys : gs_kube_keys, v,
			   err);
	if (r == 0)
		r = gs_doc_string(doc, v[GS_KUBE_SERVER], "server", &config->server, err);
	if (r == 0)
		r = gs_doc_path(doc, v[GS_KUBE_CA_FILE], "ca_file", &config->ca_file, err);
	if (r == 0)
		r = gs_doc_path(doc, v[GS_KUBE_TOKEN_FILE], "token_file", &config->token_file, err);
	if (r == 0 && node)
		r = gs_doc_string(doc, v[GS_KUBE_NODE], "node", &config->node, err);
	return r;
}
