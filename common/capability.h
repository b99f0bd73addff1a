/* SPDX-License-Identifier: Apache-2.0 */
/* The capabilities that a borrower may not have: with one it could get out of our hands. */
#ifndef GPUSHARE_COMMON_CAPABILITY_H
#define GPUSHARE_COMMON_CAPABILITY_H

/*
 * If @name, in any case and with or without "CAP_" (so the runtimes take it), is a capability that
 * is refused to borrowers: its name as in "CAP_SYS_ADMIN"; else NULL.
 */
const char *gs_capability_refused(const char *name);

#endif
