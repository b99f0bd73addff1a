/* SPDX-License-Identifier: Apache-2.0 */
/* May a holding be lent, as far as its pods and the operator have a say? */
#ifndef GPUSHARE_AGENT_POLICY_H
#define GPUSHARE_AGENT_POLICY_H

#include "agent/plan.h"

/*
 * Sets lend, why_not and lend_after_ms of @h from the annotations of its holders: every one of them
 * must allow it (or say nothing where settings->lend is the default), and the longest absence that
 * one asks for counts. Targets of other pods in it mean that the card is shared; two pods that both
 * say to hold it, that one of them is an impostor, who names a neighbour's card in its environment.
 */
void policy_lending(const struct containers *containers, const struct settings *settings,
		    struct plan_holding *h);

#endif
