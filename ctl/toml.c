// SPDX-License-Identifier: Apache-2.0
/* Reads TOML. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/xalloc.h"
#include "ctl/toml.h"

/*
 * How deep values may nest, how long a path may be, how many tables arrays may have in all: no
 * runtime's own file comes near these, and a text of a megabyte costs no more than a moment.
 */
#define DEPTH_MAX 32
#define PATH_LEN_MAX 1000
#define ELEMENTS_MAX 1000

struct reader {
	struct toml *doc;
	const char *p, *end;
	const char *line; /* where the line, or the first of several that belong together, starts */
	struct gs_strv elements; /* arrays of tables, a path for each element */
	struct gs_err *err;
};

static int wrong(struct reader *r, const char *at, const char *what)
{
	size_t line, col;

	js_where(r->doc->text, at, &line, &col);
	(void)gs_err_set(r->err, EINVAL, "line %zu, column %zu: %s", line, col, what);
	return -EINVAL;
}

/* ---- White space, comments, line ends. */

static void skip_blanks(struct reader *r)
{
	while (*r->p == ' ' || *r->p == '\t')
		r->p++;
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static int skip_comment(struct reader *r)
{
	if (*r->p != '#')
		return 0;
	while (r->p < r->end && *r->p != '\n') {
		if (is_control(*r->p) && !(*r->p == '\r' && r->p[1] == '\n'))
			return wrong(r, r->p, "a control character in a comment");
		r->p++;
	}
	return 0;
}

/* Goes over a newline; false: there is none. */
static bool skip_newline(struct reader *r)
{
	size_t n = *r->p == '\n' ? 1 : *r->p == '\r' && r->p[1] == '\n' ? 2 : 0;

	r->p += n;
	return n;
}

/* Blanks, comments and newlines, as they may stand between an array's elements. */
static int skip_space(struct reader *r)
{
	do {
		skip_blanks(r);
		if (skip_comment(r) < 0)
			return -EINVAL;
	} while (skip_newline(r));
	return 0;
}

/* After a value or header: nothing but a comment up to the end of the line. */
static int end_line(struct reader *r)
{
	skip_blanks(r);
	if (skip_comment(r) < 0)
		return -EINVAL;
	if (r->p == r->end || skip_newline(r))
		return 0;
	return wrong(r, r->p, "the line should end here");
}

/* ---- Strings. */

static int hex_digits(struct reader *r, size_t n, unsigned int *ret)
{
	*ret = 0;
	for (size_t i = 0; i < n; i++, r->p++) {
		static const char digits[] = "0123456789abcdef";
		const char *d = *r->p ? strchr(digits, *r->p | 0x20) : NULL;

		if (!d)
			return wrong(r, r->p, "no hexadecimal digit");
		*ret = *ret << 4 | (unsigned int)(d - digits);
	}
	return 0;
}

static void add_utf8(struct gs_buf *out, unsigned int c)
{
	if (c < 0x80) {
		gs_buf_addc(out, (char)c);
	} else if (c < 0x800) {
		gs_buf_addc(out, (char)(0xc0 | c >> 6));
	} else if (c < 0x10000) {
		gs_buf_addc(out, (char)(0xe0 | c >> 12));
		gs_buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	} else {
		gs_buf_addc(out, (char)(0xf0 | c >> 18));
		gs_buf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		gs_buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	if (c >= 0x80)
		gs_buf_addc(out, (char)(0x80 | (c & 0x3f)));
}

/* What follows a backslash. */
static int read_escape(struct reader *r, bool lines, struct gs_buf *out)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *at = r->p - 1;
	const char *c = *r->p ? strchr(from, *r->p) : NULL;
	unsigned int code;

	if (c) {
		gs_buf_addc(out, to[c - from]);
		r->p++;
		return 0;
	}
	if (*r->p == 'u' || *r->p == 'U') {
		if (hex_digits(r, *r->p++ == 'u' ? 4 : 8, &code) < 0)
			return -EINVAL;
		if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return wrong(r, at, "no such character");
		add_utf8(out, code);
		return 0;
	}
	if (lines) { /* a backslash at the end of a line takes away all white space behind it */
		skip_blanks(r);
		if (skip_newline(r)) {
			do
				skip_blanks(r);
			while (skip_newline(r));
			return 0;
		}
	}
	return wrong(r, at, "no such escape");
}

/* A string of any of the four kinds, at its first quote. */
static int read_string(struct reader *r, bool may_be_long, char **ret)
{
	cleanup_buf struct gs_buf out = { 0 };
	const char *start = r->p;
	char quote = *r->p;
	bool lines = may_be_long && r->p[1] == quote && r->p[2] == quote;

	r->p += lines ? 3 : 1;
	if (lines)
		(void)skip_newline(r);
	for (;;) {
		if (r->p >= r->end)
			return wrong(r, start, "the string has no end");
		if (*r->p == quote && !lines) {
			r->p++;
			break;
		}
		if (*r->p == quote && r->p[1] == quote && r->p[2] == quote) {
			size_t n = 3;

			/* Up to two quotes may stand before the three that end it. */
			while (n < 5 && r->p[n] == quote)
				n++;
			gs_buf_add(&out, r->p, n - 3);
			r->p += n;
			break;
		}
		if (*r->p == '\\' && quote == '"') {
			r->p++;
			if (read_escape(r, lines, &out) < 0)
				return -EINVAL;
			continue;
		}
		if (is_control(*r->p) && !(lines && (*r->p == '\n' || *r->p == '\r')))
			return wrong(r, r->p, "a control character in a string");
		gs_buf_addc(&out, *r->p++);
	}
	*ret = gs_buf_steal(&out);
	return 0;
}

/* ---- Keys. */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static void add_part(struct gs_buf *path, const char *part)
{
	bool bare = *part;

	for (const char *p = part; *p; p++)
		bare = bare && is_bare(*p);
	if (path->len)
		gs_buf_addc(path, '.');
	if (bare) {
		gs_buf_adds(path, part);
		return;
	}
	gs_buf_addc(path, '"');
	for (const char *p = part; *p; p++) {
		if (*p == '"' || *p == '\\')
			gs_buf_addc(path, '\\');
		gs_buf_addc(path, *p);
	}
	gs_buf_addc(path, '"');
}

/* One part of a key. */
static int read_part(struct reader *r, char **ret)
{
	const char *start = r->p;

	if (*r->p == '"' || *r->p == '\'')
		return read_string(r, false, ret);
	while (is_bare(*r->p))
		r->p++;
	if (r->p == start)
		return wrong(r, r->p, "a key should stand here");
	*ret = gs_strndup(start, (size_t)(r->p - start));
	return 0;
}

static struct toml_item *add_item(struct reader *r, const char *path, enum toml_type type,
				  const char *from)
{
	struct toml *doc = r->doc;
	struct toml_item *item;

	doc->items = gs_grow(doc->items, doc->n, sizeof(*doc->items));
	item = &doc->items[doc->n++];
	*item = (struct toml_item){ .path = gs_strdup(path), .type = type };
	item->from = (size_t)(from - doc->text);
	item->line = (size_t)(r->line - doc->text);
	return item;
}

/* "path[n]" of the last element where @path is an array of tables: what is below belongs to it. */
static void into_element(struct reader *r, struct gs_buf *path)
{
	for (size_t i = r->elements.n; i-- > 0;) {
		const char *element = r->elements.v[i];
		const char *bracket = strrchr(element, '[');

		if ((size_t)(bracket - element) == path->len &&
		    memcmp(element, path->data, path->len) == 0) {
			gs_buf_adds(path, bracket);
			return;
		}
	}
}

/*
 * A key with its dots, added to @path. Each part that another follows becomes an item of type
 * @parent.
 */
static int read_key(struct reader *r, enum toml_type parent, struct gs_buf *path)
{
	for (;;) {
		cleanup_free char *part = NULL;
		const char *start = r->p;

		if (read_part(r, &part) < 0)
			return -EINVAL;
		add_part(path, part);
		if (path->len > PATH_LEN_MAX)
			return wrong(r, start, "the key is too long");
		skip_blanks(r);
		if (*r->p != '.')
			return 0;
		r->p++;
		skip_blanks(r);
		if (parent == TOML_PARENT)
			into_element(r, path);
		(void)add_item(r, path->data, parent, start);
	}
}

/* ---- Values. */

static int read_value(struct reader *r, const char *path, bool inside, unsigned int depth);

static int read_array(struct reader *r, const char *path, unsigned int depth)
{
	const char *start = r->p++;

	for (size_t i = 0;; i++) {
		cleanup_free char *element = gs_asprintf("%s[%zu]", path, i);

		if (skip_space(r) < 0)
			return -EINVAL;
		if (*r->p == ']')
			break;
		if (r->p == r->end)
			return wrong(r, start, "the array has no end");
		if (read_value(r, element, true, depth + 1) < 0 || skip_space(r) < 0)
			return -EINVAL;
		if (*r->p == ']')
			break;
		if (*r->p != ',')
			return wrong(r, r->p, "',' or ']' should stand here");
		r->p++;
	}
	r->p++;
	return 0;
}

static int read_pair(struct reader *r, const char *table, bool inside, unsigned int depth)
{
	cleanup_buf struct gs_buf path = { 0 };

	gs_buf_adds(&path, table);
	if (read_key(r, TOML_DOTTED, &path) < 0)
		return -EINVAL;
	if (*r->p != '=')
		return wrong(r, r->p, "'=' should stand here");
	r->p++;
	skip_blanks(r);
	return read_value(r, path.data, inside, depth);
}

static int read_inline(struct reader *r, const char *path, unsigned int depth)
{
	r->p++;
	skip_blanks(r);
	if (*r->p == '}') {
		r->p++;
		return 0;
	}
	for (;;) {
		if (read_pair(r, path, true, depth + 1) < 0)
			return -EINVAL;
		skip_blanks(r);
		if (*r->p == '}')
			break;
		if (*r->p != ',')
			return wrong(r, r->p, "',' or '}' should stand here");
		r->p++;
		skip_blanks(r);
	}
	r->p++;
	return 0;
}

/* A number, truth value or date: known by its characters, read by nobody here. */
static int read_scalar(struct reader *r)
{
	const char *start = r->p;
	size_t n;

	while (is_bare(*r->p) || (*r->p && strchr("+.:", *r->p)))
		r->p++;
	/* A date and its time may have one blank between. */
	if (r->p - start == 10 && start[4] == '-' && *r->p == ' ' && r->p[1] >= '0' &&
	    r->p[1] <= '9')
		for (r->p++; is_bare(*r->p) || (*r->p && strchr("+.:", *r->p));)
			r->p++;
	n = (size_t)(r->p - start);
	if ((n == 4 && memcmp(start, "true", 4) == 0) || (n == 5 && memcmp(start, "false", 5) == 0))
		return 0;
	if (n > 0 && (*start == '+' || *start == '-'))
		start++;
	if (start < r->p && ((*start >= '0' && *start <= '9') || strncmp(start, "inf", 3) == 0 ||
			     strncmp(start, "nan", 3) == 0))
		return 0;
	return wrong(r, start, "a value should stand here");
}

static int read_value(struct reader *r, const char *path, bool inside, unsigned int depth)
{
	const char *start = r->p;
	enum toml_type type = *r->p == '['		    ? TOML_ARRAY :
			      *r->p == '{'		    ? TOML_INLINE :
			      *r->p == '"' || *r->p == '\'' ? TOML_STRING :
							      TOML_SCALAR;
	size_t i = r->doc->n;
	struct toml_item *item;
	char *string = NULL;
	int rc;

	if (depth > DEPTH_MAX)
		return wrong(r, r->p, "nested too deep");
	(void)add_item(r, path, type, start);
	rc = type == TOML_ARRAY	 ? read_array(r, path, depth) :
	     type == TOML_INLINE ? read_inline(r, path, depth) :
	     type == TOML_STRING ? read_string(r, true, &string) :
				   read_scalar(r);
	item = &r->doc->items[i]; /* they move when there are more */
	item->string = string;
	item->inside = inside;
	item->to = (size_t)(r->p - r->doc->text);
	return rc;
}

/* ---- Lines. */

/* Counts the elements of the array of tables @path, and gives the new one's path. */
static void new_element(struct reader *r, struct gs_buf *path)
{
	size_t n = 0;

	for (size_t i = 0; i < r->elements.n; i++) {
		const char *element = r->elements.v[i];

		if (strncmp(element, path->data, path->len) == 0 && element[path->len] == '[' &&
		    !strchr(element + path->len, '.'))
			n++;
	}
	gs_buf_addf(path, "[%zu]", n);
	gs_strv_add(&r->elements, path->data);
}

static int read_header(struct reader *r, struct gs_buf *table)
{
	const char *start = r->p;
	bool element = r->p[1] == '[';
	struct toml_item *item;

	gs_buf_free(table);
	r->p += element ? 2 : 1;
	skip_blanks(r);
	if (read_key(r, TOML_PARENT, table) < 0)
		return -EINVAL;
	if (*r->p != ']' || (element && r->p[1] != ']'))
		return wrong(r, r->p, "']' should stand here");
	r->p += element ? 2 : 1;
	if (element && r->elements.n >= ELEMENTS_MAX)
		return wrong(r, start, "too many tables in arrays");
	if (element) {
		(void)add_item(r, table->data, TOML_ELEMENT, start);
		new_element(r, table);
	}
	item = add_item(r, table->data, TOML_TABLE, start);
	item->to = (size_t)(r->p - r->doc->text);
	return 0;
}

/* Where the lines end that the items from @first on stand on. */
static void set_ends(struct reader *r, size_t first)
{
	for (size_t i = first; i < r->doc->n; i++)
		r->doc->items[i].end = (size_t)(r->p - r->doc->text);
}

static int read_lines(struct reader *r)
{
	cleanup_buf struct gs_buf table = { 0 };

	gs_buf_adds(&table, "");
	while (r->p < r->end) {
		size_t first = r->doc->n;

		r->line = r->p;
		skip_blanks(r);
		if (*r->p == '[') {
			if (read_header(r, &table) < 0)
				return -EINVAL;
		} else if (r->p < r->end && !strchr("#\r\n", *r->p)) {
			if (read_pair(r, table.data, false, 0) < 0)
				return -EINVAL;
		}
		if (end_line(r) < 0)
			return -EINVAL;
		set_ends(r, first);
	}
	return 0;
}

/* ---- What is defined twice. */

/* Numbers of items, by their paths, and then by their places. */
static int by_path(const void *a, const void *b, void *arg)
{
	const struct toml *doc = arg;
	const size_t *x = a, *y = b;
	int r = strcmp(doc->items[*x].path, doc->items[*y].path);

	return r ? r : (*x > *y) - (*x < *y);
}

static bool is_value(enum toml_type type)
{
	return type >= TOML_STRING;
}

/* May both stand in one text for the same path? */
static bool can_share(enum toml_type a, enum toml_type b)
{
	if (a == TOML_PARENT || b == TOML_PARENT)
		return !is_value(a) && !is_value(b);
	return a == b && (a == TOML_DOTTED || a == TOML_ELEMENT);
}

static int check_twice(struct reader *r)
{
	struct toml *doc = r->doc;
	cleanup_free size_t *sorted = gs_calloc(doc->n + 1, sizeof(*sorted));
	const char *path = "";
	unsigned int seen = 0; /* 1 << type of what there is of that path so far */

	for (size_t i = 0; i < doc->n; i++)
		sorted[i] = i;
	qsort_r(sorted, doc->n, sizeof(*sorted), by_path, doc);
	for (size_t i = 0; i < doc->n; i++) {
		const struct toml_item *item = &doc->items[sorted[i]];

		if (strcmp(path, item->path) != 0)
			seen = 0;
		path = item->path;
		for (unsigned int type = TOML_TABLE; type <= TOML_INLINE; type++)
			if (seen & 1U << type && !can_share(type, item->type))
				return wrong(r, doc->text + item->from, "this was defined before");
		seen |= 1U << item->type;
	}
	return 0;
}

int toml_parse(const char *text, size_t len, struct toml *ret, struct gs_err *err)
{
	struct toml doc = { .text = text, .len = len };
	struct reader r = { .doc = &doc, .p = text, .end = text + len, .err = err };
	int rc;

	if (len > TOML_SIZE_MAX)
		return gs_err_set(err, EINVAL, "larger than %d bytes", TOML_SIZE_MAX);
	if (memchr(text, 0, len) || !gs_utf8_valid(text))
		return gs_err_set(err, EINVAL, "this is no UTF-8 text");
	rc = read_lines(&r);
	if (rc == 0)
		rc = check_twice(&r);
	gs_strv_free(&r.elements);
	if (rc < 0)
		toml_free(&doc);
	else
		*ret = doc;
	return rc;
}

void toml_free(struct toml *doc)
{
	for (size_t i = 0; i < doc->n; i++) {
		free(doc->items[i].path);
		free(doc->items[i].string);
	}
	free(doc->items);
	doc->items = NULL;
	doc->n = 0;
}

/* ---- Looking. */

const struct toml_item *toml_find(const struct toml *doc, const char *path)
{
	for (size_t i = 0; i < doc->n; i++)
		if ((is_value(doc->items[i].type) || doc->items[i].type == TOML_TABLE) &&
		    strcmp(doc->items[i].path, path) == 0)
			return &doc->items[i];
	return NULL;
}

const struct toml_item *toml_below(const struct toml *doc, const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < doc->n; i++) {
		const char *at = doc->items[i].path;

		if (strncmp(at, path, len) == 0 && (at[len] == 0 || strchr(".[", at[len])))
			return &doc->items[i];
	}
	return NULL;
}

const char *toml_string(const struct toml *doc, const char *path)
{
	const struct toml_item *item = toml_find(doc, path);

	return item ? item->string : NULL;
}

bool toml_is(const struct toml *doc, const char *path, const char *text)
{
	const struct toml_item *item = toml_find(doc, path);

	return item && item->to - item->from == strlen(text) &&
	       memcmp(doc->text + item->from, text, strlen(text)) == 0;
}

bool toml_strings(const struct toml *doc, const struct toml_item *item, struct gs_strv *ret)
{
	size_t len = strlen(item->path);
	bool ok = true;

	for (const struct toml_item *i = item + 1; i < doc->items + doc->n && i->from < item->to;
	     i++) {
		/* The elements themselves, not what is in them. */
		const char *rest = strncmp(i->path, item->path, len) == 0 ? i->path + len : "";

		if (*rest != '[' || strchr(rest + 1, '[') || strchr(rest + 1, '.'))
			continue;
		if (i->string)
			gs_strv_add(ret, i->string);
		else
			ok = false;
	}
	return ok;
}
