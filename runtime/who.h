/* SPDX-License-Identifier: Apache-2.0 */
/* Which container of which pod a spec belongs to, told from the annotations of one vocabulary. */
#ifndef GPUSHARE_RUNTIME_WHO_H
#define GPUSHARE_RUNTIME_WHO_H

#include <stdbool.h>

#include "common/config.h"
#include "common/identity.h"
#include "runtime/spec.h"

struct who {
	bool sandbox; /* the pause container: never a target, never a source */
	struct gs_identity id; /* unset where the vocabulary's keys are absent */
	char *sandbox_id, *pod_uid; /* NULL where absent */
};

/* Frees what @who holds. */
void who_free(struct who *who);
#define cleanup_who __attribute__((cleanup(who_free)))

/*
 * Reads the identity in the vocabulary that the config names; the other one's keys mean nothing,
 * since a pod's author may be able to write them. -EINVAL: a key that stands twice or a name that
 * is malformed.
 */
int who_read(const struct spec *spec, enum gs_cri cri, struct who *ret, struct gs_err *err);

/* Are both containers of the same pod instance (sandbox, else pod UID, else namespace and pod)? */
bool who_same_pod(const struct who *a, const struct gs_identity *b_id, const char *b_sandbox_id,
		  const char *b_pod_uid);

#endif
