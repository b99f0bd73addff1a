// SPDX-License-Identifier: Apache-2.0
/* Path patterns: fnmatch(3) with FNM_PATHNAME, and braces. */
#include <stddef.h>
#include <limits.h>
#include <string.h>

#include "common/glob.h"

/* Braces inside braces; nothing in a catalogue needs more than two. */
#define DEPTH_MAX 8

/* What has to match after the present piece of pattern: the rest behind a closing brace. */
struct rest {
	const char *g, *end;
	const struct rest *next;
};

/* One character of a set; a backslash takes the next one as it is. */
static unsigned char set_char(const char **g)
{
	if (**g == '\\')
		(*g)++;
	return (unsigned char)*(*g)++;
}

/* Matches @c against the set at *@g (behind its '['); leaves *@g behind its ']'. */
static bool match_set(const char **g, unsigned char c)
{
	bool negate = **g == '!' || **g == '^', found = false, first = true;

	if (negate)
		(*g)++;
	for (; **g != ']' || first; first = false) {
		unsigned char from = set_char(g), to = from;

		if ((*g)[0] == '-' && (*g)[1] != ']') {
			(*g)++;
			to = set_char(g);
		}
		if (from <= c && c <= to)
			found = true;
	}
	(*g)++;
	return found != negate;
}

/* Behind the set whose '[' is at @g; NULL where it has no end. */
static const char *skip_set(const char *g)
{
	bool first = true;

	g++;
	if (*g == '!' || *g == '^')
		g++;
	for (; *g && (*g != ']' || first); first = false) {
		if (*g == '\\' && !*++g)
			return NULL;
		g++;
	}
	return *g ? g + 1 : NULL;
}

/* The ',' or '}' that ends the alternative at @g. */
static const char *skip_alternative(const char *g)
{
	size_t depth = 0;

	for (;;) {
		switch (*g) {
		case '[':
			g = skip_set(g);
			continue;
		case '\\':
			g++;
			break;
		case '{':
			depth++;
			break;
		case ',':
			if (depth == 0)
				return g;
			break;
		case '}':
			if (depth == 0)
				return g;
			depth--;
			break;
		default:
			break;
		}
		g++;
	}
}

static bool match(const char *g, const char *end, const char *s, const struct rest *next,
		  bool across);

/* Tries each alternative of the braces at @g, followed by what stands behind them. */
static bool match_braces(const char *g, const char *end, const char *s, const struct rest *next,
			 bool across)
{
	struct rest after = { NULL, end, next };
	const char *stop;

	for (stop = g; *stop != '}';)
		stop = skip_alternative(stop + 1);
	after.g = stop + 1;
	for (; *g != '}'; g = stop) {
		stop = skip_alternative(g + 1);
		if (match(g + 1, stop, s, &after, across))
			return true;
	}
	return false;
}

static bool match(const char *g, const char *end, const char *s, const struct rest *next,
		  bool across)
{
	for (;;) {
		while (g == end) {
			if (!next)
				return *s == '\0';
			g = next->g;
			end = next->end;
			next = next->next;
		}
		switch (*g) {
		case '*':
			while (g < end && *g == '*')
				g++;
			for (;; s++) {
				if (match(g, end, s, next, across))
					return true;
				if (!*s || (*s == '/' && !across))
					return false;
			}
		case '{':
			return match_braces(g, end, s, next, across);
		case '?':
			if (!*s || (*s == '/' && !across))
				return false;
			g++;
			break;
		case '[':
			if (!*s || (*s == '/' && !across))
				return false;
			g++;
			if (!match_set(&g, (unsigned char)*s))
				return false;
			break;
		case '\\':
			g++;
			/* fall through */
		default:
			if (*g != *s)
				return false;
			g++;
			break;
		}
		s++;
	}
}

bool gs_glob_match(const char *glob, const char *s)
{
	return match(glob, glob + strlen(glob), s, NULL, false);
}

bool gs_glob_match_across(const char *glob, const char *s)
{
	return match(glob, glob + strlen(glob), s, NULL, true);
}

bool gs_glob_any(const struct gs_strv *globs, const char *s)
{
	for (size_t i = 0; i < globs->n; i++)
		if (gs_glob_match(globs->v[i], s))
			return true;
	return false;
}

bool gs_glob_any_across(const struct gs_strv *globs, const char *s)
{
	for (size_t i = 0; i < globs->n; i++)
		if (gs_glob_match_across(globs->v[i], s))
			return true;
	return false;
}

const char *gs_glob_mistake(const char *glob)
{
	size_t depth = 0;

	while (*glob) {
		switch (*glob) {
		case '[':
			glob = skip_set(glob);
			if (!glob)
				return "a '[' without its ']'";
			continue;
		case '\\':
			if (!*++glob)
				return "a '\\' at the end";
			break;
		case '{':
			if (++depth > DEPTH_MAX)
				return "too many '{' inside each other";
			break;
		case '}':
			if (depth-- == 0)
				return "a '}' without its '{'";
			break;
		default:
			break;
		}
		glob++;
	}
	return depth ? "a '{' without its '}'" : NULL;
}

bool gs_path_plain(const char *path)
{
	/* no kernel takes it, and matching patterns against it would cost a pod's author nothing */
	if (path[0] != '/' || strnlen(path, PATH_MAX) == PATH_MAX)
		return false;
	while (*path) {
		size_t n;

		path++; /* the '/' */
		n = strcspn(path, "/");
		if (n == 0 || n > NAME_MAX || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
	}
	return true;
}
