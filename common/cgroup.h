/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroup a process is in, and what the cgroup file system tells. */
#ifndef GPUSHARE_COMMON_CGROUP_H
#define GPUSHARE_COMMON_CGROUP_H

#include <stdbool.h>

#define GS_CGROUP_ROOT "/sys/fs/cgroup"

/*
 * Picks the path that gs_proc_cgroup() gives from the text of a /proc/PID/cgroup, which it cuts
 * up. NULL: it holds none. The caller frees.
 */
char *gs_cgroup_pick(char *text);

/*
 * Is the cgroup @path at or below the one that a spec's cgroupsPath names? @cgroups_path is
 * "/a/b" (cgroupfs; @path may have a prefix before it where the host itself is in a cgroup) or
 * "slice:prefix:name" (systemd; a component "prefix-name.scope", or "name" if it ends in .slice; or
 * that very text, which a runtime without its systemd switch takes for the name of a folder).
 * An empty @cgroups_path names nothing: true.
 */
bool gs_cgroup_matches(const char *path, const char *cgroups_path);

/*
 * Is there a process in the cgroup @path or below it? @path is what gs_proc_cgroup() gives, looked
 * up under @root (normally GS_CGROUP_ROOT) where version 2, version 1's devices hierarchy and a
 * hybrid system's version 2 are mounted, or an absolute path under @root. False where there is no
 * such cgroup any more, and for the root cgroup, which tells nothing about one container; true
 * where that can't be told now (see gs_err_is_scarce()).
 */
bool gs_cgroup_busy(const char *root, const char *path);

/*
 * The folder of the cgroup @path, looked up in the same places; NULL: there is none any more, or
 * it is the root. The caller frees.
 */
char *gs_cgroup_folder(const char *root, const char *path);

#endif
