/* SPDX-License-Identifier: Apache-2.0 */
/* Specs, catalogues and sources out of texts, for the tests of the runtime's parts. */
#ifndef GPUSHARE_TESTS_SPECS_H
#define GPUSHARE_TESTS_SPECS_H

#include "common/catalogue.h"
#include "runtime/rewrite.h"
#include "runtime/source.h"
#include "runtime/spec.h"

/*
 * A made-up maker whose nodes every host has: cards /dev/zero (c 1:5), /dev/full (c 1:7) and
 * /dev/gone* (nowhere), all cards' /dev/urandom (c 1:9), administration's /dev/random (c 1:8); the
 * variables ACME_VISIBLE (selects; list), ACME_CAPS (list), ACME_MODE (replace), ACME_ORDER
 * (local); files /usr/lib/libacme*, mounts that select; hooks acme-cdi-hook, acme-next-hook and
 * the runtime acme-runtime, which adds the latter itself.
 */
extern const char acme_json[];

/* A second one: cards /dev/tty (c 5:0), variable ZETA_VISIBLE (selects; no word for none). */
extern const char zeta_json[];

/* Reads the spec; fails the test where that is refused. */
void spec_make(struct spec *ret, const char *json);

/* A catalogue of acme and zeta, made in the folder @dir. */
void catalogue_make(struct gs_catalogue *ret, const char *dir);

/* A source ns/pod/@name in the shape that source_find() gives, its slice cut from @json. */
void source_make(struct source *ret, const char *name, const char *json,
		 const struct gs_catalogue *cat);

/* The edited text of @rw, which must be JSON. The caller frees. */
char *rewrite_make(const struct rewrite *rw);

/* Fails unless @err says all of @words (up to NULL). */
__attribute__((sentinel)) void expect_words(const struct gs_err *err, ...);

#endif
