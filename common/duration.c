// SPDX-License-Identifier: Apache-2.0
/* Lengths of time as people write them. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/identity.h"

static const struct unit {
	const char *name;
	uint64_t ms;
} units[] = { { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };

static int not_one(const char *text, struct gs_err *err)
{
	return gs_err_set(err, EINVAL, "\"%.*s\" is no length of time such as 30s, 10m or 1h30m",
			  GS_QUOTE_MAX, text);
}

/* The unit that stands at @p, followed by another number or the end; -1: none. */
static int unit_at(const char *p, size_t *ret_len)
{
	*ret_len = strcspn(p, "0123456789");
	for (size_t i = 0; i < GS_ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == *ret_len && strncmp(units[i].name, p, *ret_len) == 0)
			return (int)i;
	return -1;
}

/* Adds @n times @unit; false: that does not fit. */
static bool add(uint64_t *sum, uint64_t n, uint64_t unit)
{
	return !__builtin_mul_overflow(n, unit, &n) && !__builtin_add_overflow(*sum, n, sum);
}

int gs_duration_ms(const char *text, uint64_t max, uint64_t *ret, struct gs_err *err)
{
	char most[GS_DURATION_MAX];
	bool fits = true;
	uint64_t sum = 0;
	const char *p = text;
	int before = -1;
	size_t len;

	/* Zero of any unit is the same. */
	if (strcmp(text, "0") == 0)
		p = "0s";
	do {
		uint64_t n = 0;
		int unit;

		if (*p < '0' || *p > '9')
			return not_one(text, err);
		for (; *p >= '0' && *p <= '9'; p++)
			fits &= !__builtin_mul_overflow(n, 10, &n) &&
				add(&n, 1, (uint64_t)*p - '0');
		unit = unit_at(p, &len);
		if (unit <= before)
			return not_one(text, err);
		before = unit;
		p += len;
		fits &= add(&sum, n, units[unit].ms);
	} while (*p);
	if (!fits || sum > max)
		return gs_err_set(err, ERANGE, "\"%.*s\" is more than %s", GS_QUOTE_MAX, text,
				  gs_duration_text(max, most));
	*ret = sum;
	return 0;
}

const char *gs_duration_text(uint64_t ms, char *buf)
{
	size_t len = 0;

	(void)snprintf(buf, GS_DURATION_MAX, "0");
	for (size_t i = 0; i < GS_ARRAY_SIZE(units); i++) {
		uint64_t n = ms / units[i].ms;

		if (!n)
			continue;
		len += (size_t)snprintf(buf + len, GS_DURATION_MAX - len, "%llu%s",
					(unsigned long long)n, units[i].name);
		ms %= units[i].ms;
	}
	return buf;
}

const char *gs_duration_short(uint64_t ms, char *buf)
{
	uint64_t keep = ms >= units[0].ms ? units[1].ms : units[2].ms;

	(void)gs_duration_text(ms - ms % keep, buf);
	if (ms < keep)
		(void)snprintf(buf, GS_DURATION_MAX, "0s");
	return buf;
}
