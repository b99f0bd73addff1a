/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path patterns of the vendor catalogue, matched byte by byte:
 *
 *   *        any run of characters, also none, but no '/'
 *   ?        one character, but no '/'
 *   [a-c_]   one of them, [!...] or [^...] one of the others; never '/'
 *   {a,b}    a or b, which are patterns themselves and may be empty
 *   \c       the character c
 *
 * Without braces this is fnmatch(3) with FNM_PATHNAME. The braces are why it is not fnmatch:
 * a library lives in one of twenty folders, and written out, the catalogue would be too long to
 * read for people and for a program that starts with every container.
 */
#ifndef GPUSHARE_COMMON_GLOB_H
#define GPUSHARE_COMMON_GLOB_H

#include <stdbool.h>

#include "common/buf.h"

/* Does the whole of @s match @glob, which gs_glob_mistake() has passed? */
bool gs_glob_match(const char *glob, const char *s);

/* The same, with '*', '?' and [...] matching '/' too: for programs that may be in any folder. */
bool gs_glob_match_across(const char *glob, const char *s);

/* Does one of @globs match, as gs_glob_match() and gs_glob_match_across() do? */
bool gs_glob_any(const struct gs_strv *globs, const char *s);
bool gs_glob_any_across(const struct gs_strv *globs, const char *s);

/* What is wrong with the pattern, as in "a '[' without its ']'"; NULL: nothing. */
const char *gs_glob_mistake(const char *glob);

/*
 * Is @path absolute and plain: no empty part, no "." or ".." part, no '/' at the end, and short
 * enough for the kernel (PATH_MAX, each part NAME_MAX)? Any other
 * could mean a file elsewhere than its text says, so it is matched against nothing.
 */
bool gs_path_plain(const char *path);

#endif
