/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people: columns as wide as their widest cell, two spaces apart. */
#ifndef GPUSHARE_CTL_TABLE_H
#define GPUSHARE_CTL_TABLE_H

#include <stddef.h>

#include "common/buf.h"

/* Starts with @columns set and all else 0; the first row is the heading. */
struct ctl_table {
	size_t columns;
	struct gs_strv cells;
};

/* Adds a cell, "-" where @text is NULL or empty; ctl_printable() makes it fit for a terminal. */
void ctl_table_add(struct ctl_table *table, const char *text);

/* Adds columns with these headings (NULL at the end), before anything else is added. */
void ctl_table_heading(struct ctl_table *table, const char *const *names);

/* Appends each row as a line, without its newline. */
void ctl_table_lines(const struct ctl_table *table, struct gs_strv *ret);

/* Prints the rows to stdout. */
void ctl_table_print(const struct ctl_table *table);

/* Frees the cells. */
void ctl_table_free(struct ctl_table *table);
#define cleanup_table __attribute__((cleanup(ctl_table_free)))

#endif
