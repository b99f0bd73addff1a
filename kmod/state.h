/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The states of a holding, as a pure function: no kernel in it, so that every pair of state and
 * happening is tested in user space too (tests/unit/test_kmod_state.c).
 */
#ifndef GS_KMOD_STATE_H
#define GS_KMOD_STATE_H

#include "uapi/gpushare.h"

/**
 * enum gs_on - what can happen to a holding
 *
 * @GS_ON_HOOKED: every node that it needs is hooked now.
 * @GS_ON_SILENCE: no touch for lend_after.
 * @GS_ON_TOUCH: a member called the driver.
 * @GS_ON_LEND: the agent asks to lend; calls are redirected from now on.
 * @GS_ON_QUIET: the counts did not change up to that point.
 * @GS_ON_LOUD: they did.
 * @GS_ON_WITHDRAW: the agent takes the card back.
 * @GS_ON_RELEASE: the agent saw the memory come back.
 * @GS_ON_DRAINED: a borrower's last file was closed.
 * @GS_ON_SETTLED: settle_ms after that, and no agent is there.
 * @GS_ON_HOLD_MAX: hold_max after the return.
 * @GS_ON_LOST: a node that it needs has lost its hooks.
 */
enum gs_on {
	GS_ON_HOOKED,
	GS_ON_SILENCE,
	GS_ON_TOUCH,
	GS_ON_LEND,
	GS_ON_QUIET,
	GS_ON_LOUD,
	GS_ON_WITHDRAW,
	GS_ON_RELEASE,
	GS_ON_DRAINED,
	GS_ON_SETTLED,
	GS_ON_HOLD_MAX,
	GS_ON_LOST,
	__GS_ON_MAX,
};

/* What else the next state depends on. */
#define GS_FACT_BORROWERS (1u << 0) /* a borrower names the holding, revoked or not */
#define GS_FACT_FILES (1u << 1) /* borrowers have open files on its cards */
#define GS_FACT_UNHOOKED (1u << 2) /* not every node is hooked */

/**
 * gs_state_next() - where a holding goes from here
 * @state: where it is
 * @on: what happened
 * @facts: GS_FACT_* bits that are true now
 *
 * Return: the next state; @state itself when @on changes nothing.
 */
enum gs_state gs_state_next(enum gs_state state, enum gs_on on, unsigned int facts);

/**
 * gs_state_cause() - the cause that a change by @on is reported with
 * @on: what happened
 *
 * Return: one of enum gs_cause.
 */
enum gs_cause gs_state_cause(enum gs_on on);

#endif
