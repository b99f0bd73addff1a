// SPDX-License-Identifier: Apache-2.0
/* Tables for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

void ctl_table_add(struct ctl_table *table, const char *text)
{
	gs_strv_take(&table->cells, ctl_printable(gs_strdup(text && *text ? text : "-")));
}

void ctl_table_heading(struct ctl_table *table, const char *const *names)
{
	for (; *names; names++) {
		ctl_table_add(table, *names);
		table->columns++;
	}
}

void ctl_table_lines(const struct ctl_table *table, struct gs_strv *ret)
{
	cleanup_free size_t *widths = gs_calloc(table->columns, sizeof(*widths));
	const struct gs_strv *cells = &table->cells;
	struct gs_buf line = { 0 };

	for (size_t i = 0; i < cells->n; i++) {
		size_t len = strlen(cells->v[i]), column = i % table->columns;

		if (len > widths[column])
			widths[column] = len;
	}
	for (size_t i = 0; i < cells->n; i++) {
		size_t column = i % table->columns;

		if (column + 1 < table->columns) {
			gs_buf_addf(&line, "%-*s  ", (int)widths[column], cells->v[i]);
		} else {
			gs_buf_adds(&line, cells->v[i]);
			gs_strv_take(ret, gs_buf_steal(&line));
		}
	}
	gs_buf_free(&line);
}

void ctl_table_print(const struct ctl_table *table)
{
	cleanup_strv struct gs_strv lines = { 0 };

	ctl_table_lines(table, &lines);
	for (size_t i = 0; i < lines.n; i++)
		puts(lines.v[i]);
}

void ctl_table_free(struct ctl_table *table)
{
	gs_strv_free(&table->cells);
}
