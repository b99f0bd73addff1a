/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One vendor's source: its gpushare-probe, what is asked of it, and what happens when it fails.
 * One question at a time, each with a deadline. A probe that misses it, dies or talks rubbish is
 * killed and started anew after a pause that doubles from 1 s to 60 s.
 */
#ifndef GPUSHARE_AGENT_INVENTORY_SOURCE_H
#define GPUSHARE_AGENT_INVENTORY_SOURCE_H

#include <jansson.h>
#include <uv.h>

#include "agent/inventory.h"
#include "agent/probe.h"
#include "agent/vendor_side.h"

struct vendor_source;

struct vendor_source_ops {
	/* The vendor's cards, whose memory goes over to the callee. */
	void (*cards)(struct vendor_source *source, struct card *cards, size_t n, void *arg);
	/* One entry of the answer to a load (agent/probe.h); < 0: it is rubbish. */
	int (*load)(struct vendor_source *source, const json_t *load, struct gs_err *err,
		    void *arg);
	/* Nothing is known of the load of any of its cards. */
	void (*unknown)(struct vendor_source *source, void *arg);
	void (*failed)(struct vendor_source *source, const char *why, void *arg);
	/* Its memory is gone. */
	void (*closed)(void *arg);
	void *arg;
};

/* Starts nothing yet. @side and @text (the entry, for the probe) go over to it. */
struct vendor_source *vendor_source_new(uv_loop_t *loop, struct spawner *spawner, const char *probe,
					const char *file, char *text, struct vendor_side *side,
					const struct vendor_source_ops *ops);

/* Ends the probe; `closed` is called once the loop has closed the handles. */
void vendor_source_free(struct vendor_source *source);

/* What the entry says; as long as the source is. */
const struct vendor_side *vendor_source_side(const struct vendor_source *source);

/* Asks for the cards, soon. */
void vendor_source_refresh(struct vendor_source *source);

/* Asks for all cards' load, unless that is asked for already or there is nobody to ask. */
void vendor_source_poll(struct vendor_source *source);

/* Asks for one card's load before all else. False: nobody can be asked now. */
bool vendor_source_read(struct vendor_source *source, const char *id, enum probe_when when);

/* Cards out of an answer: checked, since a probe may be broken by a library in it. */
int vendor_source_parse_cards(const struct vendor_side *side, const json_t *list, struct card **ret,
			      size_t *ret_n, struct gs_err *err);

/* A load out of an answer into *load; its processes stay as they are where none are told. */
int vendor_source_parse_load(const json_t *obj, struct load *load, struct gs_err *err);

#endif
