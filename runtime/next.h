/* SPDX-License-Identifier: Apache-2.0 */
/* The next runtime: found on the search path, never ourselves, and exec'ed. */
#ifndef GPUSHARE_RUNTIME_NEXT_H
#define GPUSHARE_RUNTIME_NEXT_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/config.h"
#include "common/err.h"

/*
 * Finds the first of @names that exists: a path as it is, a name in $PATH and then in the usual
 * system directories (podman's clean-up calls its runtime with no PATH at all). Files that are
 * this very program - by device and inode, or a copy of the same bytes - are passed over.
 * Gives an absolute path; the caller frees. -ENOENT: the message names every path tried.
 */
int next_find(const struct gs_strv *names, char **ret, struct gs_err *err);

/*
 * A config that can't be read says neither what comes next nor where the records are, and verbs for
 * containers that run must not go elsewhere because of a typo. So a good config's last answer is
 * kept, as the text of a link <default run_dir>/next/<profile>-<gs_hash() of the config's path>:
 * path, newline, run_dir. next_remember() writes it where it differs; next_remembered() gives both
 * (the caller frees), or false. @profile: the name that the program was called by.
 */
void next_remember(const struct gs_config *config, const char *profile, const char *path);
bool next_remembered(const struct gs_config *config, const char *profile, char **ret_path,
		     char **ret_run_dir);

/*
 * What does the runtime with this path make of a spec without any device rule? runc 1.1 allows the
 * default devices then; crun 1.8 every device, and this is true.
 */
bool next_allows_without_rules(const char *path);

/* Can @path be the next runtime: an executable file, and not this program? */
bool next_usable(const char *path);

/*
 * Replaces this process: @path with the same arguments, environment and open files. argv[0]
 * becomes @path, as crun picks its handler by the name it was called by (krun). Returns only on
 * an error.
 */
int next_exec(const char *path, char **argv, struct gs_err *err);

#endif
