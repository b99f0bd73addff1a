// SPDX-License-Identifier: Apache-2.0
/* Away: a holding nobody touched for long, and whose cards did nothing all that time, is lent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/sample.h"
#include "agent/strangers.h"
#include "agent/unseen.h"
#include "common/log.h"
#include "common/proc.h"

/*
 * Is the card at rest by this reading? A utilisation can stay at 100 % after a kill, with no
 * process there that could be the reason: that is rest.
 */
static bool is_quiet(const struct load *load)
{
	if (!load->known)
		return false;
	/* a moment of work between two looks at the card is told of its processes */
	for (size_t i = 0; load->processes_at_ms == load->at_ms && i < load->n_processes; i++)
		if (load->processes[i].busy > 0)
			return false;
	return load->busy <= 0 || (load->processes_known && load->n_processes == 0);
}

void lend_loaded(struct agent *agent, const struct card *card, const struct load *load)
{
	struct seen_card *seen = agent_card(agent, card->name);

	if (!is_quiet(load))
		seen->quiet_since_ms = 0;
	else if (!seen->quiet_since_ms)
		seen->quiet_since_ms = load->at_ms;
}

/* ---- Why a holding is not lent; 0 where it may be. */

static int not_now(struct hold *hold, const char *why)
{
	(void)snprintf(hold->why_not, sizeof(hold->why_not), "%.*s", (int)sizeof(hold->why_not) - 1,
		       why);
	return -EAGAIN;
}

bool lend_unwatched(const struct agent *agent, const struct plan_holding *plan)
{
	for (size_t i = 0; i < plan->members.n; i++) {
		const struct plan_watch *planned = plan_watch(&agent->plan, plan->members.v[i]);
		const struct gs_kwatch *w =
			planned ? gs_kstate_watch(&agent->state, planned->name) : NULL;

		if (!w || !gs_strv_has(&w->holdings, plan->name))
			return true;
	}
	return false;
}

static bool is_settled(struct agent *agent, const struct plan_holding *plan)
{
	for (size_t i = 0; i < plan->cards.n; i++) {
		const struct card *card =
			cards_find(inventory_cards(agent->inventory), plan->cards.v[i]);

		if (card && !unseen_settled(agent, card))
			return false;
	}
	return true;
}

static int check_card(struct agent *agent, struct hold *hold, const struct plan_holding *plan,
		      const char *name)
{
	const struct load *load = inventory_load(agent->inventory, name);
	const struct seen_card *seen = agent_card(agent, name);
	uint64_t now = gs_boottime_ms(), free_memory;

	if (!load || !load->known)
		return not_now(hold, "the load of a card is not known");
	if (!seen->quiet_since_ms || now - seen->quiet_since_ms < plan->lend_after_ms)
		return not_now(hold, "a card was busy a while ago");
	/* a tool may tell of more than there is */
	free_memory =
		load->memory_used < load->memory_total ? load->memory_total - load->memory_used : 0;
	if (load->memory_known && load->memory_total &&
	    free_memory / 100 * 100 < load->memory_total / 100 * agent->settings.lend_min_free)
		return not_now(hold, "too little of a card's memory is free");
	if (strangers_on(agent, name, load))
		return not_now(hold, "a process that belongs to nobody known uses a card");
	if (strangers_unseen(agent, name, load))
		return not_now(hold,
			       "a pod that uses a card has more open files than are looked at");
	return 0;
}

/*
 * Who has a card open is looked up rarely, as it costs a walk over all processes: once more, now
 * that everything else speaks for lending. Answers come as `loaded`.
 */
static int check_fresh(struct agent *agent, struct hold *hold, const struct plan_holding *plan)
{
	if (!hold->asked_ms) {
		hold->asked_ms = gs_boottime_ms();
		for (size_t i = 0; i < plan->cards.n; i++)
			inventory_read_all(agent->inventory, plan->cards.v[i]);
	}
	for (size_t i = 0; i < plan->cards.n; i++) {
		const struct load *load = inventory_load(agent->inventory, plan->cards.v[i]);
		/* where nobody tells processes, a reading without them is the answer */
		uint64_t at_ms = !load		       ? 0 :
				 load->processes_known ? load->processes_at_ms :
							 load->at_ms;

		if (at_ms < hold->asked_ms)
			return not_now(hold, "who uses its cards is being looked up");
	}
	return 0;
}

