// SPDX-License-Identifier: Apache-2.0
/* Cards and load from the output of vendors' commands. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* The next column of a line that is taken apart; NULL: there is none. */
static char *next_column(char **line, const char *separator)
{
	char *s = *line, *end;

	if (!s)
		return NULL;
	if (separator && separator[0]) {
		end = strstr(s, separator);
		*line = end ? end + strlen(separator) : NULL;
	} else {
		s += strspn(s, " \t");
		if (!*s)
			return NULL;
		end = strpbrk(s, " \t");
		*line = end ? end + 1 : NULL;
	}
	if (end)
		*end = '\0';
	s += strspn(s, " \t");
	for (end = s + strlen(s); end > s && isspace((unsigned char)end[-1]); end--)
		end[-1] = '\0';
	return s;
}

static int read_card(const struct vendor_side *side, struct probe_card *card, char *line,
		     struct gs_err *err)
{
	cleanup_free char *copy = gs_strdup(line);
	const char *pci;
	int r;

	for (size_t i = 0; i < side->inventory.columns.n; i++) {
		const char *value = next_column(&line, side->inventory.separator);

		if (!value)
			return gs_err_set(err, EPROTO, "a line of %zu columns: \"%.80s\"", i, copy);
		fields_set(&card->fields, side->inventory.columns.v[i], value);
	}
	pci = fields_get(&card->fields, "pci");
	card->folder = pci ? probe_pci_folder(pci) : NULL;
	r = probe_card_add_listed(side, card, err);
	return r < 0 ? r : probe_card_finish(side, card, err);
}

int probe_command_cards(struct probe *probe, struct gs_err *err)
{
	const struct vendor_side *side = &probe->side;
	const char *name = side->inventory.argv.v[0];
	cleanup_buf struct gs_buf out = { 0 };
	char *line, *end;
	unsigned int skip = side->inventory.skip_lines;
	int r = probe_run(&side->inventory.argv, probe->command_ms, &out, err);

	/* No program and no driver: none of this vendor's cards is in this machine. */
	if (r == -ENOENT && !probe_driver_there(side))
		return 0;
	if (r < 0)
		return r;
	if (out.data && strlen(out.data) != out.len)
		return gs_err_set(err, EPROTO, "%s prints no text", name);
	for (line = out.data; r == 0 && line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (skip) {
			skip--;
			continue;
		}
		if (!line[strspn(line, " \t\r")])
			continue;
		if (probe->n == PROBE_CARDS_MAX)
			return gs_err_set(err, E2BIG, "%s: more than %d cards", name,
					  PROBE_CARDS_MAX);
		probe->v = gs_grow(probe->v, probe->n, sizeof(*probe->v));
		probe->v[probe->n] = (struct probe_card){ .index = -1 };
		r = read_card(side, &probe->v[probe->n++], line, err);
	}
	return r < 0 ? gs_err_prefix(err, "%s", name) : 0;
}

/* What a unit multiplies, given where it may stand; 1: none. Vendors mean powers of 1024. */
static double unit_at(const char *s)
{
	static const char letters[] = "kmgt";
	double unit = 1;
	const char *p;

	s += strspn(s, " \t(");
	p = *s ? strchr(letters, tolower((unsigned char)*s)) : NULL;
	if (!p || (s[1] != 'B' && s[1] != 'b' && s[1] != 'i'))
		return 1;
	for (; p >= letters; p--)
		unit *= 1024;
	return unit;
}

/* The unit that the text before the number ends with, as in "Memory(MB)". */
static double unit_before(const char *after)
{
	const char *open = strrchr(after, '(');

	return open ? unit_at(open) : 1;
}

/* The number behind the text; between the two may be blanks and what draws a table. */
static int find_number(const char *out, const struct number_of *what, double *ret, double *ret_unit,
		       struct gs_err *err)
{
	const char *s = strstr(out, what->after);
	double n;
	char *end;

	if (!s)
		return gs_err_set(err, EPROTO, "%s: no \"%s\" in its output", what->argv.v[0],
				  what->after);
	s += strlen(what->after);
	s += strspn(s, " \t:=|\"'");
	n = strtod(s, &end);
	if (end == s || !isfinite(n) || n < 0)
		return gs_err_set(err, EPROTO, "%s: no number behind \"%s\" in its output",
				  what->argv.v[0], what->after);
	*ret = n;
	*ret_unit = unit_at(end);
	if (*ret_unit == 1)
		*ret_unit = unit_before(what->after);
	return 0;
}

/* The output of the last command: two numbers often stand in one. */
struct last {
	char *argv;
	struct gs_buf out;
};

static int read_number(struct probe *probe, const struct probe_card *card,
		       const struct number_of *what, struct last *last, double *ret,
		       double *ret_unit, struct gs_err *err)
{
	cleanup_strv struct gs_strv argv = { 0 };
	cleanup_free char *joined = NULL;

	for (size_t i = 0; i < what->argv.n; i++) {
		char *arg;
		int r = fields_fill(&card->fields, what->argv.v[i], &arg, err);

		if (r < 0)
			return gs_err_prefix(err, "%s", what->argv.v[0]);
		gs_strv_take(&argv, arg);
	}
	joined = gs_strv_join(&argv);
	if (!last->argv || strcmp(last->argv, joined) != 0) {
		int r;

		free(gs_steal(last->argv));
		gs_buf_free(&last->out);
		r = probe_run(&argv, probe->command_ms, &last->out, err);
		if (r < 0)
			return r;
		last->argv = gs_steal(joined);
	}
	return find_number(last->out.data ? last->out.data : "", what, ret, ret_unit, err);
}

static int read_memory(struct probe *probe, const struct probe_card *card,
		       const struct number_of *what, struct last *last, uint64_t *ret,
		       bool *ret_known, struct gs_err *err)
{
	double n = 0, unit = 1;
	int r;

	if (!what->argv.n)
		return 0;
	r = read_number(probe, card, what, last, &n, &unit, err);
	if (r < 0)
		return r;
	if (n * unit > INT64_MAX / 2)
		return gs_err_set(err, EPROTO, "%s: no amount of memory behind \"%s\"",
				  what->argv.v[0], what->after);
	*ret = (uint64_t)(n * unit);
	*ret_known = true;
	return 0;
}

int probe_command_load(struct probe *probe, const struct probe_card *card, struct probe_load *ret,
		       struct gs_err *err)
{
	struct last last = { 0 };
	double busy = 0, unit = 1;
	int r = read_memory(probe, card, &probe->side.load.used_of, &last, &ret->used,
			    &ret->used_known, err);

	if (r == 0)
		r = read_memory(probe, card, &probe->side.load.total_of, &last, &ret->total,
				&ret->total_known, err);
	if (r == 0)
		r = read_number(probe, card, &probe->side.load.busy_of, &last, &busy, &unit, err);
	free(last.argv);
	gs_buf_free(&last.out);
	if (r < 0)
		return r;
	busy /= 100;
	ret->busy = busy < 1 ? busy : 1;
	ret->busy_known = true;
	return 0;
}
