// SPDX-License-Identifier: Apache-2.0
/* Decides what create changes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "gpushare/annotations.h"
#include "runtime/create.h"
#include "runtime/fence.h"
#include "runtime/free.h"
#include "runtime/limits.h"
#include "runtime/next.h"

#define CONFIG_JSON "config.json"

void create_free(struct create *c)
{
	for (size_t i = 0; i < c->n_sources; i++)
		source_free(&c->sources[i]);
	free(c->sources);
	free(c->granted.v);
	rewrite_free(&c->rw);
	slice_free(&c->own);
	gs_grant_free(&c->grant);
	request_free(&c->req);
	who_free(&c->who);
	spec_free(&c->spec);
	gs_catalogue_free(&c->cat);
	free(c->bundle_path);
	free(c->text);
	if (c->bundle_fd >= 0)
		(void)close(c->bundle_fd);
}

/* A key of ours begins a JSON string; the same word inside another string is no annotation. */
static const char our_key[] = "\"" GS_ANNOTATION_DOMAIN;

/* Could a file that we do not understand carry our annotations? */
static bool may_be_annotated(const char *text, size_t len)
{
	return memmem(text, len, our_key, strlen(our_key)) != NULL;
}

/* The same for a file that is too large to be read as a whole. */
static bool large_may_be_annotated(int dir)
{
	cleanup_close int fd = openat(dir, CONFIG_JSON, O_RDONLY | O_CLOEXEC);
	const size_t keep = strlen(our_key) - 1; /* the key may lie across two pieces */
	char buf[16384];
	size_t have = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf + have, sizeof(buf) - have)) > 0) {
		have += (size_t)n;
		if (may_be_annotated(buf, have))
			return true;
		if (have > keep) {
			memmove(buf, buf + have - keep, keep);
			have = keep;
		}
	}
	return false;
}

/* Reads config.json. 1: nothing of ours to do with it. */
static int read_spec(struct create *c, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	struct gs_err why = { 0 };
	bool maybe;
	size_t len;
	int r;

	c->bundle_fd = open(c->bundle ? c->bundle : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->bundle_fd < 0)
		return 1;
	r = gs_file_read(c->bundle_fd, CONFIG_JSON, 0, SPEC_MAX, &text, &len, &c->config_stat,
			 &why);
	if (r == 0) {
		maybe = may_be_annotated(text, len);
		r = spec_read(&c->spec, gs_steal(text), len, &why);
	} else {
		maybe = r == -EFBIG && large_may_be_annotated(c->bundle_fd);
	}
	if (r == 0)
		return 0;
	if (maybe)
		return gs_err_set(err, why.code, CONFIG_JSON ": %s", why.msg);
	gs_log(GS_LOG_DEBUG, "passed through, not understood: %s", why.msg);
	return 1;
}

/* Does the request ask for anything of this container? */
static bool is_request(const struct request *req)
{
	return req->n_sources || req->grant || req->vcpu_milli || req->vmem_bytes;
}

static int find_sources(struct create *c, struct gs_err *err)
{
	c->sources = gs_calloc(c->req.n_sources + c->grant.free.n, sizeof(*c->sources));
	for (size_t i = 0; i < c->req.n_sources; i++) {
		const struct gs_identity *name = &c->req.sources[i];
		int r = policy_may_ask(c->config, &c->who, &c->grant, name, err);

		if (r == 0)
			r = source_find(c->config, &c->cat, &c->who, c->bundle_path, name,
					&c->sources[i], err);
		if (r < 0)
			return r;
		c->n_sources++;
	}
	for (size_t i = 0; i < c->grant.free.n; i++) {
		int r = free_source(c->config, &c->cat, c->next, c->grant.free.v[i],
				    &c->sources[c->n_sources], err);

		if (r < 0)
			return r;
		c->n_sources++;
	}
	return 0;
}

