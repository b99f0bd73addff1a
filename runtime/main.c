// SPDX-License-Identifier: Apache-2.0
/*
 * gpushare-runtime: an OCI runtime that edits annotated containers' config.json and then becomes
 * the next runtime. It takes no argument of its own.
 */
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/registry.h"
#include "runtime/argv.h"
#include "runtime/create.h"
#include "runtime/next.h"
#include "runtime/report.h"

static bool creates(enum verb verb)
{
	return verb == VERB_CREATE || verb == VERB_RUN || verb == VERB_RESTORE;
}

/* A broken config: what it said when it was not, in place of the defaults. */
static void take_remembered(struct gs_config *config, const char *profile)
{
	cleanup_free char *path = NULL;
	cleanup_free char *run_dir = NULL;

	if (!next_remembered(config, profile, &path, &run_dir) || !next_usable(path))
		return;
	gs_strv_free(&config->next);
	gs_strv_add(&config->next, path);
	free(config->run_dir);
	config->run_dir = gs_steal(run_dir);
}

/*
 * Every verb for one container goes to the same runtime, also after "next" was changed: to the
 * recorded one while it can run. *ret_recorded: there is a record of this very container.
 */
static int find_next(const struct gs_config *config, const struct command *cmd, char **ret,
		     bool *ret_recorded, struct gs_err *err)
{
	cleanup_free char *recorded = NULL;

	if (!creates(cmd->verb) && cmd->id)
		recorded = gs_registry_next(config->run_dir, cmd->id, cmd->root);
	*ret_recorded = recorded;
	if (recorded && next_usable(recorded)) {
		*ret = gs_steal(recorded);
		return 0;
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
		.root = cmd->root,
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

/*
 * A caller may have closed one of the first three descriptors: a file of ours must not get its
 * number and then what is meant for stderr. The next runtime finds them closed as they were.
 */
static void fill_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDWR | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	cleanup_config struct gs_config config;
	cleanup_free char *next = NULL;
	struct gs_err config_err = { 0 }, err = { 0 };
	char *none[] = { NULL, NULL };
	const char *profile;
	struct command cmd;
	bool recorded = false;
	int r;

	if (argc < 1) { /* possible before Linux 5.18, where argv[1] is then the environment */
		argv = none;
		argc = 1;
		argv[0] = (char *)"gpushare-runtime";
	}
	fill_standard_fds();
	profile = basename(argv[0]);
	gs_config_init(&config);
	/* an error is kept: it concerns annotated containers alone */
	if (gs_config_load(&config, profile, &config_err) < 0)
		take_remembered(&config, profile);
	gs_log_open(config.log_level, config.log_file);
	r = argv_read(argc, argv, &cmd, &err);
	if (r == 0)
		r = find_next(&config, &cmd, &next, &recorded, &err);
	if (r == 0 && creates(cmd.verb) && !config_err.code)
		next_remember(&config, profile, next);
	if (r == 0 && creates(cmd.verb))
		r = prepare(&config, &config_err, &cmd, next, &err);
	else if (r == 0 && cmd.verb == VERB_DELETE && recorded)
		(void)gs_registry_mark_deleted(config.run_dir, cmd.id, NULL);
	if (r == 0)
		(void)next_exec(next, argv, &err);
	if (r == 0 && creates(cmd.verb) && cmd.id) /* nobody will delete what was never made */
		gs_registry_drop_dead(config.run_dir, cmd.id);
	report_error(&cmd, err.msg);
	return 1;
}
