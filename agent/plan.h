/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel module should know, worked out from what the registry and the inventories say.
 * A pure function: it asks nobody and changes nothing. Whatever happened before, a fresh agent with
 * the same registry makes the same plan, and apply.h brings the kernel there.
 */
#ifndef GPUSHARE_AGENT_PLAN_H
#define GPUSHARE_AGENT_PLAN_H

#include "agent/card.h"
#include "agent/container.h"
#include "agent/settings.h"
#include "common/kmsg.h"

/* A holding: those containers that use the same cards. */
struct plan_holding {
	gs_kname name;
	struct gs_strv cards; /* names, sorted */
	/* Ids of containers, those too whose process is not seen yet. None: nobody holds it. */
	struct gs_strv members;
	uint32_t *devs; /* own nodes of the cards and the shared ones, sorted */
	size_t n_devs;
	unsigned int lend_after_ms, settle_ms;
	bool lend; /* may it be lent? */
	const char *why_not; /* if not: a sentence */
	bool too_short; /* its pod named a shorter time than any absence: that counts instead */
	bool claimed_twice; /* by two pods: one of them is an impostor */
};

/* A watch on one container. */
struct plan_watch {
	gs_kname name;
	const struct container *container; /* borrowed */
	unsigned int role; /* enum gs_role */
	bool by_cgroup; /* its PID namespace is another's too */
	struct gs_strv holdings; /* names, sorted */
};

struct plan {
	struct plan_holding *holdings;
	struct plan_watch *watches;
	size_t n_holdings, n_watches;
};

/* Frees what it holds; it is {0} then. */
void plan_free(struct plan *plan);
#define cleanup_plan __attribute__((cleanup(plan_free)))

/*
 * Makes the plan. @kernel is what the module knows now: a holding of the same nodes keeps its name
 * when the container that it was named for is gone. @host_pid_ns is the inode of the PID namespace
 * that no watch may be about. @free: names of cards that nobody holds and that may be lent as they
 * are; one that a container uses all the same is that container's.
 */
void plan_make(const struct containers *containers, const struct cards *cards,
	       const struct settings *settings, const struct gs_kstate *kernel,
	       uint64_t host_pid_ns, const struct gs_strv *free, struct plan *ret);

/* The holding of that name; that has the card; NULL: none. */
const struct plan_holding *plan_holding(const struct plan *plan, const char *name);
const struct plan_holding *plan_holding_of_card(const struct plan *plan, const char *card);

/* Are the nodes that the module has for a holding those of the plan? */
bool plan_same_devs(const struct plan_holding *h, const struct gs_kholding *k);

/* The watch of that container's id; NULL: none. */
const struct plan_watch *plan_watch(const struct plan *plan, const char *id);

#endif
