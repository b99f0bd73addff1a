// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "agent/told.h"
#include "common/proc.h"

/* So long the same is not told again. */
#define AGAIN_MS (10 * 60 * 1000)

/* FNV-1a, with an end mark, so that "a", "bc" is not "ab", "c". */
static uint64_t add(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return (hash ^ 0xff) * 0x100000001b3;
}

static uint64_t hash_of(const char *msg)
{
	return add(0xcbf29ce484222325, msg) | 1;
}

/* Its line, or the one that was met longest ago, empty. */
static struct told_line *line_of(struct told *told, uint64_t hash)
{
	struct told_line *oldest = &told->v[0];

	for (size_t i = 0; i < TOLD_MAX; i++) {
		if (told->v[i].hash == hash)
			return &told->v[i];
		if (told->v[i].met_ms < oldest->met_ms)
			oldest = &told->v[i];
	}
	*oldest = (struct told_line){ 0 };
	return oldest;
}

void told_log(struct told *told, enum gs_log_level level, const char *msg, const char *key,
	      const char *value, const char *why)
{
	uint64_t topic = hash_of(msg), hash = add(add(topic, value), why) | 1;
	struct told_line *line = line_of(told, hash);
	uint64_t now = gs_boottime_ms();
	char times[16];

	line->met_ms = now;
	line->times++;
	if (line->hash && now - line->at_ms < AGAIN_MS)
		return;
	(void)snprintf(times, sizeof(times), "%u", line->times);
	if (key)
		gs_log_fields(level, msg, key, value, "why", why, "times",
			      line->hash ? times : NULL, NULL);
	else
		gs_log_fields(level, msg, "why", why, "times", line->hash ? times : NULL, NULL);
	*line = (struct told_line){ .hash = hash, .topic = topic, .at_ms = now, .met_ms = now };
}

bool told_over(struct told *told, const char *msg)
{
	uint64_t topic = hash_of(msg);
	bool was = false;

	for (size_t i = 0; i < TOLD_MAX; i++)
		if (told->v[i].hash && told->v[i].topic == topic) {
			told->v[i] = (struct told_line){ 0 };
			was = true;
		}
	return was;
}
