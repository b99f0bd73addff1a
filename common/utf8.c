// SPDX-License-Identifier: Apache-2.0
/* Valid UTF-8, by table 3-7 of the Unicode standard. */
#include <string.h>

#include "common/utf8.h"

size_t gs_utf8_len(const char *text, const char *text_end)
{
	const unsigned char *p = (const unsigned char *)text;
	const unsigned char *end = (const unsigned char *)text_end;
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if ((size_t)(end - p) < n)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

bool gs_utf8_valid(const char *s)
{
	const char *end = s + strlen(s);

	while (s < end) {
		size_t n = gs_utf8_len(s, end);

		if (n == 0)
			return false;
		s += n;
	}
	return true;
}
