/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the caller why a container was not created, where each caller looks for it. */
#ifndef GPUSHARE_RUNTIME_REPORT_H
#define GPUSHARE_RUNTIME_REPORT_H

#include "runtime/argv.h"

/*
 * Appends one error record to the file of --log, in runc's shape of --log-format (containerd shows
 * only that), and then writes one line to stderr (CRI-O and people look there). @cmd may have no
 * log.
 */
void report_error(const struct command *cmd, const char *msg);

/*
 * "<program>: <msg>" and a newline to stderr, if it takes them within a second: it may be a pipe
 * whose reader is gone or does not read.
 */
void report_line(const char *program, const char *msg);

#endif
