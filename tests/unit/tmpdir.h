/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary directory for a test, and small files in it. */
#ifndef GPUSHARE_TESTS_TMPDIR_H
#define GPUSHARE_TESTS_TMPDIR_H

#include <stdbool.h>

/* Makes an empty directory with mode 0700; gives its path, which tmpdir_remove() frees. */
char *tmpdir_make(void);

/* Removes @dir with everything in it. */
void tmpdir_remove(char *dir);

/* "@dir/@name", in one of 16 buffers that take turns. */
const char *tmpdir_path(const char *dir, const char *name);

/* Writes @text as the file @name in @dir, making the directories in @name (mode 0700). */
void tmpdir_write(const char *dir, const char *name, const char *text);

/* The bytes of @name in @dir; the caller frees. Fails the test where there is no such file. */
char *tmpdir_read(const char *dir, const char *name);

/* Is there anything of that name in @dir? A dangling link counts. */
bool tmpdir_has(const char *dir, const char *name);

/* How many entries @name in @dir has, without "." and ".."; -1: no such directory. */
int tmpdir_count(const char *dir, const char *name);

#endif
