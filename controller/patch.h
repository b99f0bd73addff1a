/* SPDX-License-Identifier: Apache-2.0 */
/* The difference between two versions of a pod as a JSON patch (RFC 6902). */
#ifndef GPUSHARE_CONTROLLER_PATCH_H
#define GPUSHARE_CONTROLLER_PATCH_H

#include <jansson.h>

/*
 * What has to be done to @before to make it @after, which differs in annotations, in resources of
 * containers and init containers and in spec.affinity alone: a list of "add", which replaces what
 * is there; empty where nothing differs. The caller decrefs.
 */
json_t *patch_make(const json_t *before, const json_t *after);

/* Base64 of @json's text, as an AdmissionReview carries a patch; the caller frees. */
char *patch_encode(const json_t *json);

#endif
