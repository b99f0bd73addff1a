/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kubelet gave to whom: its last answers, and what they say of cards and containers. Where
 * it told of a card once, nobody else's word counts for it.
 */
#ifndef GPUSHARE_AGENT_ALLOCATED_H
#define GPUSHARE_AGENT_ALLOCATED_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/card.h"
#include "agent/container.h"
#include "agent/kubelet.h"
#include "common/catalogue.h"
#include "common/identity.h"

struct allocated {
	bool known; /* it answered both questions, once at least */
	uint64_t asked_ms; /* CLOCK_BOOTTIME of the question that was answered last; */
	uint64_t since_ms; /* of the first that was answered so */
	struct kubelet_uses uses, all; /* who has what; what there is to be had */
};

/* Whose a card is, by the kubelet. */
enum allocated_state {
	ALLOCATED_UNKNOWN, /* it never told, or does not know that card */
	ALLOCATED_FREE,
	ALLOCATED_TAKEN,
};

/* Frees what it holds; it is {0} then. */
void allocated_free(struct allocated *allocated);

/*
 * The kubelet's answers to questions of CLOCK_BOOTTIME @asked_ms, copied. True: something is
 * otherwise than it was.
 */
bool allocated_set(struct allocated *allocated, const struct kubelet_uses *uses,
		   const struct kubelet_uses *all, uint64_t asked_ms);

/*
 * Does the kubelet know its pods? One that has just started lists none of the API server's until it
 * has heard of them, which takes as long as that is slow or away: they run all the same, and what
 * is missing in @uses says nothing. So it has to know at least one pod of those that run here.
 */
bool allocated_knows_pods(const struct kubelet_uses *uses, const struct containers *containers);

/*
 * Has it told the same for a while? One that has just started may not know its pods yet: what is
 * missing in its answer counts only then.
 */
bool allocated_settled(const struct allocated *allocated);

/*
 * Whose is the card? The kubelet calls it by its id, its UUID, or by one of them with "::" and a
 * number behind (one of several users of the same card).
 */
enum allocated_state allocated_state(const struct allocated *allocated,
				     const struct gs_catalogue *cat, const struct card *card);

/* Has that container the card? */
bool allocated_has(const struct allocated *allocated, const struct gs_catalogue *cat,
		   const struct gs_identity *who, const struct card *card);

/* Has any container of its pod the card? */
bool allocated_pod_has(const struct allocated *allocated, const struct gs_catalogue *cat,
		       const struct gs_identity *who, const struct card *card);

/* Has its pod the card, and nobody else any part of it? */
bool allocated_pod_alone(const struct allocated *allocated, const struct gs_catalogue *cat,
			 const struct gs_identity *who, const struct card *card);

/* The devices of @resource that the container has; NULL: none. As long as @allocated. */
const struct gs_strv *allocated_ids(const struct allocated *allocated,
				    const struct gs_identity *who, const char *resource);

/*
 * Moves cards of holders to whom the kubelet did not give them to what they are denied: a name in
 * an environment makes nobody a holder. Not before the answer has settled, not of who is of no pod
 * or younger than the answer, nor cards that the kubelet does not know. What it gave to somebody by
 * now is his at once.
 */
void allocated_confirm(const struct allocated *allocated, const struct gs_catalogue *cat,
		       const struct cards *cards, struct containers *containers);

#endif
