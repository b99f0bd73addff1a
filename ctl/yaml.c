// SPDX-License-Identifier: Apache-2.0
/* Values as YAML 1.2. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/yaml.h"

/* A text that stands for itself: a word with nothing in it that YAML 1.1 or 1.2 could mean. */
static bool is_plain(const char *s, size_t len)
{
	static const char *const words[] = { "true", "false", "yes", "no",  "on",
					     "off",  "y",     "n",   "null" };

	if (!len || strlen(s) != len || !isalpha((unsigned char)*s))
		return false;
	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_./", *c))
			return false;
	for (size_t i = 0; i < GS_ARRAY_SIZE(words); i++)
		if (strcasecmp(s, words[i]) == 0)
			return false;
	return true;
}

/* In double quotes JSON's escapes are YAML's, but for pairs of surrogates. */
static void add_text(struct gs_buf *out, const char *s, size_t len)
{
	if (is_plain(s, len)) {
		gs_buf_adds(out, s);
		return;
	}
	gs_buf_addc(out, '"');
	for (const char *c = s; c < s + len;) {
		unsigned int code;
		size_t n = ctl_read_char(c, &code);

		if (!n || ctl_is_order(code)) {
			gs_buf_addf(out, "\\u%04X", n ? code : 0xfffd);
			c += n ? n : 1;
			continue;
		}
		if (*c == '"' || *c == '\\')
			gs_buf_addc(out, '\\');
		gs_buf_add(out, c, n);
		c += n;
	}
	gs_buf_addc(out, '"');
}

static void add_indent(struct gs_buf *out, unsigned int depth)
{
	gs_buf_addf(out, "%*s", (int)depth, "");
}

static void add_value(struct gs_buf *out, const json_t *value, unsigned int depth);

/* @indented: the first line stands where it belongs already. */
static void add_object(struct gs_buf *out, const json_t *object, unsigned int depth, bool indented)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		if (!indented)
			add_indent(out, depth);
		indented = false;
		add_text(out, key, strlen(key));
		gs_buf_addc(out, ':');
		add_value(out, value, depth);
	}
}

static void add_array(struct gs_buf *out, const json_t *array, unsigned int depth)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *value = json_array_get(array, i);

		add_indent(out, depth);
		gs_buf_addc(out, '-');
		if (json_is_object(value) && json_object_size(value)) {
			gs_buf_addc(out, ' ');
			add_object(out, value, depth + 2, true);
		} else {
			add_value(out, value, depth);
		}
	}
}

static void add_scalar(struct gs_buf *out, const json_t *value)
{
	char *text;

	if (json_is_string(value)) {
		add_text(out, json_string_value(value), json_string_length(value));
		return;
	}
	/* numbers, true, false, null, [] and {} are what they are in JSON */
	text = json_dumps(value, JSON_ENCODE_ANY);
	gs_buf_adds(out, text ? text : "null");
	free(text);
}

/* What stands behind "key:" or "-", with its newline. */
static void add_value(struct gs_buf *out, const json_t *value, unsigned int depth)
{
	if (json_is_object(value) && json_object_size(value)) {
		gs_buf_addc(out, '\n');
		add_object(out, value, depth + 2, false);
	} else if (json_is_array(value) && json_array_size(value)) {
		gs_buf_addc(out, '\n');
		add_array(out, value, depth + 2);
	} else {
		gs_buf_addc(out, ' ');
		add_scalar(out, value);
		gs_buf_addc(out, '\n');
	}
}

void yaml_add(struct gs_buf *out, const json_t *value)
{
	if (json_is_object(value) && json_object_size(value)) {
		add_object(out, value, 0, false);
	} else if (json_is_array(value) && json_array_size(value)) {
		add_array(out, value, 0);
	} else {
		add_scalar(out, value);
		gs_buf_addc(out, '\n');
	}
}

void yaml_print(json_t *value)
{
	cleanup_buf struct gs_buf text = { 0 };

	yaml_add(&text, value);
	(void)fwrite(text.data, 1, text.len, stdout);
	json_decref(value);
}
