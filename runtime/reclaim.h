/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a lent card back before a container that holds it starts. */
#ifndef GPUSHARE_RUNTIME_RECLAIM_H
#define GPUSHARE_RUNTIME_RECLAIM_H

#include "common/config.h"
#include "common/identity.h"
#include "runtime/slice.h"

/*
 * Looks in run_dir/lent/ and shared/ for cards that the slice holds (by device number, or by the
 * value of a selector that the next runtime @next acts on; NULL: numbers alone) and has them freed:
 * by the agent, or, where none answers, by killing the borrowers' cgroups itself and waiting until
 * they are empty. @who: whose container @id is, unset where that is not known. Nothing lent and
 * nothing shared costs two failed opens.
 * -ETIMEDOUT: not free by CLOCK_BOOTTIME @deadline_ms; the caller's retry finds it further on.
 */
int reclaim(const struct gs_config *config, const struct slice *own, const char *next,
	    const char *id, const struct gs_identity *who, uint64_t deadline_ms,
	    struct gs_err *err);

#endif
