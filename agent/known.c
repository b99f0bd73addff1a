// SPDX-License-Identifier: Apache-2.0
/* What the agent remembers of holdings and cards, by their names. */
#include <string.h>

#include "agent/agent.h"
#include "common/xalloc.h"

void agent_hold_anew(struct hold *hold, uint64_t seq)
{
	hold->seq = seq;
	hold->asked_ms = 0;
	hold->sampled_ms = hold->sample_ms = 0;
}

struct hold *agent_hold(struct agent *agent, const char *name)
{
	for (size_t i = 0; i < agent->n_holds; i++)
		if (strcmp(agent->holds[i].name, name) == 0)
			return &agent->holds[i];
	return NULL;
}

struct hold *agent_hold_of_card(struct agent *agent, const char *card)
{
	const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card);

	return plan ? agent_hold(agent, plan->name) : NULL;
}

struct seen_card *agent_card(struct agent *agent, const char *name)
{
	struct seen_card *card;

	for (size_t i = 0; i < agent->n_cards; i++)
		if (strcmp(agent->cards[i].name, name) == 0)
			return &agent->cards[i];
	agent->cards = gs_grow(agent->cards, agent->n_cards, sizeof(*agent->cards));
	card = &agent->cards[agent->n_cards++];
	*card = (struct seen_card){ .name = gs_strdup(name) };
	return card;
}

bool agent_away(struct agent *agent, const char *card)
{
	const struct card *c = cards_find(inventory_cards(agent->inventory), card);

	for (size_t i = 0; c && i < agent->n_holds; i++) {
		const struct hold *hold = &agent->holds[i];
		const struct gs_kholding *k = gs_kstate_holding(&agent->state, hold->name);

		if (hold->state != GS_LENDING && hold->state != GS_LENT &&
		    hold->state != GS_RETURNING)
			continue;
		for (size_t j = 0; k && j < k->devs.n; j++)
			if (cards_of_dev(inventory_cards(agent->inventory), k->devs.v[j]) == c)
				return true;
	}
	return false;
}
