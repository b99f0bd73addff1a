// SPDX-License-Identifier: Apache-2.0
/* The beginning and the end of a program. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/program.h"
#include "common/xalloc.h"

static int show_version(void)
{
	(void)printf("%s %s\n", program_invocation_short_name, GPUSHARE_VERSION);
	return 0;
}

static int show(const char *usage, FILE *f)
{
	(void)fputs(usage, f);
	return f == stdout ? 0 : 2;
}

int gs_program_options(int argc, char **argv, const char *usage, struct gs_config *config)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	/* a peer that hangs up is an error of send(2), no end of us */
	(void)signal(SIGPIPE, SIG_IGN);
	opterr = 0; /* the usage line says it all */
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'v')
			return show_version();
		if (opt != 'c')
			return show(usage, opt == 'h' ? stdout : stderr);
		free(config->path);
		config->path = gs_strdup(optarg);
	}
	return optind == argc ? -1 : show(usage, stderr);
}

void gs_program_log(const struct gs_config *config)
{
	gs_log_open(config->log_level, config->log_file);
	if (!config->log_file)
		gs_log_to_stderr(config->log_level);
}

static void on_signal(uv_signal_t *handle, int number)
{
	const struct gs_program_signals *signals = handle->data;

	(void)number;
	signals->end(signals->arg);
}

void gs_program_signals(struct gs_program_signals *signals, uv_loop_t *loop, void (*end)(void *arg),
			void *arg)
{
	signals->end = end;
	signals->arg = arg;
	signals->term.data = signals->intr.data = signals;
	(void)uv_signal_init(loop, &signals->term);
	(void)uv_signal_init(loop, &signals->intr);
	(void)uv_signal_start(&signals->term, on_signal, SIGTERM);
	(void)uv_signal_start(&signals->intr, on_signal, SIGINT);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void gs_program_close(uv_loop_t *loop)
{
	uv_walk(loop, close_handle, NULL);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(loop);
}
