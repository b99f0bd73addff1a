// SPDX-License-Identifier: Apache-2.0
/* Events of the kernel module and of the inventories. */
#include <stdio.h>
#include <string.h>

#include "agent/cards_json.h"
#include "agent/events.h"
#include "agent/hooker.h"
#include "agent/observe.h"
#include "agent/strangers.h"
#include "agent/unseen.h"
#include "common/kname.h"
#include "common/log.h"
#include "common/proc.h"

/* Looking at everything takes a while, and somebody waits. */
#define AFTER_RETURN_MS 200

/* ---- The kernel module. */

static const char trouble[] = "trouble with the kernel module";

static void log_state(const struct gs_kevent *event)
{
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%u", event->pid);
	gs_log_fields(event->state == GS_QUARANTINE ? GS_LOG_ERROR : GS_LOG_INFO, "state",
		      "holding", event->name, "from", gs_kname_state(event->from), "to",
		      gs_kname_state(event->state), "cause", gs_kname_cause(event->cause),
		      event->pid ? "pid" : NULL, pid, "watch", event->watch, NULL);
}

/*
 * How long a return took, by the kernel's times, for we may hear of it late. Without a number where
 * its begin was not seen.
 */
static void note_return(struct hold *hold, const struct gs_kevent *event)
{
	uint64_t begun_ms = hold ? hold->returning_ms : 0, at_ms = event->time_ns / 1000000;
	char ms[24];

	if (hold && event->state == GS_RETURNING)
		hold->returning_ms = at_ms;
	if (event->from != GS_RETURNING || event->cause != GS_BY_RELEASE)
		return;
	(void)snprintf(ms, sizeof(ms), "%llu", (unsigned long long)(at_ms - begun_ms));
	gs_log_fields(GS_LOG_INFO, "released", "holding", event->name,
		      begun_ms && begun_ms <= at_ms ? "after_ms" : NULL, ms, NULL);
}

static void on_state(struct agent *agent, const struct gs_kevent *event)
{
	struct hold *hold = agent_hold(agent, event->name);

	if (!hold) { /* a holding that is younger than our picture */
		log_state(event);
		reconcile_soon(agent, 0);
		return;
	}
	hold->state = event->state;
	hold->since_ms = event->time_ns / 1000000;
	if (event->state != GS_RETURNING)
		log_state(event);
	switch (event->state) {
	case GS_RETURNING:
		hold->seq = event->event_seq;
		hold->drained = false;
		back_begin(agent, hold);
		log_state(event); /* somebody waits: first things first */
		/* not now: the module tells when the last file is closed, also if none was open */
		reconcile_soon(agent, AFTER_RETURN_MS);
		break;
	case GS_IDLE:
		agent_hold_anew(hold, event->event_seq);
		lend_consider(agent);
		break;
	case GS_UNKNOWN:
		inventory_refresh(agent->inventory);
		reconcile_soon(agent, 0);
		back_end(agent, hold);
		break;
	case GS_ACTIVE:
		back_end(agent, hold);
		if (agent->rehook)
			reconcile_soon(agent, 0);
		break;
	default:
		break;
	}
	server_changed(agent);
}

static void on_drained(struct agent *agent, const struct gs_kevent *event)
{
	struct hold *hold = agent_hold(agent, event->name);

	if (!hold || hold->state != GS_RETURNING)
		return;
	hold->drained = true;
	hold->drained_ms = gs_boottime_ms();
	back_step(agent);
}

