/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's whole state, owned by the loop's one thread. Everything in here can be lost at any
 * moment: it is worked out again from the registry, the kernel module, the grants and the files in
 * lent/ (reconcile.c), which is what happens after a kill -9.
 */
#ifndef GPUSHARE_AGENT_AGENT_H
#define GPUSHARE_AGENT_AGENT_H

#include <uv.h>

#include "agent/container.h"
#include "agent/inventory.h"
#include "agent/kernel.h"
#include "kube/kube.h"
#include "agent/plan.h"
#include "agent/settings.h"
#include "agent/told.h"
#include "common/config.h"

struct ends;
struct allocations;
struct evictions;
struct hooker;
struct http;
struct metrics;
struct notify;
struct plugins;
struct pods;
struct publisher;
struct seller;
struct server;
struct spawner;

/* What the agent remembers of a holding beside what the plan and the module have of it. */
struct hold {
	gs_kname name;
	unsigned int state; /* enum gs_state */
	uint64_t seq; /* what LEND or RELEASE asks for */
	uint64_t since_ms; /* CLOCK_BOOTTIME of the last change of state */
	uint64_t returning_ms; /* when its last return began; 0: none was seen */
	bool drained; /* RETURNING: no borrower has a file open */
	uint64_t drained_ms; /* since when */
	uint64_t starting_until_ms; /* a holder is about to start: not lent before */
	bool alerted; /* that two pods claim its cards was told */
	uint64_t asked_ms; /* when its cards' processes were asked for; 0: not since it is idle */
	uint64_t looked_ms; /* when it was lent: since when its users' work speaks against that */
	uint64_t sampled_ms; /* when mappings were taken away first since it is idle; 0: not */
	uint64_t sample_ms; /* when that is to be done next */
	char why_not[160]; /* why it is not lent, for people; "": it may be */
};

/* A number of bytes that nobody told. */
#define GS_UNTOLD UINT64_MAX

/* What the agent remembers of a card. */
struct seen_card {
	char *name;
	uint64_t quiet_since_ms; /* CLOCK_BOOTTIME; since then all readings were quiet; 0: not */
	char *unrevocable; /* why its mappings are not taken away, though its entry says so; NULL */
	uint64_t borrowed_ms; /* when somebody was seen to borrow it last; 0: never */
	uint64_t memory_before; /* used when it was lent; GS_UNTOLD: not known */
	bool lent; /* there is a file in lent/ for it */
	uint64_t cleared_ms; /* of that list of processes nobody was a stranger; */
	uint64_t cleared_by_ms; /* by that reading of the registry: see strangers.c */
};

struct agent {
	uv_loop_t *loop;
	struct gs_config config;
	struct settings settings;
	uint64_t host_pid_ns;

	struct spawner *spawner; /* starts our children */
	struct inventory *inventory;
	struct kernel *kernel;
	struct hooker *hooker; /* has the module hook drivers */
	struct kube *kube; /* NULL: no Kubernetes */
	struct pods *pods;
	struct seller *seller; /* of CPU and memory; NULL: nothing is sold */
	struct publisher *publisher; /* of the node's picture; NULL: it is for the node alone */
	bool kube_ok; /* it answers */
	struct metrics *metrics;
	struct http *http;
	struct notify *notify;
	struct server *server;
	struct evictions *evictions;
	struct told told; /* what went wrong, and is in the log */
	struct plugins *plugins; /* NULL: none are wanted; */
	struct allocations *allocations; /* then nobody is asked who holds what, either */
	struct ends *ends; /* of containers' processes; NULL: none was there yet */

	/* Made anew by each reconcile(). */
	struct containers containers;
	struct plan plan;
	struct gs_kstate state;

	struct hold *holds;
	size_t n_holds;
	struct seen_card *cards;
	size_t n_cards;

	uv_timer_t reconcile_timer, back_timer, lease_timer, revoke_timer;
	struct gs_strv revoke; /* cards whose grants are to be revoked */
	uint64_t forget_ms; /* when to look for grants that nobody needs */
	uv_fs_event_t registry[3]; /* containers/, deleted/, and where that comes and goes */
	uint64_t registry_read_ms;
	bool cards_changed; /* since it was read */
	uint64_t looked_ms; /* when everything was looked at */
	bool asked; /* somebody wants that again */
	bool rehook; /* so does a node that is away, when it is back */
	bool blind; /* the kernel tells of no change of the registry */
	bool childless; /* the spawner has died: no card can be read, and no driver hooked */
	uint64_t event_seq; /* of the last event that came */
	uint64_t event_ns; /* uv_hrtime() when the event that is being handled was read; else 0 */
};

/* The record of the holding of that name; NULL: none. */
struct hold *agent_hold(struct agent *agent, const char *name);

