// SPDX-License-Identifier: Apache-2.0
/* What the kubelet gave to whom. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/allocated.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/xalloc.h"

/* Less than the time between two questions that nothing else made the agent ask. */
#define SETTLED_MS 8000

void allocated_free(struct allocated *allocated)
{
	kubelet_uses_free(&allocated->uses);
	kubelet_uses_free(&allocated->all);
	*allocated = (struct allocated){ 0 };
}

static char *dup_or_null(const char *s)
{
	return s ? gs_strdup(s) : NULL;
}

static void uses_copy(struct kubelet_uses *to, const struct kubelet_uses *from)
{
	to->v = gs_calloc(from->n + 1, sizeof(*to->v));
	to->n = from->n;
	for (size_t i = 0; i < from->n; i++) {
		to->v[i].namespace = dup_or_null(from->v[i].namespace);
		to->v[i].pod = dup_or_null(from->v[i].pod);
		to->v[i].container = dup_or_null(from->v[i].container);
		to->v[i].resource = gs_strdup(from->v[i].resource);
		for (size_t k = 0; k < from->v[i].ids.n; k++)
			gs_strv_add(&to->v[i].ids, from->v[i].ids.v[k]);
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool uses_same(const struct kubelet_uses *a, const struct kubelet_uses *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct kubelet_use *x = &a->v[i], *y = &b->v[i];

		if (!same_text(x->namespace, y->namespace) || !same_text(x->pod, y->pod) ||
		    !same_text(x->container, y->container) ||
		    strcmp(x->resource, y->resource) != 0 || x->ids.n != y->ids.n)
			return false;
		for (size_t k = 0; k < x->ids.n; k++)
			if (strcmp(x->ids.v[k], y->ids.v[k]) != 0)
				return false;
	}
	return true;
}

bool allocated_set(struct allocated *allocated, const struct kubelet_uses *uses,
		   const struct kubelet_uses *all, uint64_t asked_ms)
{
	bool same = allocated->known && uses_same(&allocated->uses, uses) &&
		    uses_same(&allocated->all, all);

	allocated->known = true;
	allocated->asked_ms = asked_ms;
	if (same)
		return false;
	allocated->since_ms = asked_ms;
	kubelet_uses_free(&allocated->uses);
	kubelet_uses_free(&allocated->all);
	uses_copy(&allocated->uses, uses);
	uses_copy(&allocated->all, all);
	return true;
}

bool allocated_knows_pods(const struct kubelet_uses *uses, const struct containers *containers)
{
	bool any = false;

	for (size_t i = 0; i < containers->n; i++) {
		const struct container *c = &containers->v[i];
		cleanup_free char *name = NULL;

		if (!c->alive || !c->rec.pod_uid || !gs_identity_is_set(&c->rec.identity))
			continue;
		name = gs_asprintf("%s/%s", c->rec.identity.ns, c->rec.identity.pod);
		if (gs_strv_has(&uses->pods, name))
			return true;
		any = true;
	}
	return !any;
}

bool allocated_settled(const struct allocated *allocated)
{
	return allocated->known && allocated->asked_ms - allocated->since_ms >= SETTLED_MS;
}

static bool is_resource(const struct gs_catalogue *cat, const char *vendor, const char *resource)
{
	for (size_t i = 0; i < cat->n; i++)
		if (strcmp(cat->v[i].name, vendor) == 0)
			return gs_glob_any(&cat->v[i].resources, resource);
	return false;
}

static bool names_card(const char *id, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n && strncmp(id, name, n) == 0 && (!id[n] || strncmp(id + n, "::", 2) == 0);
}

static bool use_has(const struct kubelet_use *use, const struct gs_catalogue *cat,
		    const struct card *card)
{
	if (!is_resource(cat, card->vendor, use->resource))
		return false;
	for (size_t i = 0; i < use->ids.n; i++)
		if (names_card(use->ids.v[i], card->id) || names_card(use->ids.v[i], card->uuid))
			return true;
	return false;
}

static bool uses_have(const struct kubelet_uses *uses, const struct gs_catalogue *cat,
		      const struct card *card)
{
	for (size_t i = 0; i < uses->n; i++)
		if (use_has(&uses->v[i], cat, card))
			return true;
	return false;
}

static bool is_of_pod(const struct kubelet_use *use, const struct gs_identity *who)
{
	return same_text(use->namespace, who->ns) && same_text(use->pod, who->pod);
}

static bool is_of(const struct kubelet_use *use, const struct gs_identity *who)
{
	return is_of_pod(use, who) && same_text(use->container, who->container);
}

enum allocated_state allocated_state(const struct allocated *allocated,
				     const struct gs_catalogue *cat, const struct card *card)
{
	if (uses_have(&allocated->uses, cat, card))
		return ALLOCATED_TAKEN;
	return uses_have(&allocated->all, cat, card) ? ALLOCATED_FREE : ALLOCATED_UNKNOWN;
}

bool allocated_has(const struct allocated *allocated, const struct gs_catalogue *cat,
		   const struct gs_identity *who, const struct card *card)
{
	for (size_t i = 0; i < allocated->uses.n; i++)
		if (is_of(&allocated->uses.v[i], who) && use_has(&allocated->uses.v[i], cat, card))
			return true;
	return false;
}

bool allocated_pod_has(const struct allocated *allocated, const struct gs_catalogue *cat,
		       const struct gs_identity *who, const struct card *card)
{
	for (size_t i = 0; i < allocated->uses.n; i++)
		if (is_of_pod(&allocated->uses.v[i], who) &&
		    use_has(&allocated->uses.v[i], cat, card))
			return true;
	return false;
}

bool allocated_pod_alone(const struct allocated *allocated, const struct gs_catalogue *cat,
			 const struct gs_identity *who, const struct card *card)
{
	bool has = false;

	for (size_t i = 0; i < allocated->uses.n; i++) {
		if (!use_has(&allocated->uses.v[i], cat, card))
			continue;
		if (!is_of_pod(&allocated->uses.v[i], who))
			return false;
		has = true;
	}
	return has;
}

const struct gs_strv *allocated_ids(const struct allocated *allocated,
				    const struct gs_identity *who, const char *resource)
{
	for (size_t i = 0; i < allocated->uses.n; i++)
		if (is_of(&allocated->uses.v[i], who) &&
		    strcmp(allocated->uses.v[i].resource, resource) == 0)
			return &allocated->uses.v[i].ids;
	return NULL;
}

/* Was the record made before the kubelet was asked? */
static bool is_older(const struct gs_record *rec, uint64_t asked_ms)
{
	long hz = sysconf(_SC_CLK_TCK);

	return hz > 0 && rec->start_ticks * 1000 / (uint64_t)hz < asked_ms;
}

static void confirm_one(const struct allocated *allocated, const struct gs_catalogue *cat,
			const struct cards *cards, struct container *c)
{
	cleanup_strv struct gs_strv claimed = c->cards, denied = c->denied;
	bool settled = allocated_settled(allocated);

	/* what was denied may have been given since */
	gs_strv_merge(&claimed, &denied);
	gs_strv_sort(&claimed);
	c->cards = c->denied = (struct gs_strv){ 0 };
	for (size_t i = 0; i < claimed.n; i++) {
		const struct card *card = cards_find(cards, claimed.v[i]);
		bool deny = card && (settled || gs_strv_has(&denied, card->name)) &&
			    allocated_state(allocated, cat, card) != ALLOCATED_UNKNOWN &&
			    !allocated_has(allocated, cat, &c->rec.identity, card);

		gs_strv_add(deny ? &c->denied : &c->cards, claimed.v[i]);
	}
}

void allocated_confirm(const struct allocated *allocated, const struct gs_catalogue *cat,
		       const struct cards *cards, struct containers *containers)
{
	for (size_t i = 0; allocated->known && i < containers->n; i++) {
		struct container *c = &containers->v[i];

		if (c->rec.role == GS_ROLE_HOLDER && c->rec.pod_uid &&
		    gs_identity_is_set(&c->rec.identity) && is_older(&c->rec, allocated->asked_ms))
			confirm_one(allocated, cat, cards, c);
	}
}
