// SPDX-License-Identifier: Apache-2.0
/* The section "kubernetes" of a program's configuration. */
#include "kube/kube.h"

int kube_config_read(const struct gs_doc *doc, struct js object, bool node,
		     struct kube_config *config, struct gs_err *err)
{
	const struct gs_doc_key keys[] = {
		{ "server", GS_DOC_STRING, true },
		{ "ca_file", GS_DOC_STRING, false },
		{ "token_file", GS_DOC_STRING, false },
		{ node ? "node" : NULL, GS_DOC_STRING, true },
		{ 0 },
	};
	struct js v[4] = { 0 };
	int r;

	if (!object.n)
		return 0;
	r = gs_doc_members(doc, object, "kubernetes", keys, v, err);
	if (r == 0)
		r = gs_doc_string(doc, v[0], "server", &config->server, err);
	if (r == 0)
		r = gs_doc_path(doc, v[1], "ca_file", &config->ca_file, err);
	if (r == 0)
		r = gs_doc_path(doc, v[2], "token_file", &config->token_file, err);
	if (r == 0 && node)
		r = gs_doc_string(doc, v[3], "node", &config->node, err);
	return r;
}
