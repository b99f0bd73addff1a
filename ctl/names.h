/* SPDX-License-Identifier: Apache-2.0 */
/* gpusharectl: which containers the kernel module's names of holdings and watches stand for. */
#ifndef GPUSHARE_CTL_NAMES_H
#define GPUSHARE_CTL_NAMES_H

#include "common/buf.h"

/*
 * Starts with @run_dir set (borrowed) and all else 0. The registry is read when a name is asked for
 * that is not known yet. What was known stays known: the events that tell of a container's end come
 * when its record may be gone.
 */
struct ctl_names {
	const char *run_dir;
	struct gs_strv keys, labels; /* label "": nobody knows */
};

/* Frees what it holds. */
void ctl_names_free(struct ctl_names *names);
#define cleanup_names __attribute__((cleanup(ctl_names_free)))

/*
 * "<namespace>/<pod>/<container>" of the container that a watch or a holding was named for; NULL:
 * not known, or @names is NULL. Valid as long as @names is.
 */
const char *ctl_names_find(struct ctl_names *names, const char *name);

/* The same, or @name itself. */
const char *ctl_names_label(struct ctl_names *names, const char *name);

#endif
