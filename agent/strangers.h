/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on a card that belong to no container that may be there. */
#ifndef GPUSHARE_AGENT_STRANGERS_H
#define GPUSHARE_AGENT_STRANGERS_H

#include "agent/agent.h"

/*
 * Does the reading tell of a process that is in no container of the registry that uses the card,
 * and in no cgroup that the operator exempts? Such a use is not seen by the kernel module: the card
 * is not lent, and taken back. False where the source names no processes.
 */
bool strangers_on(struct agent *agent, const char *card, const struct load *load);

/*
 * Is the list of processes perhaps not complete because a pod has more open files than the probe
 * looks at, and does a container of that pod use the card? Cards of others are not concerned: what
 * was not given to a pod it has not open, unless it is privileged, and then it could hide anyway.
 */
bool strangers_unseen(const struct agent *agent, const char *card, const struct load *load);

/* The container whose process that is, by its PID namespaces and by its cgroup; NULL: nobody's. */
const struct container *container_of_process(const struct agent *agent, pid_t pid);

#endif
