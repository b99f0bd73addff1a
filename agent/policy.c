// SPDX-License-Identifier: Apache-2.0
/* What the annotations `lend` and `lend-after` of a holding's containers say. */
#include <stdlib.h>
#include <string.h>

#include "agent/policy.h"
#include "common/cleanup.h"
#include "common/duration.h"
#include "common/json.h"
#include "common/sections.h"
#include "gpushare/annotations.h"

/* A day: whoever wants longer does not want to lend. */
#define LEND_AFTER_MAX_MS (24 * 3600 * 1000)

/* What does this container's pod say? Sets @h->why_not if it says no. */
static void ask(const struct container *c, const struct settings *settings, struct plan_holding *h)
{
	cleanup_json json_t *annotations = NULL;
	const char *lend, *after;
	uint64_t ms = settings->lend_after_ms;

	if (c->rec.annotations)
		(void)gs_json_parse("annotations", c->rec.annotations, strlen(c->rec.annotations),
				    &annotations, NULL);
	lend = json_string_value(json_object_get(annotations, GS_KEY_LEND));
	after = json_string_value(json_object_get(annotations, GS_KEY_LEND_AFTER));
	if (lend ? strcmp(lend, "true") != 0 : !settings->lend)
		h->why_not = lend ? "its pod does not allow it" : "its pod does not say so";
	if (after && gs_duration_ms(after, LEND_AFTER_MAX_MS, &ms, NULL) < 0)
		h->why_not = "its pod's " GS_KEY_LEND_AFTER " is no length of time";
	h->too_short |= ms < GS_LEND_AFTER_MIN_MS;
	if (ms > h->lend_after_ms)
		h->lend_after_ms = (unsigned int)ms;
}

static bool same_pod(const struct gs_record *a, const struct gs_record *b)
{
	return a->pod_uid && b->pod_uid && strcmp(a->pod_uid, b->pod_uid) == 0;
}

void policy_lending(const struct containers *containers, const struct settings *settings,
		    struct plan_holding *h)
{
	const struct container *first = NULL;
	bool shared = false, claimed = false, leaving = false;

	h->lend_after_ms = GS_LEND_AFTER_MIN_MS;
	for (size_t i = 0; i < h->members.n; i++) {
		const struct container *c = containers_find(containers, h->members.v[i]);

		leaving |= c->deleted;
		if (c->rec.role != GS_ROLE_HOLDER)
			continue;
		if (!first || (first->deleted && !c->deleted))
			first = c;
		ask(c, settings, h);
	}
	for (size_t i = 0; first && i < h->members.n; i++) {
		const struct container *c = containers_find(containers, h->members.v[i]);

		if (c == first || !c->rec.pod_uid || same_pod(&c->rec, &first->rec))
			continue;
		shared |= c->rec.role == GS_ROLE_TARGET;
		/* a pod that is gone but for a process in a driver is no impostor */
		claimed |= c->rec.role == GS_ROLE_HOLDER && !c->deleted;
	}
	h->claimed_twice = claimed;
	if (!first)
		h->why_not = "its holder is not there";
	else if (claimed)
		h->why_not = "two pods say that they hold its cards";
	else if (leaving)
		h->why_not = "a container that was deleted has not ended";
	else if (shared && !settings->lend_shared)
		h->why_not = "other pods share it";
	h->lend = !h->why_not;
}
