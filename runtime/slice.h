/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor slice of a spec: what the catalogue names in it, and nothing else. */
#ifndef GPUSHARE_RUNTIME_SLICE_H
#define GPUSHARE_RUNTIME_SLICE_H

#include "common/catalogue.h"
#include "runtime/spec.h"

enum slice_kind { SLICE_DEVICE, SLICE_MOUNT, SLICE_ENV, SLICE_HOOK };

/* One thing of the spec that a vendor's entry names. */
struct slice_item {
	enum slice_kind kind;
	const struct gs_vendor *vendor;
	size_t index; /* into spec->device, ->mount, ->envs, ->hook */
	union {
		const struct gs_node *node;
		const struct gs_mount *mount;
		const struct gs_env *env;
	};
};

struct slice {
	const struct spec *spec;
	struct slice_item *items;
	size_t n;
};

/* Finds the items, in the order of the spec within each kind. @spec and @cat must outlive it. */
void slice_find(const struct spec *spec, const struct gs_catalogue *cat, struct slice *ret);
void slice_free(struct slice *slice);
#define cleanup_slice __attribute__((cleanup(slice_free)))

/*
 * Does the slice hold cards of @vendor (NULL: of any): a device node, or a selector (variable or
 * mount) with a value that means some card?
 */
bool slice_has_cards(const struct slice *slice, const struct gs_vendor *vendor);

/* Does it hold a selector of @vendor with such a value? */
bool slice_selects(const struct slice *slice, const struct gs_vendor *vendor);

/* Is this item a selector with a value that means some card? */
bool slice_item_selects(const struct slice *slice, const struct slice_item *item);

/*
 * The slice as a JSON text in the shape of config.json. The rules in it are exactly those that the
 * spec's own grant for the devices in it; a spec whose rules allow every device keeps just that one
 * rule, as nobody can tell which of the node's cards are its own. One without any rule lists its
 * own devices, not the node's, and keeps what it may do with each.
 */
void slice_text(const struct slice *slice, struct gs_buf *out);

/*
 * One cgroup rule, spelled out in full (runc 1.1 refuses one without access); RULE_ANY as a number
 * is left out, which every runtime reads as a wildcard.
 */
void slice_add_rule(struct gs_buf *out, char type, int64_t major, int64_t minor,
		    unsigned int access);

#endif
