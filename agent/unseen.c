// SPDX-License-Identifier: Apache-2.0
/* Returns that only the card's load tells: taken back, though nobody could be held. */
#include <stdlib.h>

#include "agent/observe.h"
#include "agent/strangers.h"
#include "agent/unseen.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* A card's utilisation is an average over so long, at most. */
#define AVERAGE_MS 1000

enum unseen_work unseen_work(const struct unseen_view *view)
{
	const struct load *load = view->load;
	bool there = !load->processes_known;

	for (size_t i = 0; load->processes_known && i < load->n_processes; i++) {
		if (!view->member[i])
			continue;
		there = true;
		if (load->processes[i].busy_known && load->processes[i].busy > 0 &&
		    load->busy_since_ms && load->busy_since_ms >= view->from_ms)
			return UNSEEN_PROCESS;
	}
	if (!there || !load->known || load->busy <= 0 || load->at_ms <= view->lent_ms ||
	    (view->borrowed_ms && load->at_ms <= view->borrowed_ms + AVERAGE_MS))
		return UNSEEN_NONE;
	return UNSEEN_CARD;
}

bool unseen_card(const struct gs_kstate *state, const struct card *card)
{
	bool any = false;

	for (size_t i = 0; i < card->n_nodes; i++) {
		const struct card_node *node = &card->nodes[i];
		const struct gs_knode *k = gs_kstate_node(state, node->dev);

		if (!node->own || !node->hook)
			continue;
		if (!k || !k->revocable)
			return true;
		any = true;
	}
	return !any;
}

bool unseen_revocable(struct agent *agent, const struct card *card)
{
	return agent->state.status.features & GS_F_REVOKE &&
	       !agent_card(agent, card->name)->unrevocable;
}

bool unseen_settled(struct agent *agent, const struct card *card)
{
	for (size_t i = 0; i < card->n_nodes; i++) {
		const struct card_node *node = &card->nodes[i];
		const struct gs_knode *k = gs_kstate_node(&agent->state, node->dev);

		if (k && node->own && node->hook &&
		    k->revocable != (node->revocable && unseen_revocable(agent, card)))
			return false;
	}
	return true;
}

void unseen_refused(struct agent *agent, const struct plan_holding *plan, const char *why)
{
	for (size_t i = 0; i < plan->cards.n; i++) {
		const struct card *card =
			cards_find(inventory_cards(agent->inventory), plan->cards.v[i]);
		struct seen_card *seen = agent_card(agent, plan->cards.v[i]);

		if (!card || unseen_card(&agent->state, card) || seen->unrevocable)
			continue;
		seen->unrevocable = gs_strdup(why);
		gs_log_fields(GS_LOG_ERROR, "a return by a store will not be held", "card",
			      card->name, "why", why, NULL);
		reconcile_soon(agent, 0);
	}
}

/* ---- Which of the card's processes are members'? */

static bool is_member(const struct agent *agent, const char *card, pid_t pid)
{
	const struct container *c = container_of_process(agent, pid);

	return c && c->rec.role != GS_ROLE_BORROWER && !c->exempt && gs_strv_has(&c->cards, card);
}

/* Whose are the processes that may matter: those that worked; where the card did, all of them. */
static bool *members_of(const struct agent *agent, const char *card, const struct load *load)
{
	bool *ret = gs_calloc(load->n_processes + 1, sizeof(*ret));

	for (size_t i = 0; load->processes_known && i < load->n_processes; i++) {
		const struct load_process *process = &load->processes[i];

		if ((load->known && load->busy > 0) || process->busy > 0)
			ret[i] = is_member(agent, card, process->pid);
	}
	return ret;
}

/* ---- Taking back. */

/* Each pod once, whichever of its containers use the card. */
static void tell_pods(struct agent *agent, const struct card *card)
{
	const struct plan_holding *plan = plan_holding_of_card(&agent->plan, card->name);
	cleanup_strv struct gs_strv told = { 0 };

	for (size_t i = 0; plan && i < plan->members.n; i++) {
		const struct container *c = containers_find(&agent->containers, plan->members.v[i]);

		if (!c || !c->rec.pod_uid || !gs_identity_is_set(&c->rec.identity) ||
		    gs_strv_has(&told, c->rec.pod_uid))
			continue;
		gs_strv_add(&told, c->rec.pod_uid);
		kube_event(agent->kube, c->rec.identity.ns, c->rec.identity.pod, c->rec.pod_uid,
			   "Normal", "GpuReturnedUnheld",
			   "worked on its lent card without a call that could have been held; the "
			   "card is taken back");
	}
}

static void take_back(struct agent *agent, struct hold *hold, const struct card *card,
		      enum unseen_work work)
{
	struct gs_err err = { 0 };

	if (back_withdraw(agent, hold, &err) < 0) {
		told_log(&agent->told, GS_LOG_ERROR, "not taken back", "holding", hold->name,
			 err.msg);
		return;
	}
	/* one return, however many of its cards are told before the module's word of it comes */
	hold->state = GS_RETURNING;
	gs_log_fields(GS_LOG_WARN, "taken back", "holding", hold->name, "card", card->name, "why",
		      work == UNSEEN_PROCESS ?
			      "a process of its user works, and made no call" :
			      "it works, and nobody borrows it: its user made no call",
		      NULL);
	observe_unheld(agent, work == UNSEEN_PROCESS ? "process" : "card");
	if (agent->kube)
		tell_pods(agent, card);
}

void unseen_loaded(struct agent *agent, const struct card *card, const struct load *load)
{
	struct hold *hold = agent_hold_of_card(agent, card->name);
	struct seen_card *seen = agent_card(agent, card->name);
	cleanup_free bool *member = NULL;
	struct unseen_view view = { .load = load };
	enum unseen_work work;

	if (!hold || hold->state != GS_LENT || !unseen_card(&agent->state, card))
		return;
	if (lent_borrowed(agent, card->name))
		seen->borrowed_ms = gs_boottime_ms();
	view.lent_ms = hold->since_ms;
	view.from_ms = hold->looked_ms ? hold->looked_ms : hold->since_ms;
	view.borrowed_ms = seen->borrowed_ms;
	view.member = member = members_of(agent, card->name, load);
	work = unseen_work(&view);
	if (work != UNSEEN_NONE)
		take_back(agent, hold, card, work);
}
