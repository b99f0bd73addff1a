/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of a program that runs until a signal ends it, and lives in a loop. */
#ifndef GPUSHARE_COMMON_PROGRAM_H
#define GPUSHARE_COMMON_PROGRAM_H

#include <uv.h>

#include "common/config.h"

/*
 * Reads the command line "[--config FILE]", into config->path. -1: go on; else the program is to
 * end with that status, after its version was printed, or @usage: for --help on stdout, else on
 * stderr.
 * The program, and what it starts, ignores SIGPIPE from now on.
 */
int gs_program_options(int argc, char **argv, const char *usage, struct gs_config *config);

/* Opens the log that @config names; without one lines go to stderr. */
void gs_program_log(const struct gs_config *config);

/* SIGTERM and SIGINT. Kept at one place until gs_program_close(). */
struct gs_program_signals {
	uv_signal_t term, intr;
	void (*end)(void *arg);
	void *arg;
};

/* @end is called from the loop at each of them. */
void gs_program_signals(struct gs_program_signals *signals, uv_loop_t *loop, void (*end)(void *arg),
			void *arg);

/* Closes whatever handles the loop still has, lets it end, and closes it. */
void gs_program_close(uv_loop_t *loop);

#endif
