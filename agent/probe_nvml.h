/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the NVML source. */
#ifndef GPUSHARE_AGENT_PROBE_NVML_H
#define GPUSHARE_AGENT_PROBE_NVML_H

#include "agent/nvml.h"
#include "agent/probe.h"

/* Loads the library; -ENOENT: there is none, -ENOSYS: it lacks what is needed. */
int probe_nvml_open(const struct vendor_side *side, const char *library, struct nvml **ret,
		    struct gs_err *err);

/* The library's sentence for its error code; never NULL. */
const char *nvml_error(const struct nvml *nvml, int code);

/*
 * Adds the MIG slices of the whole card @parent, which probe->v does not hold, to probe->v. Gives
 * 1 where MIG is on (then only its slices are cards), 0 where it is off or unknown to the card.
 */
int probe_mig_cards(struct probe *probe, const struct probe_card *parent, struct gs_err *err);

#endif
