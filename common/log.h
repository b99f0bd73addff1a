/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own log: one JSON object a line, appended to a file. */
#ifndef GPUSHARE_COMMON_LOG_H
#define GPUSHARE_COMMON_LOG_H

#include "common/config.h"

/*
 * Lines of @level and graver go to @file from now on; NULL: nowhere. It is a regular file, made
 * where it is missing; anything else (a FIFO, say) is left alone. Each line is one write(2) with
 * O_APPEND, so that lines of several processes do not mix. A log that can't be written is no
 * error: nothing of ours may depend on it.
 */
void gs_log_open(enum gs_log_level level, const char *file);

/*
 * The same to stderr, for a service whose stderr is kept (journald). A reader that is behind never
 * stops us: lines are left out then, and "dropped" in the next one says how many.
 */
void gs_log_to_stderr(enum gs_log_level level);

/*
 * Writes a line with more members: pairs of a key and its value, all of them texts, ended by NULL
 * in a key's place. Keys are ours; values may be anybody's, and NULL leaves its member out.
 */
__attribute__((sentinel)) void gs_log_fields(enum gs_log_level level, const char *msg, ...);

/* Writes {"time":RFC 3339,"level":...,"program":...,"pid":N,"msg":...}. */
__attribute__((format(printf, 2, 3))) void gs_log(enum gs_log_level level, const char *fmt, ...);

/* The time as RFC 3339 in UTC with nanoseconds, as runc writes it. */
void gs_log_time(char ret[40]);

#endif
