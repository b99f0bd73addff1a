/* SPDX-License-Identifier: Apache-2.0 */
/* The names of our annotations: docs/annotations.md. */
#ifndef GPUSHARE_COMMON_ANNOTATION_H
#define GPUSHARE_COMMON_ANNOTATION_H

/*
 * What is wrong with a key that begins as ours do and is none of them (misspelt, as a rule): a
 * sentence, with the one of ours that is nearest to it. NULL: it is ours, or of somebody else. The
 * caller frees.
 */
char *gs_annotation_unknown(const char *key);

#endif
