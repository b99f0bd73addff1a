// SPDX-License-Identifier: Apache-2.0
/* The switch. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/glob.h"
#include "common/identity.h"
#include "controller/share.h"
#include "gpushare/annotations.h"
#include "gpushare/resources.h"

/* The cards among the names of @side, each once in @ret. */
static void find_cards(const struct admission_policy *policy, const json_t *container,
		       const char *side, struct gs_strv *ret)
{
	json_t *quantities = pod_object(pod_object(container, "resources"), side), *v;
	const char *name;

	json_object_foreach(quantities, name, v) {
		/* names come by the thousand in a hostile pod, kinds of cards do not */
		if (gs_glob_any(&policy->cards, name) && ret->n < 64)
			gs_strv_add_once(ret, name);
	}
}

static int share_container(const struct admission_policy *policy, bool on, json_t *container,
			   struct gs_err *err)
{
	cleanup_strv struct gs_strv cards = { 0 };
	int64_t shares = 0, spot = 0, n;
	int r = pod_amount(container, GS_RESOURCE_SHARE, &shares, err);

	if (r == 0)
		r = pod_amount(container, GS_RESOURCE_SPOT, &spot, err);
	find_cards(policy, container, "limits", &cards);
	find_cards(policy, container, "requests", &cards);
	if (r == 0 && spot && (shares || cards.n))
		r = gs_err_set(err, EINVAL,
			       "cards and %s together: what borrows a card is killed when that "
			       "card's holder comes back",
			       GS_RESOURCE_SPOT);
	if (!on)
		return r;
	for (size_t i = 0; r == 0 && i < cards.n; i++) {
		cleanup_free char *quoted = gs_quote(cards.v[i], strlen(cards.v[i]));

		if (gs_glob_any(&policy->slices, cards.v[i]))
			return gs_err_set(err, EINVAL,
					  "%s is a part of a card, and only whole cards are shared",
					  quoted);
		r = pod_amount(container, cards.v[i], &n, err);
		if (r < 0)
			return r;
		shares += n; /* at most 65 times POD_AMOUNT_MAX */
		pod_drop(container, cards.v[i]);
	}
	if (r == 0 && cards.n && shares > POD_AMOUNT_MAX)
		r = gs_err_set(err, ERANGE, "more cards than any node has");
	if (r == 0 && cards.n && shares)
		pod_ask(container, GS_RESOURCE_SHARE, shares);
	return r;
}

int share_apply(const struct admission_policy *policy, json_t *pod, struct gs_err *err)
{
	const char *value = pod_annotation(pod, GS_KEY_SHARE);
	bool on = value && strcmp(value, "true") == 0;

	if (value && !on && strcmp(value, "false") != 0) {
		cleanup_free char *quoted = gs_quote(value, strlen(value));

		return gs_err_set(err, EINVAL,
				  "annotation " GS_KEY_SHARE ": %s is neither \"true\" nor "
				  "\"false\"",
				  quoted);
	}
	for (int list = 0; list < POD_EPHEMERAL; list++) {
		json_t *container;
		size_t i;

		json_array_foreach(pod_containers(pod, list), i, container) {
			int r = share_container(policy, on, container, err);

			if (r < 0)
				return pod_container_prefix(container, err);
		}
	}
	return 0;
}
