/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a pod's cgroup that limit it. */
#ifndef GPUSHARE_AGENT_POD_CGROUP_H
#define GPUSHARE_AGENT_POD_CGROUP_H

#include "common/err.h"

/*
 * What the file @name of the pod's cgroup says, and its path; the caller frees both. @root: where
 * cgroup v2 is mounted. -ENOENT: the pod of that UID has no cgroup (yet, or any more).
 */
int pod_cgroup_read(const char *root, const char *uid, const char *name, char **ret_path,
		    char **ret_text, struct gs_err *err);

/* Writes @text to the file at such a path, at once. The kernel's own error, where it takes none. */
int pod_cgroup_write(const char *path, const char *text, struct gs_err *err);

#endif