/* createRuntime: in the host's namespaces, after the cgroup is made, before the process runs. */
static int add_hook(struct create *c, struct gs_err *err)
{
	const struct spec *spec = &c->spec;
	cleanup_buf struct gs_buf json = { 0 };

	if (access(c->config->hook, X_OK) < 0)
		return gs_err_errno(err, errno, "hook program %s (config key \"hook\")",
				    c->config->hook);
	for (size_t i = 0; i < spec->n_hooks; i++)
		if (spec->hook[i].stage == STAGE_CREATE_RUNTIME &&
		    strcmp(spec->hook[i].path, c->config->hook) == 0)
			return 0; /* the second run on our own output */
	gs_buf_adds(&json, "{\"path\":");
	gs_buf_add_json(&json, c->config->hook);
	gs_buf_adds(&json, ",\"args\":[\"gpushare-hook\",\"--config\",");
	gs_buf_add_json(&json, c->config->path);
	gs_buf_addf(&json, "],\"env\":[],\"timeout\":%u}", c->config->create_wait_ms / 1000 + 5);
	js_array_append(&c->rw.hooks[STAGE_CREATE_RUNTIME], json.data);
	return 0;
}

static int check_target(struct create *c, struct gs_err *err)
{
	int r;

	r = policy_check_user_namespace(&c->spec, err);
	if (r == 0)
		r = policy_check(c->config, &c->spec, &c->grant, c->sources, c->n_sources, err);
	if (r < 0)
		return r;
	if (!policy_is_borrower(&c->grant, c->sources, c->n_sources))
		return 0;
	c->role = GS_ROLE_BORROWER;
	return policy_check_borrower(&c->spec, &c->own, c->sources, c->n_sources, err);
}

static int plan_target(struct create *c, struct gs_err *err)
{
	int r;

	if (!c->id || !gs_id_valid(c->id))
		return gs_err_set(err, EINVAL, "the container id is missing or malformed");
	c->role = GS_ROLE_TARGET;
	c->recorded = true;
	c->fenced = c->config->fence_privileged && spec_allows_all(&c->spec);
	r = find_sources(c, err);
	if (r == 0)
		r = check_target(c, err);
	if (r == 0) {
		const struct inject in = {
			.cat = &c->cat,
			.own = &c->own,
			.sources = c->sources,
			.n_sources = c->n_sources,
			.next = c->next,
			.strict = c->fenced || c->role == GS_ROLE_BORROWER,
		};

		r = inject(&c->rw, &in, &c->granted, err);
	}
	if (r == 0 && c->fenced)
		r = fence(&c->rw, &c->cat, &c->granted, err);
	if (r == 0)
		r = add_hook(c, err);
	return r;
}

/*
 * A device plugin promised this grant to the kubelet, and the agent ended before it was written, or
 * is about to write it: it knows from the kubelet what this very container was given.
 */
static int claim_grant(const struct create *c, struct gs_err *err)
{
	cleanup_free char *to = gs_identity_text(&c->who.id);
	cleanup_json json_t *request = json_pack("{s:i, s:s, s:s, s:s, s:s*}", "v",
						 GS_AGENT_VERSION, "op", GS_OP_CLAIM, "grant",
						 c->req.grant, "to", to, "pod_uid", c->who.pod_uid);
	struct gs_err why = { 0 };
	int r = gs_agent_ask(c->config->run_dir, request, c->deadline_ms, NULL, &why);

	/* its own sentence tells more; without one it stays with "no such grant" */
	if (r == -EREMOTEIO)
		return gs_err_set(err, why.code, "annotation " GS_KEY_GRANT ": %s", why.msg);
	return r;
}

static int read_grant(struct create *c, struct gs_err *err)
{
	int r = policy_read_grant(c->config, &c->who, &c->req, &c->grant, err);

	if (r != -ENOENT || c->dry || claim_grant(c, err) < 0)
		return r;
	return policy_read_grant(c->config, &c->who, &c->req, &c->grant, err);
}

/* The container asks for something. */
static int plan_request(struct create *c, struct gs_err *err)
{
	int r;

	if (!js_is(c->spec.process, JS_OBJECT) || !js_is(c->spec.linux_obj, JS_OBJECT))
		return gs_err_set(err, EINVAL, "config.json has no \"%s\": nothing can be added",
				  js_is(c->spec.process, JS_OBJECT) ? "linux" : "process");
	r = read_grant(c, err);
	if (r == 0 && (c->req.n_sources || c->grant.free.n))
		r = plan_target(c, err);
	else if (r == 0 && c->grant.name[0] && c->grant.kind == GS_GRANT_SPOT)
		r = gs_err_set(err, EINVAL,
			       "annotation " GS_KEY_GRANT ": the grant names no source");
	if (r == 0)
		r = limits_apply(&c->rw, &c->req, err);
	return r;
}

