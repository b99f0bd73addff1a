/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a device node open: a walk over /proc/PID/fd. */
#ifndef GPUSHARE_AGENT_PROBE_SCAN_H
#define GPUSHARE_AGENT_PROBE_SCAN_H

#include <sys/types.h>

#include "agent/probe.h"

/* The agent's process; 0: none. */
extern pid_t probe_agent;

/*
 * So many files of one pod are looked at, at most; those that it has beyond are passed over, and
 * the pod is named. Files are counted by pod only once so many of all pods were looked at.
 */
extern size_t probe_scan_pod_files, probe_scan_free_files;

/* A walk ends with -EINTR as soon as this descriptor can be read; -1: none. */
extern int probe_scan_hurry;

/*
 * An open file: of process @pid, descriptor @fd, which is the card's; @procfd is /proc/PID. A file
 * that several descriptors share is told several times.
 */
typedef void (*scan_found)(const struct probe_card *card, pid_t pid, int procfd, const char *fd,
			   void *arg);

/*
 * Calls @found for every open file of a node that is one of the cards' own, in all processes but
 * ourselves and the agent. *ret_unseen gets the cgroups of those pods that have more files than we
 * look at. -E2BIG: so have too many pods, or all together; -EACCES: a process may not be looked at;
 * -EINTR. Nothing is known then.
 */
int probe_scan(const struct probe_card *cards, size_t n, scan_found found, void *arg,
	       struct gs_strv *ret_unseen, struct gs_err *err);

/* Sets those pods of @n loads. */
void probe_scan_unseen(const struct gs_strv *unseen, size_t n, struct probe_load *rets);

/* Fills the processes of @n cards with those that have one of their own nodes open. */
int probe_scan_open(const struct probe_card *cards, size_t n, struct probe_load *rets,
		    struct gs_err *err);

#endif
