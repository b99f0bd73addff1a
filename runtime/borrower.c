// SPDX-License-Identifier: Apache-2.0
/* Who is a borrower, and what a borrower may not be. */
#include <errno.h>
#include <string.h>

#include "common/capability.h"
#include "common/cleanup.h"
#include "runtime/policy.h"

bool policy_is_borrower(const struct gs_grant *grant, const struct source *sources,
			size_t n_sources)
{
	if (grant->name[0] && grant->kind == GS_GRANT_SPOT)
		return true;
	for (size_t i = 0; i < n_sources; i++)
		if (sources[i].record.role == GS_ROLE_BORROWER)
			return true;
	return false;
}

static int check_capabilities(const struct spec *spec, struct gs_err *err)
{
	static const char *const sets[] = { "bounding", "effective", "permitted", "inheritable",
					    "ambient" };
	struct js caps, set, cap;
	int r = js_member(spec->process, "capabilities", &caps, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < GS_ARRAY_SIZE(sets); i++) {
		struct js_iter it;

		r = js_member(caps, sets[i], &set, err);
		if (r < 0)
			return r;
		it = js_iter(set);
		while (js_next_element(&it, &cap)) {
			cleanup_free char *name = js_string(cap);
			const char *refused = name ? gs_capability_refused(name) : NULL;

			if (refused)
				return gs_err_set(err, EACCES, "a spot container may not have %s",
						  refused);
		}
	}
	return 0;
}

int policy_check_borrower(const struct spec *spec, const struct slice *own,
			  const struct source *sources, size_t n_sources, struct gs_err *err)
{
	static const char *const own_namespaces[] = { "pid", "network", "ipc" };

	if (spec_allows_all(spec))
		return gs_err_set(err, EACCES, "a spot container may not be privileged");
	for (size_t i = 0; i < GS_ARRAY_SIZE(own_namespaces); i++)
		if (policy_is_host_namespace(spec, own_namespaces[i]))
			return gs_err_set(err, EACCES,
					  "a spot container may not use the host's %s namespace",
					  own_namespaces[i]);
	for (size_t i = 0; i < own->n; i++)
		if (own->items[i].kind == SLICE_DEVICE)
			return gs_err_set(err, EACCES,
					  "a spot container may not hold a card of its own (%s)",
					  spec->device[own->items[i].index].path);
	for (size_t i = 0; i < n_sources; i++)
		if (sources[i].same_pod && sources[i].record.role != GS_ROLE_BORROWER)
			return gs_err_set(
				err, EACCES,
				"a spot container may not also receive from %s of its own "
				"pod: member and borrower at once",
				sources[i].name);
	return check_capabilities(spec, err);
}
