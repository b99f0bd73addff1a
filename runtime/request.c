// SPDX-License-Identifier: Apache-2.0
/* Reads our annotations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/annotation.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/quantity.h"
#include "common/sources.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "runtime/request.h"

void request_free(struct request *request)
{
	for (size_t i = 0; i < request->n_sources; i++)
		gs_identity_free(&request->sources[i]);
	free(request->sources);
	free(request->grant);
	*request = (struct request){ 0 };
}

int request_add_source(struct request *request, const struct gs_identity *source,
		       struct gs_err *err)
{
	for (size_t i = 0; i < request->n_sources; i++)
		if (gs_identity_equal(&request->sources[i], source))
			return 0;
	if (request->n_sources == REQUEST_SOURCES_MAX)
		return gs_err_set(err, E2BIG, "more than %d sources", REQUEST_SOURCES_MAX);
	request->sources = gs_grow(request->sources, request->n_sources, sizeof(*request->sources));
	request->sources[request->n_sources++] = gs_identity_copy(source);
	return 0;
}

static int add_source(const struct gs_identity *source, void *arg, struct gs_err *err)
{
	return request_add_source(arg, source, err);
}

static int too_long(const char *key, const char *value, struct gs_err *err)
{
	size_t len = strlen(value);

	return gs_err_set(err, E2BIG, "annotation %s: %zu characters are more than %d", key, len,
			  GS_SOURCES_VALUE_MAX);
}

static int read_from(const struct spec *spec, const struct who *who, struct request *req,
		     struct gs_err *err)
{
	cleanup_free char *key = gs_asprintf(GS_KEY_FROM ".%s", who->id.container);
	cleanup_free char *own = NULL;
	cleanup_free char *all = NULL;
	const char *entry = NULL;
	size_t len = 0;
	int r;

	r = spec_annotation(spec, key, &own, err);
	if (r == 0)
		r = spec_annotation(spec, GS_KEY_FROM, &all, err);
	if (r < 0)
		return r;
	if (own) {
		if (strlen(own) > GS_SOURCES_VALUE_MAX)
			return too_long(key, own, err);
		r = gs_sources_parse(own, strlen(own), &who->id, add_source, req, err);
		if (r < 0)
			return gs_err_prefix(err, "annotation %s", key);
	}
	if (all) {
		if (strlen(all) > GS_SOURCES_VALUE_MAX)
			return too_long(GS_KEY_FROM, all, err);
		r = gs_sources_find(all, who->id.container, &entry, &len, err);
		if (r == 0 && entry && own)
			r = gs_err_set(err, EINVAL, "two entries for container %s",
				       who->id.container);
		if (r == 0 && entry)
			r = gs_sources_parse(entry, len, &who->id, add_source, req, err);
		if (r < 0)
			return gs_err_prefix(err, "annotation " GS_KEY_FROM);
	}
	return 0;
}

void request_unknown_keys(const struct spec *spec, struct gs_strv *ret)
{
	struct js_iter it = js_iter(spec->annotations);
	struct js k, v;

	while (ret->n < REQUEST_UNKNOWN_MAX && js_next_member(&it, &k, &v)) {
		cleanup_free char *key = js_string(k);
		char *wrong = key ? gs_annotation_unknown(key) : NULL;

		if (wrong)
			gs_strv_take(ret, wrong);
	}
}

static int read_grant(const struct spec *spec, struct request *req, struct gs_err *err)
{
	int r;

	r = spec_annotation(spec, GS_KEY_GRANT, &req->grant, err);
	if (r < 0 || !req->grant)
		return r;
	/* the value is a secret if it is right, and a path trick if it is not: never quoted */
	if (!gs_grant_name_valid(req->grant))
		return gs_err_set(err, EINVAL,
				  "annotation " GS_KEY_GRANT ": not the name of a grant "
				  "(32 lower-case hex digits)");
	return 0;
}

/* "<key>.<container>" is that container's own; the key alone is of all that have none. */
static int read_quantity(const struct spec *spec, const struct who *who, const char *all,
			 int (*parse)(const char *, int64_t *, struct gs_err *), int64_t *ret,
			 struct gs_err *err)
{
	cleanup_free char *own = gs_asprintf("%s.%s", all, who->id.container);
	cleanup_free char *text = NULL;
	const char *key = own;
	int r;

	r = spec_annotation(spec, own, &text, err);
	if (r == 0 && !text) {
		key = all;
		r = spec_annotation(spec, all, &text, err);
	}
	if (r < 0 || !text)
		return r;
	r = parse(text, ret, err);
	if (r == 0 && *ret <= 0) {
		cleanup_free char *quoted = gs_quote(text, strlen(text));

		r = gs_err_set(err, EINVAL, "%s must be more than zero", quoted);
	}
	return r < 0 ? gs_err_prefix(err, "annotation %s", key) : 0;
}

int request_read(const struct spec *spec, const struct who *who, struct request *ret,
		 struct gs_err *err)
{
	struct request req = { 0 };
	int r;

	r = read_from(spec, who, &req, err);
	if (r == 0)
		r = read_grant(spec, &req, err);
	if (r == 0)
		r = read_quantity(spec, who, GS_KEY_VCPU, gs_quantity_milli, &req.vcpu_milli, err);
	if (r == 0)
		r = read_quantity(spec, who, GS_KEY_VMEM, gs_quantity_units, &req.vmem_bytes, err);
	if (r < 0) {
		request_free(&req);
		return r;
	}
	*ret = req;
	return 0;
}
