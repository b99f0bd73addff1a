/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pod's share of a walk over all open files: one with millions of them must not end the walk
 * for all others, and must not make it take so long that it is given up.
 */
#ifndef GPUSHARE_AGENT_PROBE_SHARE_H
#define GPUSHARE_AGENT_PROBE_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/err.h"

struct share {
	char *pod; /* its cgroup */
	size_t files; /* that were looked at, since counting began */
	bool cut; /* others were not */
};

/* {0}: nobody's yet. */
struct shares {
	struct share *v;
	size_t n;
};

/*
 * The cgroup of the pod that a process in @cgroup is of: the part of the path down to the
 * kubelet's "pod<UID>" or "...-pod<UID>.slice"; where there is none, the first two parts, which is
 * a container of docker's or podman's. The caller frees.
 */
char *probe_pod_of(const char *cgroup);

/*
 * The share of the pod of the process whose folder in /proc is @procfd; made where there is none,
 * good until the next call. NULL: that can't be told (-E2BIG: there are too many pods; the process
 * is gone: no error).
 */
struct share *shares_of(struct shares *shares, int procfd, struct gs_err *err);

/* Adds the pods of which something was cut off to @ret; -E2BIG: too many of them. */
int shares_cut(const struct shares *shares, struct gs_strv *ret, struct gs_err *err);

/* Frees what it holds; it is {0} then. */
void shares_free(struct shares *shares);
#define cleanup_shares __attribute__((cleanup(shares_free)))

#endif
