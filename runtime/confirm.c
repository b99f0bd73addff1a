// SPDX-License-Identifier: Apache-2.0
/* Refusing a container that names a card which the kubelet did not give to its pod. */
#include <errno.h>
#include <stdlib.h>

#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/log.h"
#include "gpushare/agent.h"
#include "runtime/cards_file.h"
#include "runtime/confirm.h"
#include "runtime/holds.h"

/* The names of the cards that the slice names. */
static json_t *named_cards(const json_t *file, const struct slice *own, const char *next)
{
	json_t *cards = json_array();
	const json_t *card;
	size_t i;

	json_array_foreach(json_object_get(file, "cards"), i, card) {
		json_t *name = json_object_get(card, "name");

		/* here "all" counts: it opens each card wherever the next runtime acts on it */
		if (name && slice_holds_card(own, card, next, true))
			(void)json_array_append(cards, name);
	}
	return cards;
}

int confirm(const struct gs_config *config, const struct slice *own, const char *next,
	    const char *id, const struct gs_identity *who, uint64_t deadline_ms, struct gs_err *err)
{
	cleanup_json json_t *request = NULL;
	cleanup_json json_t *cards = NULL;
	cleanup_json json_t *file = NULL;
	cleanup_free char *text = NULL;
	struct gs_err why = { 0 };
	int r;

	/* without a CRI there is no kubelet that could confirm anything */
	if (!config->refuse_unconfirmed || config->cri == GS_CRI_NONE || !gs_identity_is_set(who))
		return 0;
	r = cards_file_read(config->run_dir, &file, &why);
	if (r == 0) {
		cards = named_cards(file, own, next);
		if (json_array_size(cards) == 0)
			return 0;
		text = gs_identity_text(who);
		request = json_pack("{s:i, s:s, s:s, s:s, s:O}", "v", GS_AGENT_VERSION, "op",
				    GS_OP_CONFIRM, "container", id, "to", text, "cards", cards);
		r = gs_agent_ask(config->run_dir, request, deadline_ms, NULL, &why);
	}
	if (r == -EREMOTEIO)
		return gs_err_set(err, EACCES,
				  "this container names a card that is not its own: %s", why.msg);
	if (r < 0)
		gs_log(GS_LOG_WARN, "container %s: nobody confirms that its cards are its own: %s",
		       id, why.msg);
	return 0;
}
