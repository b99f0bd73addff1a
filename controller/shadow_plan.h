/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which shadow pods there should be: a pure function of the pods. A share pod that the scheduler
 * can't place for want of a share needs one, unless a shadow pod that is on its way serves it too;
 * a shadow pod that nobody needs goes, at once while it holds no card, else after a quiet time. One
 * is not needed by whom it did not help; after two of them there is a pause, which grows.
 */
#ifndef GPUSHARE_CONTROLLER_SHADOW_PLAN_H
#define GPUSHARE_CONTROLLER_SHADOW_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A share pod, or a shadow pod, as far as it matters here. All strings are its own; "" is none. */
struct shadow_pod {
	char *namespace, *name, *uid, *version;
	char *node; /* "": not placed yet */
	char *account; /* user_id, or else the namespace */
	char *place; /* a hash of where it may be: selectors, affinity, tolerations, ... */
	char *made; /* creationTimestamp: sorts as text */
	char *why; /* what the scheduler says of one that it can't place; "": nothing (yet) */
	char *of; /* a shadow pod's: the UID of the pod that it was made for */
	unsigned int cards; /* or shares, that it asks for */
	bool over; /* it has ended; a shadow pod: or is being deleted */
	bool ending; /* a share pod: it is being deleted, and uses its card until it has ended */
	bool runs; /* a shadow pod: its containers do */
	bool too_large; /* a share pod's: what a shadow pod would inherit; .like is NULL */
	json_t *like; /* a share pod's: what a shadow pod for it inherits (shadow_make.h) */
	/* Kept by whoever plans, from one plan to the next: */
	uint64_t since; /* a shadow pod: since when it runs, or is on its node; 0: it is on none */
	bool ran; /* a shadow pod: .since is since when it runs */
	uint64_t quiet; /* a shadow pod: since when nobody uses it; 0: somebody does */
	uint64_t later; /* a share pod: nothing is made for it before; a shadow pod: it stays */
	bool asked; /* one is being made for it, or it is being deleted */
	bool unhelped; /* a share pod: the one that was made for it did not help */
	unsigned int vain; /* a share pod: so many that did not help have gone */
	char *told; /* a share pod: what its Event said last; NULL: none */
};

struct shadow_rules {
	unsigned int share; /* pods on one card */
	unsigned int account_cards; /* 0: any number */
	uint64_t quiet_ms;
};

enum shadow_act { SHADOW_MAKE, SHADOW_DELETE, SHADOW_TELL };

struct shadow_step {
	enum shadow_act act;
	struct shadow_pod *pod; /* for whom, which, whom */
	char *text; /* SHADOW_TELL: a sentence; SHADOW_DELETE: why */
};

struct shadow_plan {
	struct shadow_step *v;
	size_t n;
	size_t waiting; /* share pods that need one */
	uint64_t next_ms; /* when to plan again though nothing came; 0: no need to */
};

/*
 * Plans at @now (milliseconds of any clock, not 0). Sets .since and .quiet of shadow pods. The plan
 * holds pointers to the pods.
 */
void shadow_plan(struct shadow_pod *const *shares, size_t n_shares,
		 struct shadow_pod *const *shadows, size_t n_shadows,
		 const struct shadow_rules *rules, uint64_t now, struct shadow_plan *ret);
void shadow_plan_free(struct shadow_plan *plan);

#endif
