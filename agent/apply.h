/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing the kernel module to where a plan wants it. */
#ifndef GPUSHARE_AGENT_APPLY_H
#define GPUSHARE_AGENT_APPLY_H

#include "agent/inventory.h"
#include "agent/plan.h"
#include "common/klink.h"

struct apply_ops {
	/*
	 * That node of the card is to be hooked; whether it was is seen in the next dump.
	 * @revocable: its users' mappings are to be taken away while it is lent.
	 */
	void (*hook)(const struct card *card, const struct card_node *node, bool revocable,
		     void *arg);
	/* Something that the plan wants was refused. @what: "hook /dev/x", "watch ID", ... */
	void (*refused)(const char *what, const struct gs_err *err, void *arg);
	/*
	 * A borrower runs that may not: its watch was refused, or is revoked. The caller has to
	 * end it.
	 */
	void (*unlawful)(const struct container *borrower, const char *why, void *arg);
	/*
	 * May mappings of the card's own nodes be taken away, where its entry says so? Not if the
	 * module can't, or has refused to. NULL: no.
	 */
	bool (*revocable)(const struct card *card, void *arg);
	/* A node has to be hooked anew, and is away: to be called again when it is back. */
	void (*later)(void *arg);
	void *arg;
};

/*
 * Compares @plan with @state (a dump of the module's) and tells the module the difference, in an
 * order in which nothing is lent that is not guarded: hooks, holdings, members, borrowers; then
 * away with what nobody needs. The watch on a borrower stays as long as that runs. A holding that
 * the plan does not have and that is lent is withdrawn; it goes once it is back. A node that is
 * hooked already is hooked anew where only its mappings are treated otherwise, as soon as it is not
 * lent. Gives true if it told the module anything (@state is old then).
 */
bool apply_plan(struct gs_klink *link, const struct inventory *inventory,
		const struct settings *settings, const struct containers *containers,
		const struct plan *plan, const struct gs_kstate *state,
		const struct apply_ops *ops);

#endif
