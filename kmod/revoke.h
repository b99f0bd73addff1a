/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking members' mappings of revocable nodes away, so that the first touch of one faults. */
#ifndef GS_KMOD_REVOKE_H
#define GS_KMOD_REVOKE_H

#include <linux/mm_types.h>

#include "gs.h"

struct netlink_ext_ack;

/** gs_revoke_wanted() - has the holding a revocable node? Context: gs_config held. */
bool gs_revoke_wanted(const struct gs_holding *holding);

/**
 * gs_revoke_prepare() - hook what the members' mappings fault by; can they be taken away?
 *
 * Takes nothing away yet.
 * Context: process, gs_hooks and gs_config held; the latter may be given up meanwhile.
 * Return: 0; -EOPNOTSUPP the driver's mappings can't be taken away and held, whoever has them;
 * -EBUSY one is somebody else's too, or private, or it takes too long to look at all of the
 * members' memory; -ENOENT the holding was deleted; -E2BIG; -ENOMEM; else as gs_hook_get().
 */
int gs_revoke_prepare(struct gs_holding *holding, struct netlink_ext_ack *extack);

/**
 * gs_revoke() - take them away
 * @ret_mappings: gets how many
 *
 * The holding is LENDING, and callbacks that have not seen that are over: whoever faults from here
 * on is redirected. A fault that entered the driver before has the lock of its memory, which is
 * taken here for each: when this returns 0, no page is mapped that was not faulted in by a touch.
 * Context: process, gs_config held. Return: as above, and -EAGAIN a mapping has just been made.
 */
int gs_revoke(struct gs_holding *holding, u32 *ret_mappings, struct netlink_ext_ack *extack);

/**
 * gs_revoke_new() - a redirected mmap is over: is the new mapping to be taken away?
 *
 * Context: the caller's own, mmap lock held for writing; gs_fn.inside is counted.
 */
void gs_revoke_new(struct vm_area_struct *vma);

#endif
