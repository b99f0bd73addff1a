// SPDX-License-Identifier: Apache-2.0
/* What gpusharectl says, and how it reads options. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "ctl/ctl.h"

const char *ctl_name = CTL_NAME;

size_t ctl_read_char(const char *text, unsigned int *ret)
{
	const unsigned char *s = (const unsigned char *)text;
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80     ? 1 :
		     s[0] >> 5 == 6  ? 2 :
		     s[0] >> 4 == 14 ? 3 :
		     s[0] >> 3 == 30 ? 4 :
				       0;

	if (len <= 1) {
		*ret = s[0];
		return len;
	}
	*ret = s[0] & (0xffU >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		*ret = *ret << 6 | (s[i] & 0x3f);
	}
	return *ret >= least[len] && *ret <= 0x10ffff ? len : 0;
}

bool ctl_is_order(unsigned int c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

char *ctl_printable(char *s)
{
	for (char *p = s; *p;) {
		unsigned int c;
		size_t len = ctl_read_char(p, &c);

		if (len == 0 || ctl_is_order(c))
			(void)memset(p, '?', len ? len : 1);
		p += len ? len : 1;
	}
	return s;
}

static void say(const char *fmt, va_list ap)
{
	char line[GS_ERR_MAX];

	(void)vsnprintf(line, sizeof(line), fmt, ap);
	(void)fprintf(stderr, "%s: %s\n", ctl_name, ctl_printable(line));
}

void ctl_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

int ctl_help(const struct ctl_verb *verb)
{
	(void)fputs(verb->help, stdout);
	return CTL_OK;
}

int ctl_misused(const struct ctl_verb *verb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "Try '%s %s --help'.\n", ctl_name, verb->name);
	return CTL_USAGE;
}

int ctl_failed(const struct gs_err *err)
{
	bool rights = (err->code == EACCES || err->code == EPERM) && geteuid() != 0;

	ctl_say("%s%s", err->msg, rights ? " (run it as root)" : "");
	return CTL_FAILED;
}

int ctl_getopt(const struct ctl_verb *verb, int argc, char **argv, const char *shorts,
	       const struct option *longs)
{
	int opt;

	opterr = 0;
	opt = getopt_long(argc, argv, shorts, longs, NULL);
	if (opt == ':')
		(void)ctl_misused(verb, "%s needs a value", argv[optind - 1]);
	else if (opt == '?' && optopt && optopt < 128)
		(void)ctl_misused(verb, "no option -%c", optopt);
	else if (opt == '?')
		(void)ctl_misused(verb, "no option %s", argv[optind - 1]);
	return opt == ':' ? '?' : opt;
}

int ctl_read_format(const struct ctl_verb *verb, const char *value, unsigned int also,
		    enum ctl_format *ret)
{
	static const struct {
		const char *name;
		enum ctl_format format;
		unsigned int also;
	} formats[] = {
		{ "json", CTL_JSON, 0 },
		{ "yaml", CTL_YAML, CTL_ALSO_YAML },
		{ "wide", CTL_WIDE, CTL_ALSO_WIDE },
	};
	char list[32] = "";

	for (size_t i = 0; i < GS_ARRAY_SIZE(formats); i++) {
		size_t len = strlen(list);

		if (formats[i].also & ~also)
			continue;
		if (strcmp(value, formats[i].name) == 0) {
			*ret = formats[i].format;
			return CTL_OK;
		}
		(void)snprintf(list + len, sizeof(list) - len, "%s%s", len ? " or " : "",
			       formats[i].name);
	}
	return ctl_misused(verb, "-o takes %s, not %s", list, value);
}

int ctl_load_config(struct gs_config *config)
{
	struct gs_err err = { 0 };

	gs_config_init(config);
	if (gs_config_load(config, NULL, &err) == 0)
		return CTL_OK;
	return ctl_failed(&err);
}

void ctl_print_json(json_t *json)
{
	(void)json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	(void)putchar('\n');
	json_decref(json);
}
