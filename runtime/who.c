// SPDX-License-Identifier: Apache-2.0
/* The identity of a spec. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "runtime/who.h"

/* What the CRI implementations write; CRI-O passes the kubelet's own keys on. */
struct vocabulary {
	const char *container, *pod, *ns, *uid, *sandbox_id, *type;
};

static const struct vocabulary containerd_keys = {
	.container = "io.kubernetes.cri.container-name",
	.pod = "io.kubernetes.cri.sandbox-name",
	.ns = "io.kubernetes.cri.sandbox-namespace",
	.uid = "io.kubernetes.cri.sandbox-uid",
	.sandbox_id = "io.kubernetes.cri.sandbox-id",
	.type = "io.kubernetes.cri.container-type",
};

static const struct vocabulary crio_keys = {
	.container = "io.kubernetes.container.name",
	.pod = "io.kubernetes.pod.name",
	.ns = "io.kubernetes.pod.namespace",
	.uid = "io.kubernetes.pod.uid",
	.sandbox_id = "io.kubernetes.cri-o.SandboxID",
	.type = "io.kubernetes.cri-o.ContainerType",
};

void who_free(struct who *who)
{
	gs_identity_free(&who->id);
	free(who->sandbox_id);
	free(who->pod_uid);
	*who = (struct who){ 0 };
}

static int read_identity_annotation(const struct spec *spec, struct who *who, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	int r;

	r = spec_annotation(spec, GS_KEY_IDENTITY, &text, err);
	if (r < 0 || !text)
		return r;
	r = gs_identity_parse(text, strlen(text), NULL, &who->id, err);
	return r < 0 ? gs_err_prefix(err, "annotation " GS_KEY_IDENTITY) : 0;
}

static int read_vocabulary(const struct spec *spec, const struct vocabulary *keys, struct who *who,
			   struct gs_err *err)
{
	cleanup_free char *container = NULL;
	cleanup_free char *pod = NULL;
	cleanup_free char *ns = NULL;
	cleanup_free char *type = NULL;
	cleanup_free char *text = NULL;
	int r;

	r = spec_annotation(spec, keys->type, &type, err);
	if (r == 0)
		r = spec_annotation(spec, keys->container, &container, err);
	if (r == 0)
		r = spec_annotation(spec, keys->pod, &pod, err);
	if (r == 0)
		r = spec_annotation(spec, keys->ns, &ns, err);
	if (r == 0)
		r = spec_annotation(spec, keys->uid, &who->pod_uid, err);
	if (r == 0)
		r = spec_annotation(spec, keys->sandbox_id, &who->sandbox_id, err);
	if (r < 0)
		return r;
	who->sandbox = type && strcmp(type, "sandbox") == 0;
	if (who->sandbox || !container || !pod || !ns)
		return 0;
	text = gs_asprintf("%s/%s/%s", ns, pod, container);
	r = gs_identity_parse(text, strlen(text), NULL, &who->id, err);
	return r < 0 ? gs_err_prefix(err, "the container's own identity") : 0;
}

int who_read(const struct spec *spec, enum gs_cri cri, struct who *ret, struct gs_err *err)
{
	struct who who = { 0 };
	int r;

	if (cri == GS_CRI_NONE)
		r = read_identity_annotation(spec, &who, err);
	else
		r = read_vocabulary(spec, cri == GS_CRI_CRIO ? &crio_keys : &containerd_keys, &who,
				    err);
	if (r < 0) {
		who_free(&who);
		return r;
	}
	*ret = who;
	return 0;
}

bool who_same_pod(const struct who *a, const struct gs_identity *b_id, const char *b_sandbox_id,
		  const char *b_pod_uid)
{
	if (!gs_identity_is_set(&a->id) || !gs_identity_is_set(b_id) ||
	    strcmp(a->id.ns, b_id->ns) != 0 || strcmp(a->id.pod, b_id->pod) != 0)
		return false;
	/* a StatefulSet's pod comes back under its name: the old one's containers are not ours */
	if (a->sandbox_id || b_sandbox_id)
		return a->sandbox_id && b_sandbox_id && strcmp(a->sandbox_id, b_sandbox_id) == 0;
	if (a->pod_uid || b_pod_uid)
		return a->pod_uid && b_pod_uid && strcmp(a->pod_uid, b_pod_uid) == 0;
	return true;
}