static int check(struct agent *agent, struct hold *hold, const struct plan_holding *plan)
{
	int r;

	if (hold->state != GS_IDLE)
		return not_now(hold, "it is in use");
	if (!plan->lend)
		return not_now(hold, plan->why_not);
	if (gs_boottime_ms() < hold->starting_until_ms)
		return not_now(hold, "a container that holds it is starting");
	if (lend_unwatched(agent, plan))
		return not_now(hold, "a container that holds it is not watched");
	if (!is_settled(agent, plan))
		return not_now(hold, "its driver is being hooked anew");
	for (size_t i = 0; i < plan->cards.n; i++) {
		r = check_card(agent, hold, plan, plan->cards.v[i]);
		if (r < 0)
			return r;
	}
	if (!sample_proves(agent, hold, plan))
		return not_now(hold, "its user's stores are being looked for");
	r = check_fresh(agent, hold, plan);
	if (r == 0)
		hold->why_not[0] = '\0';
	return r;
}

/* ---- Lending. */

/* The files come first: whoever finds no agent must know whom to kill. */
static int write_files(struct agent *agent, const struct plan_holding *plan, struct gs_err *err)
{
	for (size_t i = 0; i < plan->cards.n; i++) {
		const struct card *card =
			cards_find(inventory_cards(agent->inventory), plan->cards.v[i]);
		const struct load *load = inventory_load(agent->inventory, plan->cards.v[i]);
		struct seen_card *seen = agent_card(agent, plan->cards.v[i]);
		int r;

		if (!card)
			return gs_err_set(err, ENODEV, "card %s is gone", plan->cards.v[i]);
		seen->memory_before = load && load->memory_known ? load->memory_used : GS_UNTOLD;
		r = lent_write(agent, card, err);
		if (r < 0)
			return r;
		seen->lent = true;
	}
	return 0;
}

static int lend(struct agent *agent, struct hold *hold, const struct plan_holding *plan,
		struct gs_err *err)
{
	struct gs_klink *link = kernel_link(agent->kernel);
	int r;

	if (!link)
		return gs_err_set(err, EAGAIN, "the kernel module is not loaded");
	if (!is_settled(agent, plan))
		return gs_err_set(err, EAGAIN, "its driver is being hooked anew");
	/* no grant of the last time is good for this one */
	lease_revoke_now(agent);
	r = write_files(agent, plan, err);
	if (r == 0)
		r = gs_klink_lend(link, hold->name, hold->seq, err);
	if (r == -EOPNOTSUPP)
		unseen_refused(agent, plan, err->msg);
	hold->looked_ms = hold->asked_ms ? hold->asked_ms : gs_boottime_ms();
	hold->asked_ms = 0;
	if (r < 0) {
		back_end(agent, hold);
		return r;
	}
	hold->state = GS_LENT;
	hold->since_ms = gs_boottime_ms();
	gs_log_fields(GS_LOG_INFO, "lent", "holding", hold->name, NULL);
	return 0;
}

int lend_now(struct agent *agent, struct hold *hold, struct gs_err *err)
{
	const struct plan_holding *plan = plan_holding(&agent->plan, hold->name);

	if (!plan)
		return gs_err_set(err, ENOENT, "no container uses holding %s", hold->name);
	if (hold->state == GS_LENT)
		return 0;
	if (hold->state != GS_IDLE)
		return gs_err_set(err, EAGAIN, "holding %s is not idle", hold->name);
	if (lend_unwatched(agent, plan))
		return gs_err_set(err, EAGAIN, "a container of holding %s is not watched",
				  hold->name);
	return lend(agent, hold, plan, err);
}

void lend_consider(struct agent *agent)
{
	for (size_t i = 0; i < agent->n_holds; i++) {
		struct hold *hold = &agent->holds[i];
		const struct plan_holding *plan = plan_holding(&agent->plan, hold->name);
		struct gs_err err = { 0 };

		if (!plan || hold->state == GS_LENT)
			continue;
		sample_idle(agent, hold, plan);
		if (check(agent, hold, plan) < 0)
			continue;
		if (lend(agent, hold, plan, &err) < 0) {
			(void)not_now(hold, err.msg);
			told_log(&agent->told,
				 err.code == EAGAIN || err.code == EBUSY ? GS_LOG_INFO :
									   GS_LOG_WARN,
				 "not lent", "holding", hold->name, err.msg);
		}
	}
}
