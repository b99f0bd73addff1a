// SPDX-License-Identifier: Apache-2.0
/* Asking the kubelet who has what, and what follows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/allocations.h"
#include "agent/orphans.h"
#include "agent/plugins.h"
#include "agent/pods.h"
#include "common/cleanup.h"
#include "common/grant.h"
#include "common/kname.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/resources.h"

#define PERIOD_MS 10000
#define SOON_MS 1000
#define ANSWER_MS 5000
/* So long after a grant was made the kubelet tells of whom it is for. */
#define GRANTED_MS 30000

struct allocations {
	uv_timer_t timer;
	char *socket;
	struct allocated allocated, uses; /* what is known; the first half of an answer */
	uint64_t asked_ms, granted_ms;
	bool asking, again;
	struct gs_err failure;
	struct gs_strv doomed; /* spot pods that can't start any more, when we looked last */
};

/* ---- What follows. */

/* A free card that the kubelet gave away goes back before its new holder asks for it. */
static void take_back_given(struct agent *agent)
{
	for (size_t i = 0; i < agent->plan.n_holdings; i++) {
		const struct plan_holding *plan = &agent->plan.holdings[i];
		struct hold *hold = agent_hold(agent, plan->name);
		const struct card *card =
			cards_find(inventory_cards(agent->inventory), plan->cards.v[0]);
		struct gs_err err = { 0 };

		if (plan->members.n || !hold || hold->state != GS_LENT || !card ||
		    !plugins_gave_away(agent, card))
			continue;
		gs_log_fields(GS_LOG_INFO, "the kubelet gave a lent card away", "card", card->name,
			      NULL);
		if (back_withdraw(agent, hold, &err) < 0)
			gs_log_fields(GS_LOG_ERROR, "not taken back", "holding", hold->name, "why",
				      err.msg, NULL);
	}
}

/* Is one of the devices a card whose holder is there, and keeps it? */
static bool is_held(struct agent *agent, const struct gs_strv *devices)
{
	for (size_t i = 0; i < devices->n; i++) {
		const struct plan_holding *plan = plan_holding_of_card(&agent->plan, devices->v[i]);
		const struct hold *hold = plan ? agent_hold(agent, plan->name) : NULL;

		if (hold && plan->members.n && hold->state != GS_LENT && hold->state != GS_LENDING)
			return true;
	}
	return false;
}

/*
 * A spot pod that was let in while its card was lent or free, and has not started before its holder
 * came: it would be refused for ever, when the card is lent again, too, for its grant was revoked.
 * Twice in a row, since a card may change hands as we look.
 */
static void end_doomed(struct agent *agent)
{
	const struct kubelet_uses *uses = &agent->allocations->allocated.uses;
	const char *lib_dir = agent->config.lib_dir;
	cleanup_strv struct gs_strv before = agent->allocations->doomed;
	struct gs_strv now = { 0 };

	for (size_t i = 0; i < uses->n; i++) {
		const struct kubelet_use *use = &uses->v[i];
		cleanup_free char *name = NULL;

		if (!use->pod || strcmp(use->resource, GS_RESOURCE_SPOT) != 0)
			continue;
		if (!is_held(agent, &use->ids) &&
		    gs_grant_taken_back(lib_dir, GS_RESOURCE_SPOT, &use->ids, NULL) <= 0)
			continue;
		name = gs_asprintf("%s/%s", use->namespace, use->pod);
		gs_strv_add_once(&now, name);
		if (gs_strv_has(&before, name))
			pods_delete_named(agent, use->namespace, use->pod,
					  "the holder of its card is back");
	}
	agent->allocations->doomed = now;
}

static bool is_used(const struct kubelet_uses *uses, const struct gs_grant *grant)
{
	for (size_t i = 0; i < uses->n; i++)
		if (strcmp(uses->v[i].resource, grant->resource) == 0 &&
		    gs_strv_intersect(&uses->v[i].ids, &grant->devices))
			return true;
	return false;
}

/*
 * Grants whose devices nobody has any more: their pods are over, and leases end with them. Not so
 * soon after one was made that the kubelet may not tell of it yet, and not while one may be of an
 * init container.
 */
static void end_unused(struct agent *agent)
{
	const struct allocations *all = agent->allocations;
	cleanup_strv struct gs_strv names = { 0 };

	/* the question may be older than the grant */
	if (all->asked_ms < all->granted_ms + GRANTED_MS ||
	    gs_grant_list(agent->config.lib_dir, &names, NULL) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		cleanup_grant struct gs_grant grant = { 0 };
		struct gs_err err = { 0 };
		char buf[10];

		if (gs_grant_read(agent->config.lib_dir, names.v[i], &grant, NULL) < 0 ||
		    grant.revoked || !grant.resource || !grant.devices.n ||
		    is_used(&all->allocated.uses, &grant) || pods_untold(agent, grant.resource))
			continue;
		if (gs_grant_revoke(agent->config.lib_dir, grant.name, &err) < 0)
			gs_log_fields(GS_LOG_ERROR, "a grant is not revoked", "grant",
				      gs_grant_short(grant.name, buf), "why", err.msg, NULL);
	}
}

static void end_what_is_over(struct agent *agent)
{
	end_doomed(agent);
	orphans_end(agent);
	end_unused(agent);
}

/* ---- Asking. */

