/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants: root-only files that let one pod receive from sources outside itself.
 *
 *   lib_dir/grants/<32 lower-case hex digits>.json   the grantor's alone (agent, gpusharectl)
 *   lib_dir/grants/<same>.bound                      made once by the runtime at first use
 *
 * grant: {"v":1,"kind":"share"|"spot","state":"active"|"revoked","resource":NAME,
 *         "cards":[CARD,...],"sources":["<namespace>/<pod>/<container>",...],
 *         "free":[CARD,...],"devices":[DEVICE,...],
 *         "to":"<namespace>/<pod>/<container>",
 *         "lease":{"boot_id":ID,"deadline_ms":N}}
 *
 * free: optional, kind spot only: those of the cards that come without a source, out of
 * run_dir/cards.json, since nobody holds them (or not all of what their holder holds is meant).
 * devices: optional: of the resource, as the kubelet calls them; each is one container's at a time.
 * to: optional; only that container may use the grant. lease: required for kind spot; deadline in
 * CLOCK_BOOTTIME milliseconds, renewed while the agent lives.
 *
 * bound: {"v":1,"pod_uid":UID,"container":NAME} or, without a CRI, {"v":1,"container_id":ID}.
 */
#ifndef GPUSHARE_GRANT_H
#define GPUSHARE_GRANT_H

#define GS_GRANT_VERSION 1
#define GS_GRANT_DIR "grants" /* in lib_dir, 0700 */
#define GS_GRANT_NAME_LEN 32 /* 128 bits in hex */
#define GS_LEASE_MS 15000
#define GS_LEASE_RENEW_MS 5000

#endif
