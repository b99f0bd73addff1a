// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe.h"
#include "agent/probe_share.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

/* A kubelet runs a few hundred. */
#define PODS_MAX 4096
#define CGROUP_MAX (256 * 1024)

/* "pod<UID>" or "kubepods-burstable-pod<UID>.slice"; not "kubepods.slice". */
static bool is_pod(const char *part, size_t len)
{
	for (size_t i = 0; i + 3 < len; i++)
		if (strncmp(part + i, "pod", 3) == 0 && (i == 0 || part[i - 1] == '-') &&
		    isxdigit((unsigned char)part[i + 3]))
			return true;
	return false;
}

char *probe_pod_of(const char *cgroup)
{
	const char *end = cgroup, *second = NULL;
	unsigned int parts = 0;

	while (*end) {
		const char *part = end + strspn(end, "/");

		end = part + strcspn(part, "/");
		if (is_pod(part, (size_t)(end - part)))
			return gs_asprintf("%.*s", (int)(end - cgroup), cgroup);
		if (end > part && ++parts == 2)
			second = end;
	}
	return gs_asprintf("%.*s", (int)((second ? second : end) - cgroup), cgroup);
}

struct share *shares_of(struct shares *shares, int procfd, struct gs_err *err)
{
	cleanup_free char *text = NULL, *path = NULL, *pod = NULL;
	size_t len;

	if (gs_file_read(procfd, "cgroup", 0, CGROUP_MAX, &text, &len, NULL, NULL) == 0)
		path = gs_cgroup_pick(text);
	if (!path)
		return NULL;
	pod = probe_pod_of(path);
	for (size_t i = 0; i < shares->n; i++)
		if (strcmp(shares->v[i].pod, pod) == 0)
			return &shares->v[i];
	if (shares->n == PODS_MAX) {
		(void)gs_err_set(err, E2BIG, "more than %d pods", PODS_MAX);
		return NULL;
	}
	shares->v = gs_grow(shares->v, shares->n, sizeof(*shares->v));
	shares->v[shares->n] = (struct share){ .pod = gs_steal(pod) };
	return &shares->v[shares->n++];
}

int shares_cut(const struct shares *shares, struct gs_strv *ret, struct gs_err *err)
{
	for (size_t i = 0; i < shares->n; i++) {
		if (!shares->v[i].cut)
			continue;
		if (ret->n == PROBE_UNSEEN_MAX)
			return gs_err_set(err, E2BIG, "more than %d pods with too many open files",
					  PROBE_UNSEEN_MAX);
		gs_strv_add(ret, shares->v[i].pod);
	}
	return 0;
}

void shares_free(struct shares *shares)
{
	for (size_t i = 0; i < shares->n; i++)
		free(shares->v[i].pod);
	free(shares->v);
	*shares = (struct shares){ 0 };
}
