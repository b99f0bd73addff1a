/* SPDX-License-Identifier: Apache-2.0 */
/* What the annotations ask for one container. */
#ifndef GPUSHARE_RUNTIME_REQUEST_H
#define GPUSHARE_RUNTIME_REQUEST_H

#include "common/identity.h"
#include "common/sources.h"
#include "runtime/spec.h"
#include "runtime/who.h"

/* Bounds on what a pod's author may write. */
#define REQUEST_SOURCES_MAX 16

struct request {
	struct gs_identity *sources; /* without repeats */
	size_t n_sources;
	char *grant; /* a grant's name, of valid form; NULL: none */
	int64_t vcpu_milli; /* thousandths of a CPU; 0: no limit asked for */
	int64_t vmem_bytes; /* 0: no limit asked for */
};

/* Frees what @request holds. */
void request_free(struct request *request);
#define cleanup_request __attribute__((cleanup(request_free)))

/*
 * Reads the annotations for the container @who (whose identity is set). A value that can't be
 * parsed is -EINVAL with key, value (cut) and what is wrong; -E2BIG: one longer than
 * GS_SOURCES_VALUE_MAX, or too many sources; -ERANGE: a quantity too large. Entries for other
 * containers of the pod are theirs; a malformed entry of the long form that names no container is
 * everybody's.
 */
int request_read(const struct spec *spec, const struct who *who, struct request *ret,
		 struct gs_err *err);

/* More of them are not told: a pod may have thousands. */
#define REQUEST_UNKNOWN_MAX 8

/*
 * Adds a sentence for each annotation of our domain that means nothing to any part of gpushare
 * (misspelt, as a rule), with the key of ours that is nearest to it; REQUEST_UNKNOWN_MAX at most.
 * They are no error: a newer gpushare elsewhere may know them.
 */
void request_unknown_keys(const struct spec *spec, struct gs_strv *ret);

/* Adds a source unless it is there already. -E2BIG: more than REQUEST_SOURCES_MAX. */
int request_add_source(struct request *request, const struct gs_identity *source,
		       struct gs_err *err);

#endif