/* The catalogue decides who is a holder. Where it is broken, only those who ask suffer. */
static int load_catalogue(struct create *c, bool asks, struct gs_err *err)
{
	struct gs_err why = { 0 };
	int r;

	r = gs_catalogue_load(&c->cat, &c->config->vendor_dirs, &why);
	if (r == 0)
		return 0;
	gs_log(GS_LOG_ERROR, "catalogue: %s", why.msg);
	return asks ? gs_err_set(err, why.code, "%s", why.msg) : 0;
}

/*
 * Whose container it is. With a broken config the vocabulary is not known either: whichever fits
 * tells whether the container asked for something, and then the config's error is its answer.
 */
static int read_who(struct create *c, struct gs_err *err)
{
	static const enum gs_cri any[] = { GS_CRI_CONTAINERD, GS_CRI_CRIO, GS_CRI_NONE };

	if (!c->config_err->code)
		return who_read(&c->spec, c->config->cri, &c->who, err);
	for (size_t i = 0; i < GS_ARRAY_SIZE(any); i++) {
		int r = who_read(&c->spec, any[i], &c->who, err);

		if (r < 0 || c->who.sandbox || gs_identity_is_set(&c->who.id))
			return r;
		who_free(&c->who);
	}
	return 0;
}

/* What a person who wonders why nothing happened will look for. */
static void log_request(const struct create *c)
{
	cleanup_free char *name = gs_identity_text(&c->who.id);
	cleanup_strv struct gs_strv unknown = { 0 };

	request_unknown_keys(&c->spec, &unknown);
	for (size_t i = 0; i < unknown.n; i++)
		gs_log(GS_LOG_WARN, "container %s (%s): %s", c->id ? c->id : "?", name,
		       unknown.v[i]);
	if (!is_request(&c->req))
		gs_log(GS_LOG_DEBUG, "container %s (%s): its annotations ask nothing for it",
		       c->id ? c->id : "?", name);
}

/* Whose container it is and what it asks for. 1: nothing of ours to do with it. */
static int read_request(struct create *c, struct gs_err *err)
{
	struct gs_err why = { 0 };
	bool annotated = spec_is_annotated(&c->spec);
	int r;

	r = read_who(c, &why);
	if (r < 0 && annotated)
		return gs_err_set(err, why.code, "%s", why.msg);
	if (r < 0 || c->who.sandbox)
		return 1;
	if (!annotated)
		return 0;
	if (!gs_identity_is_set(&c->who.id)) {
		gs_log(GS_LOG_DEBUG, "passed through: annotated, but it has no identity in the "
				     "vocabulary of config key \"cri\"");
		return 0;
	}
	r = request_read(&c->spec, &c->who, &c->req, err);
	if (r == 0)
		log_request(c);
	return r;
}

int create_plan(struct create *c, struct gs_err *err)
{
	struct gs_buf out = { 0 };
	bool asks;
	int r;

	r = read_spec(c, err);
	if (r == 0)
		r = read_request(c, err);
	if (r != 0)
		return r < 0 ? r : 0;
	asks = is_request(&c->req);
	if (c->config_err->code)
		return asks ? gs_err_set(err, c->config_err->code, "%s", c->config_err->msg) : 0;
	r = load_catalogue(c, asks, err);
	if (r < 0)
		return r;
	c->bundle_path = realpath(c->bundle ? c->bundle : ".", NULL);
	if (!c->bundle_path)
		return asks ? gs_err_errno(err, errno, "bundle %s", c->bundle) : 0;
	c->spec.no_rules_allow_all = next_allows_without_rules(c->next);
	slice_find(&c->spec, &c->cat, &c->own);
	c->role = GS_ROLE_HOLDER;
	c->recorded = slice_has_cards(&c->own, NULL) && c->id && gs_id_valid(c->id);
	if (!asks)
		return 0;
	rewrite_begin(&c->rw, &c->spec);
	r = plan_request(c, err);
	if (r < 0 || !rewrite_changes(&c->rw))
		return r;
	rewrite_text(&c->rw, &out);
	c->len = out.len;
	c->text = gs_buf_steal(&out);
	return 0;
}
