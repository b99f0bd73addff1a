/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong again and again is told when it begins, and rarely after that: a loop that tries
 * five times a second must not fill the disk with one sentence.
 */
#ifndef GPUSHARE_AGENT_TOLD_H
#define GPUSHARE_AGENT_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/log.h"

/* So many sentences are remembered; those that were met longest ago go first. */
#define TOLD_MAX 16

/* {0} to begin with; owns nothing. */
struct told {
	struct told_line {
		uint64_t hash; /* of the sentence and what it is about; 0: no line */
		uint64_t topic; /* of the sentence alone */
		uint64_t at_ms; /* CLOCK_BOOTTIME when it was written last, */
		uint64_t met_ms; /* and when it was met last */
		unsigned int times; /* it was met since it was written */
	} v[TOLD_MAX];
};

/*
 * Writes a line of the log: sentence @msg, with member @key of value @value (@key NULL: none) and
 * "why". The very same again is only counted, for ten minutes; then it is written with "times", how
 * often it was met since. Another @value or @why is another line.
 */
void told_log(struct told *told, enum gs_log_level level, const char *msg, const char *key,
	      const char *value, const char *why);

/*
 * It is over: next time sentence @msg is news. True: it had been told, so that its end is worth a
 * line.
 */
bool told_over(struct told *told, const char *msg);

#endif
