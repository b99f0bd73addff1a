// SPDX-License-Identifier: Apache-2.0
/* The agent's picture as the JSON that gpusharectl promises: every key there, null: not known. */
#include "common/json.h"
#include "ctl/ctl.h"
#include "ctl/picture.h"

static json_t *number(int64_t n)
{
	return n < 0 ? json_null() : json_integer(n);
}

json_t *picture_json_container(const struct pic_container *c)
{
	return json_pack("{s:s,s:s?,s:s?,s:b,s:b,s:o,s:s?,s:s?,s:o}", "id", c->id, "name", c->name,
			 "role", c->role, "running", c->running, "ending", c->ending, "cards",
			 gs_json_list(&c->cards), "user_id", c->user_id, "partition", c->partition,
			 "memory_used", number(c->memory_used));
}

json_t *picture_json_card(const struct picture *pic, const struct pic_card *card)
{
	bool memory = card->memory_total > 0;

	return json_pack("{s:s,s:s?,s:s?,s:s?,s:s?,s:s,s:o,s:o,s:o,s:b,s:o}", "card", card->name,
			 "vendor", card->vendor, "id", card->id, "uuid", card->uuid, "holding",
			 card->holding, "state", picture_state(pic, card), "busy",
			 card->busy < 0 ? json_null() : json_real(card->busy), "memory_used",
			 number(memory ? (int64_t)card->memory_used : -1), "memory_total",
			 number(memory ? (int64_t)card->memory_total : -1), "strangers",
			 card->strangers, "revocable",
			 card->revocable < 0 ? json_null() : json_boolean(card->revocable));
}

json_t *picture_json_holding(const struct pic_holding *holding)
{
	json_t *members = json_array();

	for (size_t i = 0; i < holding->n_members; i++)
		(void)json_array_append_new(members, picture_json_container(&holding->members[i]));
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:b,s:s?}", "holding", holding->name, "state",
			 holding->state, "since_ms", number(holding->since_ms), "touches",
			 number(holding->touches), "cards", gs_json_list(&holding->cards),
			 "members", members, "lend", holding->lend, "why_not", holding->why_not);
}
