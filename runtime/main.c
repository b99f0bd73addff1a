// SPDX-License-Identifier: Apache-2.0
/*
 * gpushare-runtime: an OCI runtime that edits annotated containers' config.json and then becomes
 * the next runtime. It takes no argument of its own.
 */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/registry.h"
#include "runtime/argv.h"
#include "runtime/create.h"
#include "runtime/next.h"
#include "runtime/report.h"

/* Every verb for one container goes to the same runtime, also after "next" was changed. */
static int find_next(const struct gs_config *config, const struct command *cmd, char **ret,
		     struct gs_err *err)
{
	bool creates = cmd->verb == VERB_CREATE || cmd->verb == VERB_RUN ||
		       cmd->verb == VERB_RESTORE;

	if (!creates && cmd->id && gs_id_valid(cmd->id)) {
		char *path = gs_registry_next(config->run_dir, cmd->id);

		if (path && next_usable(path)) {
			*ret = path;
			return 0;
		}
		free(path);
	}
	return next_find(&config->next, ret, err);
}

static int prepare(const struct gs_config *config, const struct gs_err *config_err,
		   const struct command *cmd, const char *next, struct gs_err *err)
{
	struct create c = {
		.config = config,
		.config_err = config_err,
		.bundle = cmd->bundle,
		.id = cmd->id,
		.pid_file = cmd->pid_file,
		.next = next,
		.deadline_ms = gs_boottime_ms() + config->create_wait_ms,
		.bundle_fd = -1,
	};
	int r;

	r = create_plan(&c, err);
	if (r == 0)
		r = create_commit(&c, err);
	create_free(&c);
	return r;
}

int main(int argc, char **argv)
{
	cleanup_config struct gs_config config;
	cleanup_free char *next = NULL;
	struct gs_err config_err = { 0 }, err = { 0 };
	char *none[] = { NULL, NULL };
	struct command cmd;
	int r;

	if (argc < 1) { /* possible before Linux 5.18, where argv[1] is then the environment */
		argv = none;
		argc = 1;
		argv[0] = (char *)"gpushare-runtime";
	}
	gs_config_init(&config);
	/* an error is kept: it concerns annotated containers alone */
	(void)gs_config_load(&config, basename(argv[0]), &config_err);
	gs_log_open(config.log_level, config.log_file);
	r = argv_read(argc, argv, &cmd, &err);
	if (r == 0)
		r = find_next(&config, &cmd, &next, &err);
	if (r == 0) {
		switch (cmd.verb) {
		case VERB_CREATE:
		case VERB_RUN:
		case VERB_RESTORE:
			r = prepare(&config, &config_err, &cmd, next, &err);
			break;
		case VERB_DELETE:
			if (cmd.id && gs_id_valid(cmd.id))
				(void)gs_registry_mark_deleted(config.run_dir, cmd.id, NULL);
			break;
		case VERB_OTHER:
			break;
		}
	}
	if (r == 0)
		(void)next_exec(next, argv, &err);
	report_error(&cmd, err.msg);
	return 1;
}