/* Its state is another, or anew, by the event of that number: what was seen while idle is over. */
void agent_hold_anew(struct hold *hold, uint64_t seq);

/* The record of the holding that the plan has for that card; NULL: none. */
struct hold *agent_hold_of_card(struct agent *agent, const char *card);

/* The record of the card of that name, made where there was none. */
struct seen_card *agent_card(struct agent *agent, const char *name);

/*
 * Is the card lent, or on its way there or back? By whatever holding: that of a container which is
 * gone already may still be returning.
 */
bool agent_away(struct agent *agent, const char *card);

/* ---- reconcile.c */

/* Starts and stops what makes it happen by itself: changes of the registry, and time. */
int reconcile_start(struct agent *agent, struct gs_err *err);

/* Frees what it keeps. */
void reconcile_free(struct agent *agent);

/* Reads everything, plans, tells the module, and looks after who may not run. */
void reconcile(struct agent *agent);

/* The same, soon: several reasons in one moment are one. */
void reconcile_soon(struct agent *agent, unsigned int ms);

/* Reads anew what the module counts (touches, callers that are held), and each holding's state. */
void reconcile_counts(struct agent *agent);

/* ---- lend.c */

/* Looks at every holding that is idle, and lends what may be lent. */
void lend_consider(struct agent *agent);

/*
 * Is there a member whose touches the module can't see (its process is not known yet, or its watch
 * was refused)? Silence proves nothing then.
 */
bool lend_unwatched(const struct agent *agent, const struct plan_holding *plan);

/* A reading of a card came: keeps count of how long it has been quiet. */
void lend_loaded(struct agent *agent, const struct card *card, const struct load *load);

/*
 * Lends this holding now, whatever its load and its pod say (the operator's word), if it is idle.
 * -EAGAIN: it is not, or was touched meanwhile.
 */
int lend_now(struct agent *agent, struct hold *hold, struct gs_err *err);

/* ---- back.c */

/* The holding is RETURNING: makes its borrowers go; when they have, the held callers go on. */
void back_begin(struct agent *agent, struct hold *hold);

/* Is any return not over: may a user be held? */
bool back_waits(const struct agent *agent);

/* Goes on with every return that is not over; called often while there is one. */
void back_step(struct agent *agent);

/*
 * It came back, and the event was lost: all is over by now. The grants on its cards have ended, and
 * who borrowed them, dead or alive, has to go with his pod.
 */
void back_unseen(struct agent *agent, const struct gs_kholding *k);

/* The holding is back, or was never away: forgets that its cards are lent. */
void back_end(struct agent *agent, struct hold *hold);

/* Takes it back from its borrowers without a touch. Success where it is not lent at all. */
int back_withdraw(struct agent *agent, struct hold *hold, struct gs_err *err);

/* ---- evict.c */

/* Ends a borrower and all that belongs to it. Once begun it goes on until nothing of it is left. */
void evict(struct agent *agent, const struct container *borrower, const char *why);

/* Is that very container being ended, or was it? One made anew under its id is another. */
bool evicting(const struct agent *agent, const struct container *borrower);

/* Forgets those that are gone, and that the registry has no longer. */
void evictions_forget(struct agent *agent);

/* Makes, and frees, the list of those. */
void evictions_new(struct agent *agent);
void evictions_free(struct agent *agent);

/* ---- lease.c */

/* Renews the leases of grants whose cards are lent, and lets the others run out. */
void lease_renew(struct agent *agent);

/* Revokes every spot grant of one of the cards, as soon as no user waits for anything. */
void lease_revoke(struct agent *agent, const struct gs_strv *cards);

/* Does so at once with what is still to be revoked: before a card is lent. */
void lease_revoke_now(struct agent *agent);

/* ---- hooks.c */

/* Makes what has drivers hooked. */
void hooks_start(struct agent *agent);

/* Has this node of the card hooked. Whether it was is seen in the next dump: it may take long. */
void hooks_want(struct agent *agent, const struct card *card, const struct card_node *node,
		bool revocable);

/* ---- lent.c: the files in lent/ (include/gpushare/agent.h) */

/* Writes the card's file anew, with the cgroups of those who borrow it now. */
int lent_write(struct agent *agent, const struct card *card, struct gs_err *err);
void lent_remove(struct agent *agent, const char *card);

/* Does somebody run who borrows that card? */
bool lent_borrowed(const struct agent *agent, const char *card);

/* What the files say of cards that were lent before this agent started. */
void lent_read(struct agent *agent);

/* ---- server.c, ops.c */

/* Opens the socket. -EADDRINUSE: another agent answers there. */
int server_start(struct agent *agent, struct gs_err *err);
void server_stop(struct agent *agent);

/* Something changed: whoever waits for that gets an answer, soon and not from within the call. */
void server_changed(struct agent *agent);

#endif
