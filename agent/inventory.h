/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cards there are, and how busy each is. Vendors' libraries, files and commands are read by a
 * child process (gpushare-probe) with a deadline: one that hangs or dies is killed and started
 * anew, and until it answers nothing is known of its vendor's cards' load. The loop never waits.
 */
#ifndef GPUSHARE_AGENT_INVENTORY_H
#define GPUSHARE_AGENT_INVENTORY_H

#include <sys/types.h>
#include <uv.h>

#include "agent/card.h"
#include "agent/spawner.h"
#include "common/config.h"
#include "common/err.h"

struct inventory;

struct load_process {
	pid_t pid; /* the host's number */
	bool busy_known; /* busy below was told */
	uint64_t memory; /* bytes on the card; 0: not told */
	double busy; /* 0 to 1: what it did from load.busy_since_ms to load.processes_at_ms */
};

/* What was read of one card at one moment. */
struct load {
	uint64_t at_ms; /* CLOCK_BOOTTIME; 0: never read */
	bool known; /* busy below was told; false: the source failed, gave rubbish or can't tell */
	double busy; /* 0 to 1, as told: it may stay at 1 although nobody uses the card */
	bool memory_known; /* memory_used below was told */
	uint64_t memory_used, memory_total; /* bytes; total 0: not told */
	bool processes_known; /* the list below was told, at processes_at_ms */
	uint64_t processes_at_ms; /* the list may be older than the rest: see inventory_read() */
	uint64_t busy_since_ms; /* of the processes' busy; 0: none of them is known */
	struct load_process *processes; /* who has a context, memory or an open file on it */
	size_t n_processes;
	struct gs_strv unseen; /* cgroups of pods of which that list may lack processes */
};

struct inventory_ops {
	/* The set of cards, or what is told of one, changed; inventory_cards() has the new one. */
	void (*changed)(void *arg);
	/* inventory_complete() is true from now on; may be NULL. Told after `changed`, if both. */
	void (*complete)(void *arg);
	/* A card was read: on schedule, or because inventory_read() asked. */
	void (*loaded)(const struct card *card, const struct load *load, void *arg);
	/* A vendor's source failed: @why is a sentence. Once for each time that it begins to. */
	void (*failed)(const char *vendor, const char *why, void *arg);
	void *arg;
	/* Starts the probes; it must outlive the inventory and be attached to its loop. */
	struct spawner *spawner;
};

/*
 * Reads the catalogue of @config and starts looking: cards at once and whenever inventory_refresh()
 * says so, load every @period_ms. @probe is the path of gpushare-probe. -EINVAL: a catalogue with a
 * mistake. The loop and @config must outlive it.
 */
int inventory_new(uv_loop_t *loop, const struct gs_config *config, const char *probe,
		  unsigned int period_ms, const struct inventory_ops *ops, struct inventory **ret,
		  struct gs_err *err);

/* Ends the children and frees it once the loop has closed its handles. NULL is none. */
void inventory_free(struct inventory *inventory);

/* The cards as last told; until the next `changed`. */
const struct cards *inventory_cards(const struct inventory *inventory);

/*
 * Has every source told its cards once, or failed to? Before that a card that is not there is none
 * that has gone.
 */
bool inventory_complete(const struct inventory *inventory);

/* The catalogue that it read. */
const struct gs_catalogue *inventory_catalogue(const struct inventory *inventory);

/* What a vendor's entry says about hooking its driver; NULL: it is not watched. */
struct vendor_driver {
	const char *vendor;
	struct gs_strv hook_nodes; /* globs */
	struct passive_call {
		char *node; /* glob */
		unsigned char magic, nr;
	} * passive;
	size_t n_passive;
};
const struct vendor_driver *inventory_driver(const struct inventory *inventory, const char *vendor);

/* The last reading of the card of that name; NULL: none such. */
const struct load *inventory_load(const struct inventory *inventory, const char *card);

/*
 * Look for cards again, soon. It does so by itself when a node that a vendor's entry lists comes or
 * goes in /dev.
 */
void inventory_refresh(struct inventory *inventory);

/*
 * Read this card's load now, before anything that is due; `loaded` tells, also where there is no
 * answer. For a return: only what costs little. A list of processes that comes out of all of /proc
 * is not made anew, and is the last one's.
 */
void inventory_read(struct inventory *inventory, const char *card);

/* The same with the list of processes, whatever it costs: before a card is lent. */
void inventory_read_all(struct inventory *inventory, const char *card);

/*
 * How long a vendor's source may take for an answer, and six times that for the list of cards;
 * default 5000. Before inventory_new().
 */
extern unsigned int inventory_deadline_ms;

#endif
