// SPDX-License-Identifier: Apache-2.0
/* Who may receive from whom. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "gpushare/annotations.h"
#include "runtime/policy.h"

int policy_read_grant(const struct gs_config *config, const struct who *me, struct request *req,
		      struct gs_grant *ret, struct gs_err *err)
{
	cleanup_grant struct gs_grant grant = { 0 };
	int r;

	*ret = (struct gs_grant){ 0 };
	if (!req->grant)
		return 0;
	r = gs_grant_read(config->lib_dir, req->grant, &grant, err);
	if (r == 0)
		r = gs_grant_in_force(&grant, err);
	if (r < 0)
		return gs_err_prefix(err, "annotation " GS_KEY_GRANT);
	if (gs_identity_is_set(&grant.to)) {
		bool ours = gs_identity_equal(&grant.to, &me->id);

		if (!ours && req->n_sources) {
			char buf[10];

			return gs_err_set(err, EACCES,
					  "grant %s is for another container than this one",
					  gs_grant_short(grant.name, buf));
		}
		if (!ours) {
			/* a pod annotation reaches every container of the pod: not for us */
			free(req->grant);
			req->grant = NULL;
			return 0;
		}
	}
	if (grant.resource || gs_identity_is_set(&grant.to)) {
		for (size_t i = 0; i < grant.n_sources; i++) {
			r = request_add_source(req, &grant.sources[i], err);
			if (r < 0)
				return r;
		}
	}
	*ret = grant;
	grant = (struct gs_grant){ 0 };
	return 0;
}

/* One of our annotations of a source, out of its record. */
static char *source_annotation(const struct source *source, const char *key)
{
	struct js object, v;

	if (!source->record.annotations ||
	    js_parse(source->record.annotations, strlen(source->record.annotations), &object,
		     NULL) < 0 ||
	    js_map_member(object, key, &v, NULL) < 0)
		return NULL;
	return js_string(v);
}

/* "cross_pod": "annotation": both sides carry the same value of @key. */
static int check_equal(const struct spec *spec, const struct source *source, const char *key,
		       struct gs_err *err)
{
	cleanup_free char *theirs = source_annotation(source, key);
	cleanup_free char *ours = NULL;
	int r;

	r = spec_annotation(spec, key, &ours, err);
	if (r < 0)
		return r;
	if (!ours || !theirs || !*ours || strcmp(ours, theirs) != 0)
		return gs_err_set(err, EACCES,
				  "source %s is in another pod, and annotation %s is not the same "
				  "on both",
				  source->name, key);
	return 0;
}

/* A source outside of the pod. */
static int check_outside(const struct gs_config *config, const struct gs_grant *grant,
			 const struct gs_identity *name, struct gs_err *err)
{
	cleanup_free char *text = NULL;
	char buf[10];

	if (grant->name[0] && gs_grant_has_source(grant, name))
		return 0;
	if (!grant->name[0] && config->cross_pod == GS_CROSS_POD_ANNOTATION)
		return 0;
	text = gs_identity_text(name);
	if (grant->name[0])
		return gs_err_set(err, EACCES,
				  "source %s is in another pod, and grant %s does not name it",
				  text, gs_grant_short(grant->name, buf));
	return gs_err_set(
		err, EACCES,
		"source %s is in another pod: that needs a grant (annotation " GS_KEY_GRANT ")",
		text);
}

int policy_may_ask(const struct gs_config *config, const struct who *me,
		   const struct gs_grant *grant, const struct gs_identity *name, struct gs_err *err)
{
	if (strcmp(name->ns, me->id.ns) == 0 && strcmp(name->pod, me->id.pod) == 0)
		return 0;
	return check_outside(config, grant, name, err);
}

static int check_source(const struct gs_config *config, const struct spec *spec,
			const struct gs_grant *grant, const struct source *source,
			struct gs_err *err)
{
	int r;

	/* a card that nobody holds is there by the grant alone */
	if (source->same_pod || source->card)
		return 0;
	r = check_outside(config, grant, &source->record.identity, err);
	if (r < 0 || grant->name[0])
		return r;
	r = check_equal(spec, source, GS_KEY_PARTITION, err);
	if (r == 0)
		r = check_equal(spec, source, GS_KEY_USER_ID, err);
	return r;
}

int policy_check(const struct gs_config *config, const struct spec *spec,
		 const struct gs_grant *grant, const struct source *sources, size_t n_sources,
		 struct gs_err *err)
{
	for (size_t i = 0; i < n_sources; i++) {
		int r = check_source(config, spec, grant, &sources[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}
