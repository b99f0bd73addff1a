// SPDX-License-Identifier: Apache-2.0
/* The section "kubernetes" of a program's configuration, and what a pod knows by itself. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/identity.h"
#include "common/sections.h"
#include "common/xalloc.h"

#define OWN_NAMESPACE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

int kube_own_namespace(char **ret, struct gs_err *err)
{
	const char *env = getenv("POD_NAMESPACE");
	cleanup_free char *namespace = env && *env ? gs_strdup(env) : NULL;
	size_t len;
	int r = 0;

	if (!namespace)
		r = gs_file_read(AT_FDCWD, OWN_NAMESPACE, 0, 256, &namespace, &len, NULL, err);
	if (r < 0)
		return r;
	if (!gs_dns_label(namespace, strlen(namespace)))
		return gs_err_set(err, EINVAL, "'%s' is no namespace", namespace);
	*ret = gs_steal(namespace);
	return 0;
}

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