static void on_event(const struct gs_kevent *event, void *arg)
{
	struct agent *agent = arg;
	/* what the last dump tells already, and perhaps what came after it */
	bool old = event->event_seq <= agent->state.status.event_seq;
	char held[16], ms[16];

	agent->event_ns = uv_hrtime();
	agent->event_seq = event->event_seq;
	switch (event->event) {
	case GS_EV_STATE:
		note_return(agent_hold(agent, event->name), event);
		if (old)
			log_state(event);
		else
			on_state(agent, event);
		break;
	case GS_EV_DRAINED:
		if (!old)
			on_drained(agent, event);
		break;
	case GS_EV_RELEASED:
		(void)snprintf(held, sizeof(held), "%u", event->held);
		(void)snprintf(ms, sizeof(ms), "%u", event->held_ms);
		gs_log_fields(GS_LOG_INFO, "callers go on", "holding", event->name, "callers", held,
			      "held_ms", ms, NULL);
		break;
	case GS_EV_UNHOOKED:
		hooker_forgive(agent->hooker); /* its driver is gone, or comes anew */
		inventory_refresh(agent->inventory);
		reconcile_soon(agent, 0);
		break;
	case GS_EV_STOLEN:
		gs_log_fields(GS_LOG_ERROR, "a borrower's file was used by a process outside of it",
			      "watch", event->watch, NULL);
		break;
	default:
		break;
	}
	agent->event_ns = 0;
	observe_event(agent, event);
}

static void on_resync(void *arg)
{
	struct agent *agent = arg;

	(void)told_over(&agent->told, trouble);
	reconcile_soon(agent, 0);
}

static void on_gone(void *arg)
{
	struct agent *agent = arg;

	hooker_forgive(agent->hooker);
	gs_log_fields(GS_LOG_ERROR, "the kernel module is gone: nothing is lent", NULL);
	reconcile_soon(agent, 0);
}

static void on_trouble(const char *what, void *arg)
{
	struct agent *agent = arg;

	told_log(&agent->told, GS_LOG_ERROR, trouble, NULL, NULL, what);
}

int events_kernel(struct agent *agent, struct gs_err *err)
{
	const struct kernel_ops ops = {
		.event = on_event,
		.resync = on_resync,
		.gone = on_gone,
		.trouble = on_trouble,
		.arg = agent,
	};

	return kernel_new(agent->loop, &ops, &agent->kernel, err);
}

/* ---- Inventories. */

static void on_changed(void *arg)
{
	struct agent *agent = arg;

	struct gs_err err = { 0 };

	agent->cards_changed = true;
	if (!agent->inventory)
		return;
	if (inventory_cards_json(inventory_cards(agent->inventory), agent->config.run_dir, &err) <
	    0)
		gs_log_fields(GS_LOG_ERROR, "cards.json is not written", "why", err.msg, NULL);
	hooker_forgive(agent->hooker); /* a card has come, perhaps with its driver */
	reconcile_soon(agent, 0);
}

/* Somebody nobody knows is on a card that is lent: its holder's silence proves nothing now. */
static void end_lending_to_strangers(struct agent *agent, const struct card *card,
				     const struct load *load)
{
	struct hold *hold = agent_hold_of_card(agent, card->name);
	struct gs_err err = { 0 };

	if (!hold || hold->state != GS_LENT || !strangers_on(agent, card->name, load))
		return;
	if (back_withdraw(agent, hold, &err) < 0)
		told_log(&agent->told, GS_LOG_ERROR, "not taken back", "holding", hold->name,
			 err.msg);
	else
		gs_log_fields(GS_LOG_ERROR,
			      "a process that belongs to nobody known uses a lent card", "card",
			      card->name, "holding", hold->name, NULL);
}

static void on_loaded(const struct card *card, const struct load *load, void *arg)
{
	struct agent *agent = arg;

	lend_loaded(agent, card, load);
	end_lending_to_strangers(agent, card, load);
	unseen_loaded(agent, card, load);
	back_step(agent);
	lend_consider(agent);
}

static void on_failed(const char *vendor, const char *why, void *arg)
{
	(void)arg;
	gs_log_fields(GS_LOG_ERROR, "cards can't be read", "vendor", vendor, "why", why, NULL);
}

int events_inventory(struct agent *agent, struct gs_err *err)
{
	const struct inventory_ops ops = {
		.spawner = agent->spawner,
		.changed = on_changed,
		.complete = on_changed,
		.loaded = on_loaded,
		.failed = on_failed,
		.arg = agent,
	};

	return inventory_new(agent->loop, &agent->config, agent->settings.probe,
			     agent->settings.load_period_ms, &ops, &agent->inventory, err);
}
