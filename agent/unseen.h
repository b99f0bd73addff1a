/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Returns that the kernel module can't see: a process that has a live context starts work by a
 * store to a mapping, and where those can't be taken away, only the card's load tells.
 */
#ifndef GPUSHARE_AGENT_UNSEEN_H
#define GPUSHARE_AGENT_UNSEEN_H

#include "agent/agent.h"

/* A reading of a lent card, with what else has to be known of it. Times: CLOCK_BOOTTIME. */
struct unseen_view {
	const struct load *load;
	const bool *member; /* of each process of the load: does a member run it? */
	uint64_t lent_ms; /* since when the card is lent */
	uint64_t from_ms; /* what processes did in a time that began earlier does not count */
	uint64_t borrowed_ms; /* when a borrower was seen there last; 0: never */
};

enum unseen_work {
	UNSEEN_NONE, /* nothing speaks for a user who is back */
	UNSEEN_PROCESS, /* a member's process worked */
	UNSEEN_CARD, /* the card did, for no borrower, and a member may have a process on it */
};

/*
 * Is a member at work? Whatever a card's utilisation says, it is at rest where the processes on it
 * are told and none is a member's; and a moment after a borrower was there it is still his.
 */
enum unseen_work unseen_work(const struct unseen_view *view);

/*
 * Can a user of this card come back by a mere store, unseen by the module and not held? By what the
 * module has of its own nodes, whatever the catalogue says.
 */
bool unseen_card(const struct gs_kstate *state, const struct card *card);

/* May mappings of the card be taken away, as far as the module goes, where its entry says so? */
bool unseen_revocable(struct agent *agent, const struct card *card);

/*
 * Does the module treat the mappings of the card's own nodes as it is told to? While they are being
 * hooked anew for that, by a child, the card must not be lent.
 */
bool unseen_settled(struct agent *agent, const struct card *card);

/*
 * The module refused to lend the holding. If it was to take mappings away, that is not asked of it
 * for these cards any more, and told: they are lent as others are.
 */
void unseen_refused(struct agent *agent, const struct plan_holding *plan, const char *why);

/* A reading of a card came: takes a lent one back whose user seems to be at work. */
void unseen_loaded(struct agent *agent, const struct card *card, const struct load *load);

#endif
