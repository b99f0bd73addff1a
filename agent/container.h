/* SPDX-License-Identifier: Apache-2.0 */
/* The node's containers as the registry has them, with what can be seen of each. */
#ifndef GPUSHARE_AGENT_CONTAINER_H
#define GPUSHARE_AGENT_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "agent/card.h"
#include "agent/settings.h"
#include "common/catalogue.h"
#include "common/registry.h"

struct container {
	struct gs_record rec;
	struct gs_hook_record hook; /* pid 0: not seen yet */
	char *cgroup; /* absolute folder; NULL: not seen yet, or gone */
	struct gs_strv cards; /* names, sorted */
	struct gs_strv denied; /* those that the kubelet gave to another one: allocated.h */
	ino_t ino; /* of its record's file, which is never written to once it is there; */
	struct timespec made; /* and since when it is */
	bool deleted; /* `delete` was called */
	bool alive; /* that process runs */
	bool starting; /* it is not to be seen yet, and may come */
	bool inherited; /* those cards are what its sources use */
	bool exempt; /* the operator says that its use of a card is nobody's */
};

struct containers {
	struct container *v;
	size_t n;
	bool incomplete; /* a container was made whose process is not to be seen yet */
	bool leaving; /* one is marked deleted, and its process is there still */
	struct timespec written[2]; /* when the folders were, before they were read */
};

/* Frees what it holds; it is {0} then. */
void containers_free(struct containers *containers);
#define cleanup_containers __attribute__((cleanup(containers_free)))

/*
 * Reads the whole registry below @run_dir. A holder's hook record is completed from its pid file.
 * What is marked deleted and gone is removed from the registry. Records that can't be read are
 * passed over, and told to @broken (may be NULL).
 *
 * @before (may be NULL) is what was read before, with the same cards, catalogue and settings. Of
 * records that are still the same that is taken over, and not read again, which is most of the
 * work; what is left of it can be freed, and is good for nothing else.
 *
 * -EMFILE, -ENFILE, -ENOMEM: nothing can be read now, which is no record's fault. @ret is empty
 * then, and @before is as it was: a container that can't be seen for a moment is not gone.
 */
int containers_read(const char *run_dir, const struct cards *cards, const struct gs_catalogue *cat,
		    const struct settings *settings, struct containers *before,
		    struct containers *ret, void (*broken)(const char *id, const char *why),
		    struct gs_err *err);

/*
 * Is everything still as it was read: is nothing new in the registry, and does everybody who ran
 * still run? That costs a fiftieth of reading it.
 */
bool containers_same(const char *run_dir, const struct containers *containers);

/* The container of that id; NULL: none. */
const struct container *containers_find(const struct containers *containers, const char *id);

/* The container of which the kernel module's watch has that name; NULL: none. */
const struct container *containers_find_watch(const struct containers *containers,
					      const char *name);

/*
 * Which of @cards does the vendor slice @rec->spec use? By the number of a card's own node, or by
 * the value of a selector that its next runtime acts on. "all" stands in every image: it names each
 * card if @all_is_each, which it does where no CRI runs, as for the runtime's reclaim. A slice that
 * lists every card because its container is privileged uses none, unless it received them.
 */
void container_cards(const struct gs_record *rec, const struct cards *cards,
		     const struct gs_catalogue *cat, bool all_is_each, struct gs_strv *ret);

/* How a person calls it: <namespace>/<pod>/<container>, or its id. The caller frees. */
char *container_label(const struct gs_record *rec);

#endif
