/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets outside the pod whose source no longer has its card: share pods whose shadow pod is gone,
 * and whoever else received by a grant or an annotation. The card is somebody else's by then, or
 * will be, and must not be used by both.
 */
#ifndef GPUSHARE_AGENT_ORPHANS_H
#define GPUSHARE_AGENT_ORPHANS_H

#include "agent/agent.h"

/*
 * Ends those that the kubelet's last answer, which has settled (allocated_settled()), leaves
 * without a source; of a card that nobody has, only share pods: a source may hold it in a way that
 * the kubelet does not tell.
 */
void orphans_end(struct agent *agent);

/*
 * A container of the pod of @asker is about to start with that card. Ends who uses it without a
 * source, if the kubelet says that it gave the card to that pod, and to it alone; @first: it is
 * asked anew for that. True: that is not over yet. Whoever can't be told from its answer stays.
 */
bool orphans_wait(struct agent *agent, const struct gs_identity *asker, const char *card,
		  bool first);

/*
 * Keeps the files in shared/ (include/gpushare/agent.h): one for each card that a target outside
 * its source's pod uses, so that the runtime asks before another container starts with it.
 */
void orphans_mark(struct agent *agent);

#endif
