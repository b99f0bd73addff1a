// SPDX-License-Identifier: Apache-2.0
/* Does what create_plan() decided. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/registry.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "runtime/confirm.h"
#include "runtime/create.h"
#include "runtime/reclaim.h"

/* Marked containers that one create removes at most: the next one goes on. */
#define SWEEP_MAX 16

static char *absolute(const char *path)
{
	cleanup_free char *cwd = NULL;

	if (path[0] == '/')
		return gs_strdup(path);
	cwd = getcwd(NULL, 0);
	return gs_asprintf("%s/%s", cwd ? cwd : "", path);
}

/* A fence's rules are some five hundred, of which these speak of vendors' devices. */
static char *granted_rules(const struct granted_list *granted)
{
	struct gs_buf out = { 0 };

	gs_buf_addc(&out, '[');
	for (size_t i = 0; i < granted->n; i++) {
		const struct granted *g = &granted->v[i];

		if (i)
			gs_buf_addc(&out, ',');
		slice_add_rule(&out, g->type, g->major, g->minor, g->access);
	}
	gs_buf_addc(&out, ']');
	return gs_buf_steal(&out);
}

/* The vendor slice of the spec as the next runtime gets it: after our edits. */
static int final_slice(const struct create *c, struct gs_buf *out, struct gs_err *err)
{
	cleanup_free char *rules = c->fenced ? granted_rules(&c->granted) : NULL;
	cleanup_spec struct spec spec = { 0 };
	cleanup_slice struct slice slice = { 0 };
	struct gs_buf parts = { 0 };
	size_t len;
	int r;

	if (!c->text) {
		slice_text(&c->own, out);
		return 0;
	}
	rewrite_parts(&c->rw, rules, &parts);
	len = parts.len;
	r = spec_read(&spec, gs_buf_steal(&parts), len, err);
	if (r < 0)
		return gs_err_prefix(err, "the edited config.json");
	spec.no_rules_allow_all = c->spec.no_rules_allow_all;
	slice_find(&spec, &c->cat, &slice);
	slice_text(&slice, out);
	return 0;
}

static char *dup_or_null(const char *s)
{
	return s ? gs_strdup(s) : NULL;
}

static int write_record(const struct create *c, struct gs_err *err)
{
	cleanup_record struct gs_record rec = { 0 };
	struct gs_buf slice = { 0 };
	char boot_id[37];
	int r;

	r = gs_boot_id(boot_id, err);
	if (r == 0)
		r = final_slice(c, &slice, err);
	if (r < 0)
		return r;
	rec.id = gs_strdup(c->id);
	rec.bundle = gs_strdup(c->bundle_path);
	rec.pid_file = c->pid_file ? absolute(c->pid_file) : NULL;
	if (gs_identity_is_set(&c->who.id))
		rec.identity = gs_identity_copy(&c->who.id);
	rec.sandbox_id = dup_or_null(c->who.sandbox_id);
	rec.pod_uid = dup_or_null(c->who.pod_uid);
	rec.annotations = spec_our_annotations(&c->spec);
	rec.role = c->role;
	rec.next = gs_strdup(c->next);
	rec.root = dup_or_null(c->root);
	rec.cgroups_path = gs_strdup(c->spec.cgroups_path);
	rec.boot_id = gs_strdup(boot_id);
	rec.start_ticks = gs_ticks_now();
	rec.deadline_ms = c->deadline_ms;
	rec.grant = dup_or_null(c->grant.name[0] ? c->grant.name : NULL);
	for (size_t i = 0; i < c->n_sources; i++)
		if (!c->sources[i].card)
			gs_strv_add(&rec.sources, c->sources[i].record.id);
	rec.shared_pid = policy_shares_pid_namespace(&c->spec);
	rec.spec_len = slice.len;
	rec.spec = gs_buf_steal(&slice);
	return gs_registry_write(c->config->run_dir, &rec, err);
}

static int bind_grant(const struct create *c, struct gs_err *err)
{
	struct gs_grant_user user = gs_grant_user_of(c->who.pod_uid, &c->who.id, c->id);

	if (!c->grant.name[0])
		return 0;
	return gs_grant_bind(c->config->lib_dir, c->grant.name, &user, err);
}

