/* SPDX-License-Identifier: Apache-2.0 */
/* Who may receive what (design: same pod always, anything else by grant). */
#ifndef GPUSHARE_RUNTIME_POLICY_H
#define GPUSHARE_RUNTIME_POLICY_H

#include "common/config.h"
#include "common/grant.h"
#include "runtime/request.h"
#include "runtime/source.h"

/*
 * Completes the request from its grant: a grant that a device plugin handed to this very container
 * (it has a resource name), or that names it as its only user, brings its sources along. Any other
 * grant is just a permission. A grant for another container is none for this one and taken out of
 * @req, since a pod annotation reaches all of the pod; -EACCES where @req has sources of its own.
 * Gives the grant ({0} where the request has none, or has none any more). Errors of
 * gs_grant_read(), gs_grant_in_force() and request_add_source().
 */
int policy_read_grant(const struct gs_config *config, const struct who *me, struct request *req,
		      struct gs_grant *ret, struct gs_err *err);

/*
 * May @me ask for the container @name at all? Asked before it is looked for: what there is in other
 * pods is nobody's business who may not receive from them, nor is searching the node for it.
 * -EACCES.
 */
int policy_may_ask(const struct gs_config *config, const struct who *me,
		   const struct gs_grant *grant, const struct gs_identity *name,
		   struct gs_err *err);

/*
 * May the container with @spec receive from @sources? -EACCES with a message that says which source
 * and why not. Binds nothing.
 */
int policy_check(const struct gs_config *config, const struct spec *spec,
		 const struct gs_grant *grant, const struct source *sources, size_t n_sources,
		 struct gs_err *err);

/* Is the target a borrower: by a spot grant, or since one of its sources is one? */
bool policy_is_borrower(const struct gs_grant *grant, const struct source *sources,
			size_t n_sources);

/*
 * What a borrower may not be: privileged, in a namespace of the host, holder of a capability that
 * lets it out, member of a holding. -EACCES names it.
 */
int policy_check_borrower(const struct spec *spec, const struct slice *own,
			  const struct source *sources, size_t n_sources, struct gs_err *err);

/*
 * Rootless callers (runtime in another user namespace than the host's) and containers with a user
 * namespace of their own get no devices: nodes would be bind-mounted from the host and belong to
 * nobody there. -EPERM names which.
 */
int policy_check_user_namespace(const struct spec *spec, struct gs_err *err);

/*
 * Is the spec's namespace of @type ("pid", "network", as in config.json) the host's: none of its
 * own, or a path that leads there or nowhere?
 */
bool policy_is_host_namespace(const struct spec *spec, const char *type);

/* Does the spec join another container's PID namespace (shareProcessNamespace), or the host's? */
bool policy_shares_pid_namespace(const struct spec *spec);

#endif
