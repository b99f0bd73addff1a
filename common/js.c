// SPDX-License-Identifier: Apache-2.0
/* A read-only view of a JSON text: the checking parser and the walk over what it checked. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xalloc.h"

/* The parser: no recursion, one bit a level tells whether it is an object. */
struct parser {
	const char *text, *p, *end;
	size_t depth, max;
	unsigned char is_object[JS_WRAPPED_DEPTH_MAX / 8 + 1];
	const char *what; /* what is wrong at p */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && is_space(*p))
		p++;
	return p;
}

static bool fail(struct parser *ps, const char *what)
{
	ps->what = what;
	return false;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The four hex digits after "\u", or -1. */
static int hex4(const char *p, const char *end)
{
	int v = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(p[i]);

		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

static bool is_high_surrogate(int v)
{
	return v >= 0xd800 && v <= 0xdbff;
}

static bool is_low_surrogate(int v)
{
	return v >= 0xdc00 && v <= 0xdfff;
}

static bool check_escape(struct parser *ps)
{
	int v;

	/* ps->p is at the backslash */
	if (ps->end - ps->p < 2)
		return fail(ps, "unfinished string");
	if (strchr("\"\\/bfnrt", ps->p[1]) && ps->p[1]) {
		ps->p += 2;
		return true;
	}
	if (ps->p[1] != 'u')
		return fail(ps, "unknown escape in a string");
	v = hex4(ps->p + 2, ps->end);
	if (v < 0)
		return fail(ps, "\\u without four hex digits");
	if (is_low_surrogate(v))
		return fail(ps, "lone surrogate in a string");
	ps->p += 6;
	if (!is_high_surrogate(v))
		return true;
	if (ps->end - ps->p < 6 || ps->p[0] != '\\' || ps->p[1] != 'u' ||
	    !is_low_surrogate(hex4(ps->p + 2, ps->end)))
		return fail(ps, "lone surrogate in a string");
	ps->p += 6;
	return true;
}

static bool check_string(struct parser *ps)
{
	if (ps->p == ps->end || *ps->p != '"')
		return fail(ps, "expected a string");
	ps->p++;
	while (ps->p < ps->end) {
		unsigned char c = (unsigned char)*ps->p;

		if (c == '"') {
			ps->p++;
			return true;
		}
		if (c == '\\') {
			if (!check_escape(ps))
				return false;
		} else if (c < 0x20) {
			return fail(ps, "control character in a string");
		} else if (c < 0x80) {
			ps->p++;
		} else {
			size_t n = gs_utf8_len(ps->p, ps->end);

			if (n == 0)
				return fail(ps, "invalid UTF-8 in a string");
			ps->p += n;
		}
	}
	return fail(ps, "unfinished string");
}

static bool check_digits(struct parser *ps)
{
	if (ps->p == ps->end || !is_digit(*ps->p))
		return fail(ps, "malformed number");
	while (ps->p < ps->end && is_digit(*ps->p))
		ps->p++;
	return true;
}

static bool check_number(struct parser *ps)
{
	if (*ps->p == '-')
		ps->p++;
	if (ps->p < ps->end && *ps->p == '0')
		ps->p++;
	else if (!check_digits(ps))
		return false;
	if (ps->p < ps->end && *ps->p == '.') {
		ps->p++;
		if (!check_digits(ps))
			return false;
	}
	if (ps->p < ps->end && (*ps->p == 'e' || *ps->p == 'E')) {
		ps->p++;
		if (ps->p < ps->end && (*ps->p == '+' || *ps->p == '-'))
			ps->p++;
		return check_digits(ps);
	}
	return true;
}

static bool check_word(struct parser *ps, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
		return fail(ps, "expected a value");
	ps->p += n;
	return true;
}

static bool check_scalar(struct parser *ps)
{
	if (ps->p == ps->end)
		return fail(ps, "the text ends where a value should be");
	switch (*ps->p) {
	case '"':
		return check_string(ps);
	case 't':
		return check_word(ps, "true");
	case 'f':
		return check_word(ps, "false");
	case 'n':
		return check_word(ps, "null");
	default:
		if (*ps->p == '-' || is_digit(*ps->p))
			return check_number(ps);
		return fail(ps, "expected a value");
	}
}

static bool in_object(const struct parser *ps)
{
	return ps->is_object[ps->depth / 8] & (1U << (ps->depth % 8));
}

static bool enter(struct parser *ps, bool object)
{
	if (ps->depth == ps->max)
		return fail(ps, NULL);
	ps->depth++;
	ps->is_object[ps->depth / 8] &= (unsigned char)~(1U << (ps->depth % 8));
	if (object)
		ps->is_object[ps->depth / 8] |= (unsigned char)(1U << (ps->depth % 8));
	ps->p++;
	return true;
}

static bool check_key(struct parser *ps)
{
	if (!check_string(ps))
		return false;
	ps->p = skip_space(ps->p, ps->end);
	if (ps->p == ps->end || *ps->p != ':')
		return fail(ps, "expected ':'");
	ps->p = skip_space(ps->p + 1, ps->end);
	return true;
}

/* After a value: leaves the containers that end here, or steps to the next value. */
static bool check_after_value(struct parser *ps)
{
	while (ps->depth > 0) {
		ps->p = skip_space(ps->p, ps->end);
		if (ps->p == ps->end)
			return fail(ps, "the text ends inside an object or array");
		if (*ps->p == ',') {
			ps->p = skip_space(ps->p + 1, ps->end);
			return in_object(ps) ? check_key(ps) : true;
		}
		if (*ps->p != (in_object(ps) ? '}' : ']'))
			return fail(ps,
				    in_object(ps) ? "expected ',' or '}'" : "expected ',' or ']'");
		ps->p++;
		ps->depth--;
	}
	return true;
}

static bool check_text(struct parser *ps)
{
	do {
		if (ps->p < ps->end && (*ps->p == '{' || *ps->p == '[')) {
			char close = *ps->p == '{' ? '}' : ']';

			if (!enter(ps, close == '}'))
				return false;
			ps->p = skip_space(ps->p, ps->end);
			if (ps->p == ps->end || *ps->p != close) {
				if (close == '}' && !check_key(ps))
					return false;
				continue;
			}
			ps->p++;
			ps->depth--;
		} else if (!check_scalar(ps)) {
			return false;
		}
		if (!check_after_value(ps))
			return false;
	} while (ps->depth > 0);
	return true;
}

static int parse(const char *text, size_t len, size_t max, struct js *ret, struct gs_err *err)
{
	struct parser ps = { .max = max };
	const char *start;
	size_t line, col;

	ps.text = text;
	ps.end = text + len;
	ps.p = skip_space(text, ps.end);
	start = ps.p;
	if (check_text(&ps)) {
		const char *stop = ps.p;

		ps.p = skip_space(ps.p, ps.end);
		if (ps.p == ps.end) {
			*ret = (struct js){ start, (size_t)(stop - start) };
			return 0;
		}
		ps.what = "something follows the JSON value";
	}
	js_where(text, ps.p, &line, &col);
	if (!ps.what)
		return gs_err_set(err, E2BIG, "line %zu, column %zu: nested deeper than %zu", line,
				  col, max);
	return gs_err_set(err, EINVAL, "line %zu, column %zu: %s", line, col, ps.what);
}

int js_parse(const char *text, size_t len, struct js *ret, struct gs_err *err)
{
	return parse(text, len, JS_DEPTH_MAX, ret, err);
}

int js_parse_wrapped(const char *text, size_t len, struct js *ret, struct gs_err *err)
{
	return parse(text, len, JS_WRAPPED_DEPTH_MAX, ret, err);
}

void js_where(const char *text, const char *at, size_t *ret_line, size_t *ret_col)
{
	size_t line = 1;
	const char *start = text;

	for (const char *p = text; p < at; p++) {
		if (*p == '\n') {
			line++;
			start = p + 1;
		}
	}
	*ret_line = line;
	*ret_col = (size_t)(at - start) + 1;
}

enum js_type js_type(struct js v)
{
	if (v.n == 0)
		return JS_NONE;
	switch (v.p[0]) {
	case '{':
		return JS_OBJECT;
	case '[':
		return JS_ARRAY;
	case '"':
		return JS_STRING;
	case 't':
	case 'f':
		return JS_BOOL;
	case 'n':
		return JS_NULL;
	default:
		return JS_NUMBER;
	}
}

/* From here on the text is known to be well formed: the skips look at structure alone. */

static const char *skip_string(const char *p, const char *end)
{
	for (;;) {
		const char *quote = memchr(p + 1, '"', (size_t)(end - p - 1));
		const char *back = quote;

		while (back[-1] == '\\')
			back--;
		if ((quote - back) % 2 == 0)
			return quote + 1;
		p = quote;
	}
}

/* A number, true, false or null: ends where anything else begins. */
static const char *skip_word(const char *p, const char *end)
{
	while (p < end && (is_digit(*p) || (*p >= 'a' && *p <= 'z') || *p == '-' || *p == '+' ||
			   *p == '.' || *p == 'E'))
		p++;
	return p;
}

static const char *skip_value(const char *p, const char *end)
{
	size_t depth = 0;

	if (*p != '"' && *p != '{' && *p != '[')
		return skip_word(p, end);
	do {
		switch (*p) {
		case '"':
			p = skip_string(p, end);
			break;
		case '{':
		case '[':
			depth++;
			p++;
			break;
		case '}':
		case ']':
			depth--;
			p++;
			break;
		default:
			p++;
			break;
		}
	} while (depth > 0);
	return p;
}

struct js_iter js_iter(struct js container)
{
	enum js_type type = js_type(container);

	if (type != JS_ARRAY && type != JS_OBJECT)
		return (struct js_iter){ NULL, NULL };
	return (struct js_iter){ container.p + 1, container.p + container.n - 1 };
}

/* Steps over white space and one comma. */
static bool at_next(struct js_iter *it)
{
	if (!it->p)
		return false;
	it->p = skip_space(it->p, it->end);
	if (it->p < it->end && *it->p == ',')
		it->p = skip_space(it->p + 1, it->end);
	return it->p < it->end;
}

static struct js take_value(struct js_iter *it)
{
	const char *start = it->p;

	it->p = skip_value(start, it->end);
	return (struct js){ start, (size_t)(it->p - start) };
}

bool js_next_element(struct js_iter *it, struct js *ret)
{
	if (!at_next(it))
		return false;
	*ret = take_value(it);
	return true;
}

bool js_next_member(struct js_iter *it, struct js *ret_key, struct js *ret_value)
{
	if (!at_next(it))
		return false;
	*ret_key = take_value(it);
	it->p = skip_space(it->p, it->end);
	it->p = skip_space(it->p + 1, it->end); /* ':' */
	*ret_value = take_value(it);
	return true;
}

static char *put_utf8(char *out, unsigned int c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | (c >> 6));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | (c >> 12));
		*out++ = (char)(0x80 | ((c >> 6) & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | (c >> 18));
		*out++ = (char)(0x80 | ((c >> 12) & 0x3f));
		*out++ = (char)(0x80 | ((c >> 6) & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

/* Resolves the escape whose letter is at *@p; leaves *@p behind it. */
static unsigned int take_escape(const char **p)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	unsigned int c, low;

	if (**p != 'u') {
		c = (unsigned char)to[strchr(from, **p) - from];
		(*p)++;
		return c;
	}
	c = (unsigned int)hex4(*p + 1, *p + 5);
	*p += 5;
	if (is_high_surrogate((int)c)) {
		low = (unsigned int)hex4(*p + 2, *p + 6);
		*p += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	return c;
}

char *js_string(struct js v)
{
	const char *p, *end;
	char *s, *out;

	if (!js_is(v, JS_STRING))
		return NULL;
	p = v.p + 1;
	end = v.p + v.n - 1;
	s = out = gs_malloc(v.n); /* escapes only shrink */
	while (p < end) {
		unsigned int c;

		if (*p != '\\') {
			*out++ = *p++;
			continue;
		}
		p++;
		c = take_escape(&p);
		if (c == 0) {
			free(s);
			return NULL;
		}
		out = put_utf8(out, c);
	}
	*out = '\0';
	return s;
}

bool js_string_is(struct js v, const char *s)
{
	size_t n = strlen(s);
	char *decoded;
	bool same;

	if (!js_is(v, JS_STRING) || v.n < n + 2) /* escapes only lengthen */
		return false;
	if (v.n == n + 2 && memcmp(v.p + 1, s, n) == 0)
		return !memchr(s, '\\', n);
	if (!memchr(v.p, '\\', v.n))
		return false;
	decoded = js_string(v);
	same = decoded && strcmp(decoded, s) == 0;
	free(decoded);
	return same;
}

/*
 * Would Go's decoder take @v for the struct member @key? It folds ASCII case, and also the two
 * letters outside of ASCII that fold to an ASCII one: U+017F (to s) and U+212A (to k).
 */
static bool folds_to(struct js v, const char *key)
{
	char *decoded = js_string(v);
	const char *d = decoded;
	bool same = false;

	if (!decoded)
		return false;
	for (; *key; key++) {
		char lower = (*key >= 'A' && *key <= 'Z') ? (char)(*key + 32) : *key;

		if (*d == lower || (lower >= 'a' && lower <= 'z' && *d == lower - 32))
			d++;
		else if (lower == 's' && strncmp(d, "\xc5\xbf", 2) == 0)
			d += 2;
		else if (lower == 'k' && strncmp(d, "\xe2\x84\xaa", 3) == 0)
			d += 3;
		else
			goto out;
	}
	same = *d == '\0';
out:
	free(decoded);
	return same;
}

/* Rules most keys out by their first letter, without decoding. */
static bool may_fold(struct js v, const char *key)
{
	unsigned char c = (unsigned char)v.p[1];

	return c == '\\' || c >= 0x80 || (c | 0x20) == ((unsigned char)key[0] | 0x20);
}

int js_members(struct js object, const char *const *keys, size_t n, struct js *ret,
	       struct gs_err *err)
{
	struct js_iter it = js_iter(object);
	struct js k, v;

	memset(ret, 0, n * sizeof(*ret));
	while (js_is(object, JS_OBJECT) && js_next_member(&it, &k, &v)) {
		for (size_t i = 0; i < n; i++) {
			if (!may_fold(k, keys[i]))
				continue;
			if (js_string_is(k, keys[i])) {
				if (ret[i].n)
					return gs_err_set(err, EEXIST, "member \"%s\" stands twice",
							  keys[i]);
				ret[i] = v;
			} else if (folds_to(k, keys[i])) {
				return gs_err_set(err, EEXIST,
						  "member %.*s differs from \"%s\" in case alone",
						  (int)k.n, k.p, keys[i]);
			}
		}
	}
	return 0;
}

int js_member(struct js object, const char *key, struct js *ret, struct gs_err *err)
{
	struct js found;
	int r;

	r = js_members(object, &key, 1, &found, err);
	if (r == 0)
		*ret = found;
	return r;
}

int js_map_member(struct js object, const char *key, struct js *ret, struct gs_err *err)
{
	struct js_iter it = js_iter(object);
	struct js found = { NULL, 0 };
	struct js k, v;

	while (js_is(object, JS_OBJECT) && js_next_member(&it, &k, &v)) {
		if (!js_string_is(k, key))
			continue;
		if (found.n)
			return gs_err_set(err, EEXIST, "\"%s\" stands twice", key);
		found = v;
	}
	*ret = found;
	return 0;
}

int js_path(struct js object, struct js *ret, struct gs_err *err, ...)
{
	const char *key;
	va_list ap;
	int r = 0;

	va_start(ap, err);
	while ((key = va_arg(ap, const char *)) != NULL) {
		r = js_member(object, key, &object, err);
		if (r < 0)
			break;
	}
	va_end(ap);
	if (r == 0)
		*ret = object;
	return r;
}

bool js_int64(struct js v, int64_t *ret)
{
	const char *p = v.p, *end = v.p + v.n;
	bool negative;
	uint64_t n = 0;

	if (!js_is(v, JS_NUMBER))
		return false;
	negative = *p == '-';
	for (p += negative; p < end; p++) {
		unsigned int d = (unsigned int)(*p - '0');

		if (d > 9 || n > (UINT64_MAX - d) / 10)
			return false;
		n = n * 10 + d;
	}
	if (n > (uint64_t)INT64_MAX + negative)
		return false;
	*ret = (int64_t)(negative ? 0 - n : n);
	return true;
}

bool js_bool(struct js v, bool *ret)
{
	if (!js_is(v, JS_BOOL))
		return false;
	*ret = v.p[0] == 't';
	return true;
}
