// SPDX-License-Identifier: Apache-2.0
/*
 * gpushare-hook: the createRuntime hook of every target and borrower. It runs in the host's
 * namespaces when the container's cgroup and namespaces stand and its process has not begun:
 * completes the record, checks the grant once more, and waits until the agent's watch stands.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/config.h"
#include "common/grant.h"
#include "common/js.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "runtime/report.h"

/* The state that the runtime writes to a hook's stdin (runtime-spec, "State"). */
#define STATE_MAX (16 * 1024 * 1024)

struct state {
	char *id;
	pid_t pid;
};

static int read_stdin(struct gs_buf *buf, struct gs_err *err)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gs_err_errno(err, errno, "read stdin");
		gs_buf_add(buf, chunk, (size_t)n);
		if (buf->len > STATE_MAX)
			return gs_err_set(err, EFBIG, "larger than %d bytes", STATE_MAX);
	}
	return 0;
}

static int read_state(struct state *ret, struct gs_err *err)
{
	cleanup_buf struct gs_buf text = { 0 };
	struct js root = { 0 }, id = { 0 }, pid = { 0 };
	int64_t n;
	int r;

	r = read_stdin(&text, err);
	if (r == 0)
		r = js_parse(text.data ? text.data : "", text.len, &root, err);
	if (r == 0)
		r = js_member(root, "id", &id, err);
	if (r == 0)
		r = js_member(root, "pid", &pid, err);
	if (r < 0)
		return gs_err_prefix(err, "the container's state");
	if (!js_int64(pid, &n) || n <= 0 || n > INT32_MAX)
		return gs_err_set(err, EINVAL, "the container's state has no pid");
	ret->pid = (pid_t)n;
	ret->id = js_string(id);
	if (!ret->id || !gs_id_valid(ret->id))
		return gs_err_set(err, EINVAL, "the container's state has no usable id");
	return 0;
}

static int complete_record(const struct gs_config *config, const struct state *state,
			   struct gs_err *err)
{
	cleanup_hook_record struct gs_hook_record hook = { .pid = state->pid };
	int r;

	r = gs_proc_start(state->pid, &hook.start_ticks, err);
	if (r == 0)
		r = gs_proc_ns(state->pid, "pid", &hook.pid_ns, err);
	if (r == 0)
		r = gs_proc_cgroup(state->pid, &hook.cgroup, err);
	if (r == 0)
		r = gs_registry_write_hook(config->run_dir, state->id, &hook, err);
	return r;
}

static int check_grant(const struct gs_config *config, const struct gs_record *rec,
		       struct gs_err *err)
{
	struct gs_grant_user user = gs_grant_user_of(rec->pod_uid, &rec->identity, rec->id);
	cleanup_grant struct gs_grant grant = { 0 };
	int r;

	if (!rec->grant)
		return 0;
	r = gs_grant_read(config->lib_dir, rec->grant, &grant, err);
	if (r == 0)
		r = gs_grant_in_force(&grant, err);
	if (r == 0)
		r = gs_grant_bound(config->lib_dir, rec->grant, &user, err);
	return r;
}

/* With no agent nothing is watched, and only a borrower may not live unwatched. */
static int wait_for_watch(const struct gs_config *config, const struct gs_record *rec,
			  struct gs_err *err)
{
	cleanup_json json_t *request = json_pack("{s:i, s:s, s:s}", "v", GS_AGENT_VERSION, "op",
						 GS_OP_WATCHED, "container", rec->id);
	int r;

	r = gs_agent_ask(config->run_dir, request, rec->deadline_ms, NULL, err);
	return r == -ENOENT && rec->role != GS_ROLE_BORROWER ? 0 : r;
}

static int hook(const struct gs_config *config, struct gs_err *err)
{
	cleanup_record struct gs_record rec = { 0 };
	struct state state = { 0 };
	int r;

	r = read_state(&state, err);
	if (r == 0)
		r = gs_registry_read(config->run_dir, state.id, &rec, err);
	if (r == 0)
		r = complete_record(config, &state, err);
	if (r == 0)
		r = check_grant(config, &rec, err);
	if (r == 0)
		r = wait_for_watch(config, &rec, err);
	free(state.id);
	return r;
}

static int usage(FILE *f)
{
	(void)fputs("usage: gpushare-hook --config FILE   (an OCI createRuntime hook; "
		    "reads the container's state from stdin)\n",
		    f);
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	cleanup_config struct gs_config config;
	struct gs_err err = { 0 };
	bool named = false;
	int opt;

	/* a spec's author could reach us through it; nothing here is read from it */
	(void)clearenv();
	gs_config_init(&config);
	opterr = 0; /* the usage line says it all */
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt != 'c')
			return usage(opt == 'h' ? stdout : stderr);
		free(config.path);
		config.path = gs_strdup(optarg);
		named = true;
	}
	if (optind != argc || !named)
		return usage(stderr);
	if (gs_config_load(&config, NULL, &err) == 0) {
		gs_log_open(config.log_level, config.log_file);
		if (hook(&config, &err) == 0)
			return 0;
	}
	gs_log(GS_LOG_ERROR, "%s", err.msg);
	report_line("gpushare-hook", err.msg);
	return 1;
}
