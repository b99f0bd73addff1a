// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "agent/observe.h"
#include "agent/sample.h"
#include "agent/unseen.h"
#include "common/log.h"
#include "common/proc.h"

/* Somebody's memory was busy, or hooks were being changed. */
#define AGAIN_MS 1000

/* Is there a card of the holding whose users' mappings the module would take away? */
static bool can(struct agent *agent, const struct plan_holding *plan)
{
	if (!(agent->state.status.features & GS_F_SAMPLE))
		return false;
	for (size_t i = 0; i < plan->cards.n; i++) {
		const struct card *card =
			cards_find(inventory_cards(agent->inventory), plan->cards.v[i]);

		if (card && !unseen_card(&agent->state, card))
			return true;
	}
	return false;
}

void sample_idle(struct agent *agent, struct hold *hold, const struct plan_holding *plan)
{
	struct gs_klink *link = kernel_link(agent->kernel);
	uint64_t now = gs_boottime_ms();
	struct gs_err err = { 0 };
	int r;

	if (!agent->settings.sample_ms || !link || !plan->lend || hold->state != GS_IDLE ||
	    now < hold->sample_ms || !can(agent, plan))
		return;
	r = gs_klink_sample(link, hold->name, hold->seq, &err);
	hold->sample_ms = now + (r < 0 ? AGAIN_MS : agent->settings.sample_ms);
	if (r == -EOPNOTSUPP)
		unseen_refused(agent, plan, err.msg);
	if (r < 0) {
		gs_log_fields(GS_LOG_DEBUG, "not sampled", "holding", hold->name, "why", err.msg,
			      NULL);
		return;
	}
	observe_sample(agent);
	gs_log_fields(GS_LOG_DEBUG, "sampled", "holding", hold->name, NULL);
	if (!hold->sampled_ms)
		hold->sampled_ms = now;
}

bool sample_proves(struct agent *agent, const struct hold *hold, const struct plan_holding *plan)
{
	if (!agent->settings.sample_ms || !can(agent, plan))
		return true;
	return hold->sampled_ms && gs_boottime_ms() - hold->sampled_ms >= agent->settings.sample_ms;
}
