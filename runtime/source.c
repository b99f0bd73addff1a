// SPDX-License-Identifier: Apache-2.0
/* Finds sources. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "runtime/source.h"

struct search {
	const struct gs_config *config;
	const struct gs_catalogue *cat;
	const struct who *me;
	bool own_name; /* the name is in a pod called as ours */
	struct source *found;
	unsigned int n_live;
	char other[201]; /* the id of a second live one */
	struct gs_err dead; /* why the last one that was found is not live */
	struct gs_err wrong; /* why a live one can't be used */
};

void source_free(struct source *source)
{
	free(source->name);
	free(source->card);
	gs_record_free(&source->record);
	slice_free(&source->slice);
	spec_free(&source->spec);
	*source = (struct source){ 0 };
}

/* Is this container of the right name also of the right pod, and alive? */
static bool is_candidate(struct search *s, const struct gs_record *record)
{
	if (s->own_name &&
	    !who_same_pod(s->me, &record->identity, record->sandbox_id, record->pod_uid))
		return false;
	return gs_registry_alive(s->config->run_dir, record, NULL, &s->dead) == 0;
}

/* Counts a live one; true for the first. */
static bool is_first(struct search *s, const struct gs_record *record)
{
	if (s->n_live++ == 0)
		return true;
	strncpy(s->other, record->id, sizeof(s->other) - 1);
	return false;
}

static int each_record(const struct gs_record *record, void *arg)
{
	struct search *s = arg;
	struct source *src = s->found;
	int r;

	if (!is_candidate(s, record) || !is_first(s, record))
		return 0;
	r = gs_registry_read(s->config->run_dir, record->id, &src->record, &s->wrong);
	if (r == 0) {
		char *text = gs_strndup(src->record.spec, src->record.spec_len);

		r = spec_read(&src->spec, text, src->record.spec_len, &s->wrong);
		if (r < 0)
			gs_err_prefix(&s->wrong, "record of container %s", record->id);
	}
	if (r == 0)
		slice_find(&src->spec, s->cat, &src->slice);
	return 0;
}

/* A container older than gpushare: its slice is cut from its whole spec, here. */
static void each_bundle(struct gs_record *record, struct spec *spec, void *arg)
{
	struct search *s = arg;
	cleanup_slice struct slice whole = { 0 };
	cleanup_buf struct gs_buf text = { 0 };
	struct source *src = s->found;
	size_t len;

	if (!is_candidate(s, record) || !is_first(s, record))
		return;
	if (record->role != GS_ROLE_HOLDER) {
		/* whether it only borrows them nobody can tell any more */
		gs_err_set(&s->wrong, ENOENT,
			   "container %s was given its devices by gpushare, but its record is lost",
			   record->id);
		return;
	}
	slice_find(spec, s->cat, &whole);
	slice_text(&whole, &text);
	src->scanned = true;
	src->record = *record;
	*record = (struct gs_record){ 0 };
	len = text.len;
	if (spec_read(&src->spec, gs_buf_steal(&text), len, &s->wrong) == 0)
		slice_find(&src->spec, s->cat, &src->slice);
}

int source_find(const struct gs_config *config, const struct gs_catalogue *cat,
		const struct who *me, const char *bundle, const struct gs_identity *name,
		struct source *ret, struct gs_err *err)
{
	struct source src = { .name = gs_identity_text(name) };
	struct search s = {
		.config = config,
		.cat = cat,
		.me = me,
		.own_name = strcmp(name->ns, me->id.ns) == 0 && strcmp(name->pod, me->id.pod) == 0,
		.found = &src,
	};
	unsigned int broken = 0;
	int r = 0;

	(void)gs_registry_each_named(config->run_dir, name, each_record, &s, &broken);
	if (s.n_live == 0)
		scan_bundles(config, bundle, name, each_bundle, &s);
	if (s.n_live == 0)
		r = gs_err_set(err, ENOENT, "source %s is not running%s%s%s", src.name,
			       s.dead.code ? ": " : "", s.dead.msg,
			       broken ? " (unreadable records were skipped)" : "");
	else if (s.n_live > 1)
		r = gs_err_set(err, ENOTUNIQ, "source %s is ambiguous: containers %s and %s live",
			       src.name, src.record.id ? src.record.id : "?", s.other);
	else if (s.wrong.code)
		r = gs_err_set(err, s.wrong.code, "source %s: %s", src.name, s.wrong.msg);
	if (r < 0) {
		source_free(&src);
		return r;
	}
	src.same_pod = who_same_pod(me, name, src.record.sandbox_id, src.record.pod_uid);
	*ret = src;
	/* the slice points at the spec: at its new place, not at the one on this stack */
	ret->slice.spec = &ret->spec;
	return 0;
}