/* A borrower starts only where an agent stands guard over it. */
static int ask_to_borrow(const struct create *c, struct gs_err *err)
{
	cleanup_json json_t *sources = json_array();
	cleanup_json json_t *request = NULL;
	int r;

	for (size_t i = 0; i < c->n_sources; i++)
		if (!c->sources[i].card)
			(void)json_array_append_new(sources, json_string(c->sources[i].record.id));
	request = json_pack("{s:i, s:s, s:s, s:s, s:O}", "v", GS_AGENT_VERSION, "op", GS_OP_BORROW,
			    "container", c->id, "grant", c->grant.name, "sources", sources);
	r = gs_agent_ask(c->config->run_dir, request, c->deadline_ms, NULL, err);
	return r < 0 ? gs_err_prefix(err, "a spot container can't start") : 0;
}

/* Holders are never hurt by our own bookkeeping: what fails here is logged. */
static void commit_holder(const struct create *c)
{
	struct gs_err why = { 0 };

	if (write_record(c, &why) < 0)
		gs_log(GS_LOG_ERROR, "no record of container %s: %s", c->id, why.msg);
}

static int commit_target(const struct create *c, struct gs_err *err)
{
	int r;

	r = bind_grant(c, err);
	if (r == 0 && c->role == GS_ROLE_BORROWER)
		r = ask_to_borrow(c, err);
	if (r == 0)
		r = write_record(c, err);
	return r;
}

/*
 * The cards that the container holds itself: first whether they are its own, since an impostor has
 * no say over its neighbour's. A borrower holds none; a target's selector is not its own any more,
 * and it joins its source's holding in whatever state that is.
 */
static int take_own(const struct create *c, struct gs_err *err)
{
	const char *next = c->role == GS_ROLE_HOLDER ? c->next : NULL;
	const char *id = c->id ? c->id : "";
	/* an agent that hangs leaves time for the other question */
	uint64_t half_ms = c->deadline_ms - c->config->create_wait_ms / 2;
	int r;

	if (c->role == GS_ROLE_BORROWER || !slice_has_cards(&c->own, NULL))
		return 0;
	r = confirm(c->config, &c->own, next, id, &c->who.id, half_ms, err);
	if (r == 0)
		r = reclaim(c->config, &c->own, next, id, &c->who.id, c->deadline_ms, err);
	return r;
}

/* One line a container: who got what from whom, and by whose leave. */
static void log_done(const struct create *c)
{
	cleanup_buf struct gs_buf line = { 0 };
	char buf[10];

	if (c->n_sources)
		gs_buf_addf(&line, " is a %s of", gs_role_name(c->role));
	for (size_t i = 0; i < c->n_sources; i++) {
		gs_buf_addf(&line, "%s %s", i ? "," : "", c->sources[i].name);
		if (!c->sources[i].card)
			gs_buf_addf(&line, " (container %s)", c->sources[i].record.id);
	}
	if (c->grant.name[0])
		gs_buf_addf(&line, " by grant %s", gs_grant_short(c->grant.name, buf));
	if (c->rw.devices.added.n || c->rw.rules.added.n || c->rw.mounts.added.n)
		gs_buf_addf(&line, ": %zu devices, %zu rules, %zu mounts added",
			    c->rw.devices.added.n, c->rw.rules.added.n, c->rw.mounts.added.n);
	if (c->fenced)
		gs_buf_adds(&line, "; fenced");
	if (c->rw.n_limits)
		gs_buf_adds(&line, "; limits set");
	if (c->n_sources && !c->fenced && spec_allows_all(&c->spec))
		gs_log(GS_LOG_WARN,
		       "container %s is privileged and not fenced (config key fence_privileged): "
		       "it can open every card of the node",
		       c->id);
	gs_log(GS_LOG_INFO, "container %s%s", c->id, line.data ? line.data : "");
}

int create_commit(struct create *c, struct gs_err *err)
{
	int r;

	gs_registry_sweep(c->config->run_dir, SWEEP_MAX);
	if (!c->recorded && c->id)
		gs_registry_drop_dead(c->config->run_dir, c->id);
	r = take_own(c, err);
	if (r == 0 && c->recorded && c->role == GS_ROLE_HOLDER)
		commit_holder(c);
	else if (r == 0 && c->recorded)
		r = commit_target(c, err);
	if (r < 0 || !c->text)
		return r;
	r = gs_file_replace(c->bundle_fd, "config.json", c->text, c->len, &c->config_stat, err);
	if (r < 0) {
		gs_err_prefix(err, "bundle %s", c->bundle_path);
		if (c->recorded)
			gs_registry_remove(c->config->run_dir, c->id);
		return r;
	}
	log_done(c);
	return 0;
}
