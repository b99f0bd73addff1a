// SPDX-License-Identifier: Apache-2.0
/* Do two pictures of a node tell the same? */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/publisher.h"
#include "common/cleanup.h"

/* "time" has whole seconds, and a clock is set now and then. */
#define TOLERANCE_MS 3000

struct how {
	int64_t a_ms, b_ms; /* when the pictures were made */
	bool all; /* what changes all the time counts, too */
};

static bool counts(const char *key, const struct how *how)
{
	static const char *const fickle[] = { "busy", "memory_used", "touches", "why_not" };

	for (size_t i = 0; !how->all && i < GS_ARRAY_SIZE(fickle); i++)
		if (strcmp(key, fickle[i]) == 0)
			return false;
	return strcmp(key, "time") != 0;
}

static bool same(const json_t *a, const json_t *b, const struct how *how);

/* Did the two begin at the same time? */
static bool same_age(const json_t *a, const json_t *b, const struct how *how)
{
	int64_t from_a = how->a_ms - (int64_t)json_integer_value(a);
	int64_t from_b = how->b_ms - (int64_t)json_integer_value(b);

	return json_is_integer(a) && json_is_integer(b) && llabs(from_a - from_b) <= TOLERANCE_MS;
}

/* Members of @a that are not, or not so, in @b. */
static bool has_all(const json_t *a, const json_t *b, const struct how *how)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)a, key, value) {
		const json_t *other = json_object_get(b, key);

		if (!counts(key, how))
			continue;
		if (strcmp(key, "since_ms") == 0 ? !same_age(value, other, how) :
						   !same(value, other, how))
			return false;
	}
	return true;
}

static bool same(const json_t *a, const json_t *b, const struct how *how)
{
	const struct how turned = { how->b_ms, how->a_ms, how->all };

	if (json_is_object(a) && json_is_object(b))
		return has_all(a, b, how) && has_all(b, a, &turned);
	if (!json_is_array(a) || !json_is_array(b))
		return json_equal(a, b);
	if (json_array_size(a) != json_array_size(b))
		return false;
	for (size_t i = 0; i < json_array_size(a); i++)
		if (!same(json_array_get(a, i), json_array_get(b, i), how))
			return false;
	return true;
}

int64_t publisher_time(const json_t *picture)
{
	const char *text = json_string_value(json_object_get(picture, "time"));
	struct tm tm = { 0 };

	if (!text || !strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return 0;
	return (int64_t)timegm(&tm) * 1000;
}

bool publisher_same(const json_t *a, const json_t *b, bool all)
{
	const struct how how = { publisher_time(a), publisher_time(b), all };

	return same(a, b, &how);
}
