/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a vendor's catalogue entry that the agent and its probe use: what counts cards,
 * watches the driver and measures load. gpushare-vendors(5) describes the keys.
 */
#ifndef GPUSHARE_AGENT_VENDOR_SIDE_H
#define GPUSHARE_AGENT_VENDOR_SIDE_H

#include <stdbool.h>

#include "agent/inventory.h"
#include "common/buf.h"
#include "common/catalogue.h"
#include "common/err.h"

enum inventory_source { INVENTORY_NONE, INVENTORY_NVML, INVENTORY_FILES, INVENTORY_COMMAND };
enum load_source { LOAD_NONE, LOAD_NVML, LOAD_FILES, LOAD_FDINFO, LOAD_COMMAND };
enum process_source { PROCESSES_NVML, PROCESSES_FDINFO, PROCESSES_OPEN_FILES };

/* A command, and the text in its output that a number follows. argv.n 0: absent. */
struct number_of {
	struct gs_strv argv; /* templates */
	char *after;
};

struct vendor_side {
	char *name;
	struct gs_catalogue rules; /* one vendor, of which only nodes, roots and chrdevs are set */

	struct {
		enum inventory_source source;
		char *library;
		bool mig;
		char *cards; /* glob of the cards' folders */
		struct gs_strv field_names, field_files; /* pairs */
		struct gs_strv argv, columns;
		char *separator; /* NULL: white space */
		unsigned int skip_lines;
		struct gs_strv nodes; /* templates ('/' first) and globs below the folder */
		char *id, *select; /* templates; select NULL: no variable selects */
	} inventory;

	struct vendor_driver driver; /* vendor NULL: no such section */
	struct gs_strv revocable; /* globs */
	unsigned int settle_ms;

	struct {
		enum load_source source;
		enum process_source processes;
		char *library;
		char *busy, *used,
			*total; /* files below the card's folder; the last two may be NULL */
		double busy_max;
		struct gs_strv engines, memory; /* globs; empty: all */
		struct number_of busy_of, used_of, total_of;
	} load;
};

/*
 * Reads the text of a catalogue's file; @file is for messages. -EINVAL: a mistake in what is read
 * here (the catalogue has found it before, unless the file was changed since).
 */
int vendor_side_parse(struct vendor_side *side, const char *file, const char *text, size_t len,
		      struct gs_err *err);

/* Frees what it holds; it is {0} then. */
void vendor_side_free(struct vendor_side *side);
#define cleanup_vendor_side __attribute__((cleanup(vendor_side_free)))

/* The only vendor of its rules. */
const struct gs_vendor *vendor_side_rules(const struct vendor_side *side);

#endif
