/* SPDX-License-Identifier: Apache-2.0 */
/* The fence: a privileged target sees the cards of its sources and no other of the node's. */
#ifndef GPUSHARE_RUNTIME_FENCE_H
#define GPUSHARE_RUNTIME_FENCE_H

#include "common/catalogue.h"
#include "runtime/inject.h"
#include "runtime/rewrite.h"

/*
 * Where the target's rules allow every device: takes the catalogue's nodes that are not in
 * @granted out of its devices, and turns allow-all into an allow-list that leaves out exactly the
 * numbers of vendors' nodes (of this host, by path; and of vendors' majors, by /proc/devices).
 * Deny rules behind an allow-all would say the same in three lines, but runc's systemd cgroup
 * driver does not keep them. It is a fence, no wall: see docs.
 * Nothing where the target is not privileged. -EIO: the host's /dev can't be surveyed.
 */
int fence(struct rewrite *rw, const struct gs_catalogue *cat, const struct granted_list *granted,
	  struct gs_err *err);

#endif
