/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of catalogue entries: patterns, and the sections that only the agent reads, so that a
 * mistake in them shows when the file is installed and not when a card is to be lent.
 */
#ifndef GPUSHARE_COMMON_CATALOGUE_CHECK_H
#define GPUSHARE_COMMON_CATALOGUE_CHECK_H

#include "common/buf.h"
#include "common/doc.h"
#include "common/err.h"

/*
 * The string or list of strings at @v as patterns (common/glob.h); the path ones must be absolute
 * and plain. As gs_doc_string() and gs_doc_strings() otherwise.
 */
int gs_check_path_glob(const struct gs_doc *doc, struct js v, const char *key, char **ret,
		       struct gs_err *err);
int gs_check_path_globs(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
			struct gs_err *err);
int gs_check_globs(const struct gs_doc *doc, struct js v, const char *key, struct gs_strv *ret,
		   struct gs_err *err);

/* The sections; {0} where they are absent. The driver's "chrdev" goes to *ret_chrdevs. */
int gs_check_inventory(const struct gs_doc *doc, struct js section, struct gs_err *err);
int gs_check_driver(const struct gs_doc *doc, struct js section, struct gs_strv *ret_chrdevs,
		    struct gs_err *err);
int gs_check_load(const struct gs_doc *doc, struct js section, struct gs_err *err);

#endif
