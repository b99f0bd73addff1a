// SPDX-License-Identifier: Apache-2.0
/*
 * The way back: the kernel module holds who came back; here the borrowers are ended, and when the
 * last of their files is closed and the cards' memory is free again, the held calls may go on. The
 * module itself sees to it that this takes no longer than hold_max.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/proc.h"

/* Between two looks while a return is on; what is waited for mostly wakes us itself. */
#define STEP_MS 10
/*
 * A driver may keep a little of what it allocated for the first process. So much of a card's
 * memory, in percent, is forgiven when settle_ms is over.
 */
#define FORGIVEN_PERCENT 2
/* Where a card's memory can't be read: so long after the last close, or settle_ms. */
#define UNKNOWN_SETTLE_MS 500

static const struct card *card_at(const struct agent *agent, const struct gs_kholding *k, size_t i)
{
	return cards_of_dev(inventory_cards(agent->inventory), k->devs.v[i]);
}

static void cards_of_holding(const struct agent *agent, const struct gs_kholding *k,
			     struct gs_strv *cards)
{
	for (size_t i = 0; i < k->devs.n; i++) {
		const struct card *card = card_at(agent, k, i);

		if (card)
			gs_strv_add_once(cards, card->name);
	}
}

/* ---- Is the memory back? */

static bool memory_is_back(struct agent *agent, const struct hold *hold, const struct card *card,
			   unsigned int settle_ms)
{
	const struct load *load = inventory_load(agent->inventory, card->name);
	const struct seen_card *seen = agent_card(agent, card->name);
	uint64_t gone_ms = gs_boottime_ms() - hold->drained_ms;
	uint64_t forgiven = 0;

	/* memory is free with the last close, by the word of its catalogue entry */
	if (settle_ms == 0)
		return true;
	if (!load || !load->memory_known || seen->memory_before == GS_UNTOLD ||
	    load->at_ms <= hold->drained_ms)
		return gone_ms >= settle_ms && gone_ms >= UNKNOWN_SETTLE_MS;
	if (gone_ms >= settle_ms)
		forgiven = load->memory_total / 100 * FORGIVEN_PERCENT;
	return load->memory_used <= seen->memory_before + forgiven;
}

static bool all_memory_is_back(struct agent *agent, const struct hold *hold)
{
	const struct gs_kholding *k = gs_kstate_holding(&agent->state, hold->name);
	bool all = true;

	for (size_t i = 0; k && i < k->devs.n; i++) {
		const struct card *card = card_at(agent, k, i);

		if (!card || memory_is_back(agent, hold, card, k->settle_ms))
			continue;
		inventory_read(agent->inventory, card->name);
		all = false;
	}
	return all;
}

/* ---- Release. */

bool back_waits(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_holds; i++)
		if (agent->holds[i].state == GS_RETURNING)
			return true;
	return false;
}

/* What there is to do and to tell of it comes with the kernel's word that the state has changed. */
static void release(struct agent *agent, struct hold *hold)
{
	struct gs_klink *link = kernel_link(agent->kernel);
	struct gs_err err = { 0 };
	int r;

	if (!link)
		return;
	r = gs_klink_release(link, hold->name, hold->seq, &err);
	if (r == -EBUSY) { /* one was opened before the watch was revoked, and is open still */
		hold->drained = false;
	} else if (r < 0) {
		told_log(&agent->told, GS_LOG_WARN, "not released", "holding", hold->name, err.msg);
		reconcile_soon(agent, 0);
	} else {
		hold->state = GS_ACTIVE;
		if (!back_waits(agent))
			kernel_rest(agent->kernel);
	}
}

static void on_step(uv_timer_t *timer)
{
	back_step(timer->data);
}

void back_step(struct agent *agent)
{
	for (size_t i = 0; i < agent->n_holds; i++) {
		struct hold *hold = &agent->holds[i];

		if (hold->state == GS_RETURNING && hold->drained && all_memory_is_back(agent, hold))
			release(agent, hold);
	}
	if (!back_waits(agent))
		(void)uv_timer_stop(&agent->back_timer);
	else if (!uv_is_active((uv_handle_t *)&agent->back_timer))
		(void)uv_timer_start(&agent->back_timer, on_step, STEP_MS, STEP_MS);
}

/* ---- Begin and end. */

void back_begin(struct agent *agent, struct hold *hold)
{
	const struct gs_kholding *k = gs_kstate_holding(&agent->state, hold->name);
	cleanup_strv struct gs_strv cards = { 0 };

	for (size_t i = 0; i < agent->state.n_watches; i++) {
		const struct gs_kwatch *w = &agent->state.watches[i];
		const struct container *c;

		if (w->role != GS_BORROWER || !gs_strv_has(&w->holdings, hold->name))
			continue;
		c = containers_find_watch(&agent->containers, w->name);
		if (c)
			evict(agent, c, "the holder of its card is back");
	}
	if (k)
		cards_of_holding(agent, k, &cards);
	lease_revoke(agent, &cards);
	back_step(agent);
}

void back_unseen(struct agent *agent, const struct gs_kholding *k)
{
	cleanup_strv struct gs_strv cards = { 0 };

	cards_of_holding(agent, k, &cards);
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (c->rec.role == GS_ROLE_BORROWER && gs_strv_intersect(&c->cards, &cards))
			evict(agent, c, "the holder of its card was back");
	}
	lease_revoke(agent, &cards);
}

void back_end(struct agent *agent, struct hold *hold)
{
	const struct gs_kholding *k = gs_kstate_holding(&agent->state, hold->name);

	hold->drained = false;
	for (size_t i = 0; k && i < k->devs.n; i++) {
		const struct card *card = card_at(agent, k, i);

		if (card && agent_card(agent, card->name)->lent) {
			lent_remove(agent, card->name);
			agent_card(agent, card->name)->lent = false;
		}
	}
	server_changed(agent);
}

int back_withdraw(struct agent *agent, struct hold *hold, struct gs_err *err)
{
	struct gs_klink *link = kernel_link(agent->kernel);

	if (!link)
		return gs_err_set(err, ENODEV, "the kernel module is not loaded");
	if (hold->state != GS_LENT && hold->state != GS_LENDING)
		return 0;
	return gs_klink_withdraw(link, hold->name, err);
}