static void over(struct agent *agent, int code, const struct gs_err *err)
{
	struct allocations *all = agent->allocations;
	bool was_up = all->failure.code == 0;

	all->asking = false;
	all->failure = (struct gs_err){ 0 };
	if (code < 0)
		all->failure = *err;
	if (was_up && code < 0)
		gs_log_fields(GS_LOG_ERROR, "the kubelet does not tell who holds what", "why",
			      err->msg, NULL);
	else if (!was_up && code == 0)
		gs_log_fields(GS_LOG_INFO, "the kubelet tells who holds what", NULL);
	if (all->again)
		allocations_ask(agent);
	server_changed(agent);
}

static void on_all(int code, const struct kubelet_uses *uses, const struct gs_err *err, void *arg)
{
	struct agent *agent = arg;
	struct allocations *all = agent->allocations;

	if (code == -ECANCELED)
		return;
	if (code == 0) {
		bool was_settled = allocated_settled(&all->allocated);
		bool changed = allocated_set(&all->allocated, &all->uses.uses, uses, all->asked_ms);

		if (changed || was_settled != allocated_settled(&all->allocated))
			reconcile_soon(agent, 0);
		take_back_given(agent);
		if (allocated_settled(&all->allocated))
			end_what_is_over(agent);
	}
	over(agent, code, err);
}

static void on_uses(int code, const struct kubelet_uses *uses, const struct gs_err *err, void *arg)
{
	static const struct kubelet_uses none;
	struct agent *agent = arg;
	struct allocations *all = agent->allocations;
	struct gs_err why = { 0 };

	if (code == -ECANCELED)
		return;
	if (code < 0) {
		over(agent, code, err);
		return;
	}
	if (!allocated_knows_pods(uses, &agent->containers)) {
		code = gs_err_set(&why, EAGAIN, "it knows none of the pods that run here");
		over(agent, code, &why);
		return;
	}
	(void)allocated_set(&all->uses, uses, &none, 0);
	kubelet_allocatable(plugins_rpc(agent), all->socket, ANSWER_MS, on_all, agent);
}

void allocations_ask(struct agent *agent)
{
	struct allocations *all = agent->allocations;
	struct rpc *rpc = plugins_rpc(agent);

	if (!all || !rpc)
		return;
	all->again = all->asking;
	if (all->asking)
		return;
	all->asking = true;
	all->asked_ms = gs_boottime_ms();
	kubelet_uses(rpc, all->socket, ANSWER_MS, on_uses, agent);
}

void allocations_look(struct agent *agent)
{
	if (agent->allocations && gs_boottime_ms() - agent->allocations->asked_ms >= SOON_MS)
		allocations_ask(agent);
}

void allocations_granted(struct agent *agent)
{
	if (!agent->allocations)
		return;
	agent->allocations->granted_ms = gs_boottime_ms();
	allocations_ask(agent);
}

static void on_timer(uv_timer_t *timer)
{
	struct agent *agent = timer->data;

	if (!agent->allocations->asking)
		allocations_ask(agent);
}

/* ---- For the rest of the agent. */

bool allocations_asking(const struct agent *agent)
{
	return agent->allocations && agent->allocations->asking;
}

const struct allocated *allocations_answer(const struct agent *agent, struct gs_err *ret_err)
{
	const struct allocations *all = agent->allocations;

	if (ret_err)
		*ret_err = all ? all->failure : (struct gs_err){ 0 };
	return all && all->allocated.known ? &all->allocated : NULL;
}

const struct allocated *allocations_known(const struct agent *agent)
{
	return allocations_answer(agent, NULL);
}

bool allocations_up(const struct agent *agent)
{
	return allocations_known(agent) && agent->allocations->failure.code == 0;
}

void allocations_confirm(struct agent *agent)
{
	const struct allocated *allocated = allocations_known(agent);

	if (allocated)
		allocated_confirm(allocated, inventory_catalogue(agent->inventory),
				  inventory_cards(agent->inventory), &agent->containers);
}

static bool is_claimed(const struct agent *agent, const char *card)
{
	for (size_t i = 0; i < agent->containers.n; i++)
		if (gs_strv_has(&agent->containers.v[i].denied, card) &&
		    agent->containers.v[i].alive)
			return true;
	return false;
}

void allocations_free_cards(struct agent *agent, struct gs_strv *ret)
{
	static const struct allocated none;
	const struct cards *cards = inventory_cards(agent->inventory);
	const struct allocated *allocated = allocations_known(agent);

	if (!agent->allocations)
		return;
	for (size_t i = 0; i < cards->n; i++) {
		const struct card *card = &cards->v[i];
		enum allocated_state state = allocated_state(
			allocated ? allocated : &none, inventory_catalogue(agent->inventory), card);
		gs_kname name;

		gs_kname_free(card->name, name);
		if (state == ALLOCATED_TAKEN || is_claimed(agent, card->name) ||
		    (state == ALLOCATED_UNKNOWN && !gs_kstate_holding(&agent->state, name)))
			continue;
		gs_strv_add(ret, card->name);
	}
}

void allocations_start(struct agent *agent)
{
	struct allocations *all = gs_calloc(1, sizeof(*all));

	all->socket = gs_asprintf("%s/" KUBELET_POD_RESOURCES, agent->settings.kubelet);
	all->timer.data = agent;
	all->granted_ms = gs_boottime_ms(); /* perhaps, by the agent before us */
	agent->allocations = all;
	(void)uv_timer_init(agent->loop, &all->timer);
	(void)uv_timer_start(&all->timer, on_timer, PERIOD_MS, PERIOD_MS);
}

void allocations_free(struct agent *agent)
{
	struct allocations *all = agent->allocations;

	agent->allocations = NULL;
	if (!all)
		return;
	allocated_free(&all->allocated);
	allocated_free(&all->uses);
	gs_strv_free(&all->doomed);
	free(all->socket);
	free(all);
}
