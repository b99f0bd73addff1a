// SPDX-License-Identifier: Apache-2.0
/*
 * Did the kubelet give a container's cards to its pod? The pod as a whole counts, for its author
 * could hand a card to any container of it, and of plain init containers the kubelet tells nothing.
 */
#include <errno.h>
#include <string.h>

#include "agent/allocations.h"
#include "agent/observe.h"
#include "agent/ops.h"
#include "agent/plugins.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/log.h"

/* Is an answer on its way that can know of a container which is being created now? */
static bool is_coming(struct agent *agent)
{
	struct gs_err why = { 0 };

	/* a kubelet that was not asked yet will be in a moment */
	return allocations_asking(agent) ||
	       (!allocations_answer(agent, &why) && !why.code && plugins_have_kubelet(agent));
}

/* -EACCES: one of the cards is not the pod's. One that the kubelet does not know is anybody's. */
static int check_cards(struct agent *agent, const struct allocated *allocated,
		       const struct gs_identity *to, const json_t *names, struct gs_err *err)
{
	const struct gs_catalogue *cat = inventory_catalogue(agent->inventory);
	const json_t *name;
	size_t i;

	json_array_foreach(names, i, name) {
		const char *text = json_string_value(name);
		const struct card *card =
			text ? cards_find(inventory_cards(agent->inventory), text) : NULL;

		if (!card || allocated_state(allocated, cat, card) == ALLOCATED_UNKNOWN ||
		    allocated_pod_has(allocated, cat, to, card))
			continue;
		return gs_err_set(err, EACCES, "the kubelet did not give card %s to its pod",
				  card->name);
	}
	return 0;
}

/* 0 where the kubelet does not tell: who was given a card is not to suffer from that. */
static int judge(struct agent *agent, const struct gs_identity *to, const json_t *cards,
		 struct gs_err *err)
{
	cleanup_free char *label = gs_identity_text(to);
	struct gs_err why = { 0 };
	const struct allocated *allocated = allocations_answer(agent, &why);
	int r;

	if (gs_glob_any(&agent->settings.exempt, label))
		return 0;
	if (!allocated || why.code) {
		observe_unconfirmed(agent, "untold");
		gs_log_fields(GS_LOG_WARN, "nobody tells whose a container's cards are",
			      "container", label, "why", why.code ? why.msg : "there is no kubelet",
			      NULL);
		return 0;
	}
	r = check_cards(agent, allocated, to, cards, err);
	if (r < 0) {
		observe_unconfirmed(agent, "refused");
		gs_log_fields(GS_LOG_WARN, "a container is refused", "container", label, "why",
			      err->msg, NULL);
	}
	return r;
}

void ops_confirm(struct agent *agent, struct waiting *waiting, const json_t *request, bool first)
{
	const char *text = json_string_value(json_object_get(request, "to"));
	cleanup_identity struct gs_identity to = { 0 };
	struct gs_err err = { 0 };
	int r;

	r = gs_identity_parse(text ? text : "", text ? strlen(text) : 0, NULL, &to, &err);
	if (r == 0) {
		/* what was answered before may not know its pod yet */
		if (first)
			allocations_ask(agent);
		if (is_coming(agent))
			return;
		r = judge(agent, &to, json_object_get(request, "cards"), &err);
	}
	server_answer(waiting, NULL, r < 0 ? &err : NULL);
}
