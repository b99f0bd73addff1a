/* SPDX-License-Identifier: Apache-2.0 */
/* Names of containers: <namespace>/<pod>/<container>, as Kubernetes writes them. */
#ifndef GPUSHARE_COMMON_IDENTITY_H
#define GPUSHARE_COMMON_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* How much of a value from outside a message quotes. */
#define GS_QUOTE_MAX 80

/* Strings are its own; all NULL where there is none. */
struct gs_identity {
	char *ns, *pod, *container;
};

/* A copy of its own, of one that is set or not. */
struct gs_identity gs_identity_copy(const struct gs_identity *id);

/* Frees the three strings. */
void gs_identity_free(struct gs_identity *id);
#define cleanup_identity __attribute__((cleanup(gs_identity_free)))

/*
 * Reads "<namespace>/<pod>/<container>" from @len bytes at @text: a DNS-1123 label of at most 63
 * characters, a DNS-1123 subdomain of at most 253, a label. Where @here is given, "_" stands for
 * its namespace or pod. Such a name never becomes a path. -EINVAL with the value (cut) and what
 * is wrong with it.
 */
int gs_identity_parse(const char *text, size_t len, const struct gs_identity *here,
		      struct gs_identity *ret, struct gs_err *err);

/* The same three names, or both unset. */
bool gs_identity_equal(const struct gs_identity *a, const struct gs_identity *b);

/* Is there a name at all? */
static inline bool gs_identity_is_set(const struct gs_identity *id)
{
	return id->ns != NULL;
}

/* "<namespace>/<pod>/<container>"; the caller frees. */
char *gs_identity_text(const struct gs_identity *id);

/* FNV-1a 64 of a text. For names of files, not against anybody. */
uint64_t gs_hash(const char *text);

/* gs_hash() of that text, the folder name in by-name/. */
uint64_t gs_identity_hash(const struct gs_identity *id);

/* Is @s a DNS-1123 label (RFC 1123, at most 63 characters)? */
bool gs_dns_label(const char *s, size_t len);

/*
 * May @id be part of a file name? The characters that runc allows in container ids
 * (letters, digits, '_', '+', '-', '.'), at most 200, not beginning with '.' (no "..", no hidden
 * file) nor ending in ".hook" (the registry has files of that ending).
 */
bool gs_id_valid(const char *id);

/*
 * A value from outside, cut to GS_QUOTE_MAX and with everything unprintable replaced, in double
 * quotes, for a message. The caller frees.
 */
char *gs_quote(const char *value, size_t len);

#endif
