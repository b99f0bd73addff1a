/* SPDX-License-Identifier: Apache-2.0 */
/* Refusing a container that names a card which the kubelet did not give to its pod. */
#ifndef GPUSHARE_RUNTIME_CONFIRM_H
#define GPUSHARE_RUNTIME_CONFIRM_H

#include "common/config.h"
#include "common/identity.h"
#include "runtime/slice.h"

/*
 * Where the config says "refuse_unconfirmed": looks in run_dir/cards.json for cards that the slice
 * names (as slice_holds_card() has it, and "all" is each) and asks the agent whether the kubelet
 * gave them to the pod of @who. Waits until CLOCK_BOOTTIME @deadline_ms.
 * -EACCES: it did not. 0 where nobody can tell, too: no list of cards, no agent, or no answer in
 * time. Nothing of ours gives this container its card, and whom the kubelet did give one is not to
 * suffer from what ails us; who uses a card without having it is told by an alert all the same.
 */
int confirm(const struct gs_config *config, const struct slice *own, const char *next,
	    const char *id, const struct gs_identity *who, uint64_t deadline_ms,
	    struct gs_err *err);

#endif
