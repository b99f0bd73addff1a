/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of an OCI runtime, read as runc and crun both read it. */
#ifndef GPUSHARE_RUNTIME_ARGV_H
#define GPUSHARE_RUNTIME_ARGV_H

#include <stdbool.h>

#include "common/err.h"

enum verb {
	VERB_OTHER, /* nothing of ours to do */
	VERB_CREATE,
	VERB_RUN,
	VERB_RESTORE,
	VERB_DELETE,
};

/* Strings point into argv; NULL where the command line has none. */
struct command {
	enum verb verb;
	const char *log, *log_format, *root;
	const char *bundle; /* NULL: the working directory */
	const char *pid_file;
	const char *id; /* also of the verbs that are VERB_OTHER */
};

/*
 * Walks @argv: global options with their values, the verb, its options, the container's id. It is
 * no check: what is malformed for every runtime is left for the next one to refuse.
 * -EINVAL on create, run and restore: a form on whose meaning runc and crun disagree, or a config
 * file other than the bundle's; @ret is filled as far as it was read, so that the error can go to
 * the log file.
 */
int argv_read(int argc, char **argv, struct command *ret, struct gs_err *err);

#endif
