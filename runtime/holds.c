// SPDX-License-Identifier: Apache-2.0
/* Does a vendor slice hold a card that a file of the agent's describes? */
#include <string.h>

#include "common/buf.h"
#include "runtime/holds.h"

static bool has_node(const struct slice *own, json_int_t major, json_int_t minor)
{
	/* a privileged daemon lists every card of the node and was given none of them */
	if (spec_allows_all(own->spec))
		return false;
	for (size_t i = 0; i < own->n; i++) {
		const struct spec_device *d;

		if (own->items[i].kind != SLICE_DEVICE)
			continue;
		d = &own->spec->device[own->items[i].index];
		if (d->type == 'c' && d->major == major && d->minor == minor)
			return true;
	}
	return false;
}

static bool names(const char *list, const char *value, bool all_is_each)
{
	return strcmp(list, "all") == 0 ? all_is_each : gs_commas_have(list, strlen(list), value);
}

static bool selects(const struct slice *own, const char *vendor, const char *value,
		    const char *next, bool all_is_each)
{
	if (!next)
		return false;
	for (size_t i = 0; i < own->n; i++) {
		const struct slice_item *item = &own->items[i];
		const char *to;

		if (strcmp(item->vendor->name, vendor) != 0 || !slice_item_selects(own, item) ||
		    !gs_vendor_next_runtime(item->vendor, next))
			continue;
		if (item->kind == SLICE_ENV &&
		    names(own->spec->envs[item->index].value, value, all_is_each))
			return true;
		if (item->kind != SLICE_MOUNT)
			continue;
		to = strrchr(own->spec->mount[item->index].to, '/');
		if (to && names(to + 1, value, all_is_each))
			return true;
	}
	return false;
}

bool slice_holds_card(const struct slice *own, const json_t *card, const char *next,
		      bool all_is_each)
{
	const char *vendor = json_string_value(json_object_get(card, "vendor"));
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(card, "nodes"), i, v) {
		/* what others share tells nothing of a card; lent/ lists none of that */
		if (!json_is_false(json_object_get(v, "own")) &&
		    has_node(own, json_integer_value(json_object_get(v, "major")),
			     json_integer_value(json_object_get(v, "minor"))))
			return true;
	}
	json_array_foreach(json_object_get(card, "select"), i, v) {
		const char *value = json_string_value(v);

		if (vendor && value && selects(own, vendor, value, next, all_is_each))
			return true;
	}
	return false;
}
