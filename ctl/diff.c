// SPDX-License-Identifier: Apache-2.0
/* Compares texts line by line: the longest common subsequence of what is between equal ends. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/diff.h"

#define AROUND 3
/* Room for the table of the middle; where that is larger, all of it is replaced. */
#define CELLS_MAX (4UL * 1024 * 1024)

struct line {
	const char *p;
	size_t n; /* with its newline, if it has one */
};

struct lines {
	struct line *v;
	size_t n;
};

static struct lines split(const char *text)
{
	struct lines lines = { 0 };

	while (*text) {
		size_t n = strcspn(text, "\n");

		n += text[n] == '\n';
		lines.v = gs_grow(lines.v, lines.n, sizeof(*lines.v));
		lines.v[lines.n++] = (struct line){ text, n };
		text += n;
	}
	return lines;
}

static bool same(struct line a, struct line b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* One step of the way from the old text to the new one. */
struct step {
	char sign; /* ' ', '-' or '+' */
	struct line line;
};

struct script {
	struct step *v;
	size_t n;
};

static void add(struct script *script, char sign, struct line line)
{
	script->v = gs_grow(script->v, script->n, sizeof(*script->v));
	script->v[script->n++] = (struct step){ sign, line };
}

/* The middle, of which @a has @n lines and @b @m. */
static void compare(struct script *script, const struct line *a, size_t n, const struct line *b,
		    size_t m)
{
	/* len[i * (m + 1) + j]: how much a from i on and b from j on have in common. */
	bool fits = (n + 1) <= CELLS_MAX / (m + 1);
	cleanup_free unsigned int *len = fits ? gs_calloc((n + 1) * (m + 1), sizeof(*len)) : NULL;
	size_t i = 0, j = 0;

	for (size_t x = fits ? n : 0; x-- > 0;)
		for (size_t y = m; y-- > 0;) {
			unsigned int *cell = &len[x * (m + 1) + y];
			unsigned int down = cell[m + 1], right = cell[1];

			*cell = same(a[x], b[y]) ? cell[m + 2] + 1 : down > right ? down : right;
		}
	while (i < n || j < m) {
		if (fits && i < n && j < m && same(a[i], b[j])) {
			add(script, ' ', a[i]);
			i++;
			j++;
		} else if (i < n && (j == m || !fits ||
				     len[(i + 1) * (m + 1) + j] >= len[i * (m + 1) + j + 1])) {
			add(script, '-', a[i++]);
		} else {
			add(script, '+', b[j++]);
		}
	}
}

static void make_script(const struct lines *a, const struct lines *b, struct script *script)
{
	size_t head = 0, tail = 0;

	while (head < a->n && head < b->n && same(a->v[head], b->v[head]))
		head++;
	while (tail < a->n - head && tail < b->n - head &&
	       same(a->v[a->n - 1 - tail], b->v[b->n - 1 - tail]))
		tail++;
	for (size_t i = 0; i < head; i++)
		add(script, ' ', a->v[i]);
	compare(script, a->v + head, a->n - head - tail, b->v + head, b->n - head - tail);
	for (size_t i = a->n - tail; i < a->n; i++)
		add(script, ' ', a->v[i]);
}

/* Where the hunk that starts at @from ends: behind AROUND equal lines that no change follows. */
static size_t hunk_end(const struct script *script, size_t from)
{
	size_t last = from;

	for (size_t i = from; i < script->n && i - last <= 2 * AROUND + 1; i++)
		if (script->v[i].sign != ' ')
			last = i;
	return last + AROUND + 1 < script->n ? last + AROUND + 1 : script->n;
}

static void print_hunk(const struct script *script, size_t from, size_t to, size_t old_line,
		       size_t new_line, struct gs_buf *out)
{
	size_t old_n = 0, new_n = 0;

	for (size_t i = from; i < to; i++) {
		old_n += script->v[i].sign != '+';
		new_n += script->v[i].sign != '-';
	}
	gs_buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old_n ? old_line + 1 : old_line, old_n,
		    new_n ? new_line + 1 : new_line, new_n);
	for (size_t i = from; i < to; i++) {
		struct line line = script->v[i].line;

		gs_buf_addc(out, script->v[i].sign);
		gs_buf_add(out, line.p, line.n);
		if (line.p[line.n - 1] != '\n')
			gs_buf_adds(out, "\n\\ No newline at end of file\n");
	}
}

void ctl_diff(const char *path, const char *old, const char *new, struct gs_buf *out)
{
	struct lines a = split(old ? old : ""), b = split(new ? new : "");
	struct script script = { 0 };
	size_t old_line = 0, new_line = 0, done = 0;

	make_script(&a, &b, &script);
	for (size_t i = 0; i < script.n; i++) {
		size_t from, to;

		if (script.v[i].sign == ' ')
			continue;
		if (!done)
			gs_buf_addf(out, "--- %s\n+++ %s\n", old ? path : "/dev/null",
				    new ? path : "/dev/null");
		from = i - done > AROUND ? i - AROUND : done;
		to = hunk_end(&script, i);
		for (; done < from; done++) {
			old_line++;
			new_line++;
		}
		print_hunk(&script, from, to, old_line, new_line, out);
		for (; done < to; done++) {
			old_line += script.v[done].sign != '+';
			new_line += script.v[done].sign != '-';
		}
		i = to - 1;
	}
	free(a.v);
	free(b.v);
	free(script.v);
}
