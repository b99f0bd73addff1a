/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a source: the one live container of a name, and its vendor slice. */
#ifndef GPUSHARE_RUNTIME_SOURCE_H
#define GPUSHARE_RUNTIME_SOURCE_H

#include "common/catalogue.h"
#include "common/config.h"
#include "common/registry.h"
#include "runtime/slice.h"
#include "runtime/who.h"

struct source {
	char *name; /* "<namespace>/<pod>/<container>", for messages */
	struct gs_record record;
	struct spec spec; /* the slice, read again */
	struct slice slice;
	bool scanned; /* no record: read from its config.json, after the next runtime's changes */
	bool same_pod; /* in the target's own pod instance */
	char *card; /* no container's: this card, which the grant names; NULL */
};

/* Frees what @source holds. */
void source_free(struct source *source);

/*
 * Finds the live container @name: in the registry, else (a container older than gpushare) among
 * the bundles beside @bundle and in the config's state_dirs. In the target's own pod only this
 * very pod instance counts. -ENOENT: none lives, or the one that does was given its devices by us
 * and its record is lost; -ENOTUNIQ: two do, both named; else errors of gs_registry_read() and
 * spec_read(): its record can't be read or understood.
 */
int source_find(const struct gs_config *config, const struct gs_catalogue *cat,
		const struct who *me, const char *bundle, const struct gs_identity *name,
		struct source *ret, struct gs_err *err);

/*
 * scan.c: calls @each for every bundle whose config.json says that it is @name and that has no
 * record in the registry. The record is made up from the bundle (role holder, or target where our
 * hook in the spec says that it was given its devices); its spec is the whole config.json. @each
 * may take both over.
 */
void scan_bundles(const struct gs_config *config, const char *bundle,
		  const struct gs_identity *name,
		  void (*each)(struct gs_record *record, struct spec *spec, void *arg), void *arg);

#endif
