/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file, /etc/gpushare/config.json; gpushare-config(5) has its keys. */
#ifndef GPUSHARE_COMMON_CONFIG_H
#define GPUSHARE_COMMON_CONFIG_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/err.h"

struct gs_doc;
struct js;

#define GS_CONFIG_ENV "GPUSHARE_CONFIG"

/* Where the build says that things are installed; the defaults of the keys stand on these. */
#ifndef GPUSHARE_SYSCONFDIR
#define GPUSHARE_SYSCONFDIR "/etc"
#endif
#ifndef GPUSHARE_LIBEXECDIR
#define GPUSHARE_LIBEXECDIR "/usr/libexec/gpushare"
#endif
#ifndef GPUSHARE_DATADIR
#define GPUSHARE_DATADIR "/usr/share/gpushare"
#endif
#ifndef GPUSHARE_RUNSTATEDIR
#define GPUSHARE_RUNSTATEDIR "/run"
#endif
#ifndef GPUSHARE_LOCALSTATEDIR
#define GPUSHARE_LOCALSTATEDIR "/var"
#endif

#define GS_CONFIG_PATH GPUSHARE_SYSCONFDIR "/gpushare/config.json"

/* Where a next runtime without a path is looked for after PATH, which a service may not have. */
#define GS_SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Whose annotation keys tell a container's identity. */
enum gs_cri { GS_CRI_CONTAINERD, GS_CRI_CRIO, GS_CRI_NONE };

/* What lets a container receive from outside its pod. */
enum gs_cross_pod { GS_CROSS_POD_GRANT, GS_CROSS_POD_ANNOTATION };

enum gs_log_level { GS_LOG_ERROR, GS_LOG_WARN, GS_LOG_INFO, GS_LOG_DEBUG };

struct gs_config {
	char *path; /* the file looked for, whether or not it exists */
	struct gs_strv next; /* next runtimes in order of preference: names or paths */
	enum gs_cri cri;
	char *run_dir, *lib_dir;
	char *hook; /* gpushare-hook, as it is put into containers' specs */
	struct gs_strv vendor_dirs; /* a later folder's file replaces one of its name */
	enum gs_cross_pod cross_pod;
	bool fence_privileged;
	bool refuse_unconfirmed; /* the agent's; see gpushare-config(5) */
	struct gs_strv state_dirs; /* where bundles of other runtimes' containers may be */
	unsigned int create_wait_ms; /* how long creation may be delayed in all; default 15000 */
	enum gs_log_level log_level;
	char *log_file; /* NULL: no log of our own */
};

/*
 * Sets every key to its default, with the file that would be read: $GPUSHARE_CONFIG or
 * GS_CONFIG_PATH.
 */
void gs_config_init(struct gs_config *config);

/*
 * Reads the file into an initialised @config. @profile (may be NULL) is the name that the program
 * was called by: where "profiles" has it, its "next" replaces the general one. No file at all is
 * no error. On an error @config holds the defaults, and the message names file, line, column and
 * key. Unknown keys are errors; the sections "agent" and "controller" are theirs and only checked
 * to be objects.
 */
int gs_config_load(struct gs_config *config, const char *profile, struct gs_err *err);

/*
 * Reads the file @path of a configuration as JSON, for whoever looks into it: *text is the caller's
 * to free, *doc and *root lead into it. -ENOENT: there is none, which is no error and not told.
 */
int gs_config_read(const char *path, char **text, struct gs_doc *doc, struct js *root,
		   struct gs_err *err);

/* Frees what @config holds. */
void gs_config_free(struct gs_config *config);
#define cleanup_config __attribute__((cleanup(gs_config_free)))

#endif
