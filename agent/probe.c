// SPDX-License-Identifier: Apache-2.0
/* gpushare-probe: reads cards and their load for the agent, which survives it when it hangs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/probe_scan.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* A command gets less time than the agent gives us, so that its failure has its own sentence. */
#define COMMAND_MS_DEFAULT 4000

static int write_all(int fd, const struct gs_buf *out)
{
	for (size_t at = 0; at < out->len;) {
		ssize_t n = write(fd, out->data + at, out->len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

/* Answers every whole line of @in and keeps the rest. */
static int answer_lines(struct probe *probe, struct gs_buf *in, int out_fd)
{
	char *start = in->data, *end = in->data + in->len, *newline;

	while ((newline = memchr(start, '\n', (size_t)(end - start)))) {
		cleanup_buf struct gs_buf out = { 0 };

		if (newline > start)
			probe_answer(probe, start, (size_t)(newline - start), &out);
		if (write_all(out_fd, &out) < 0)
			return -1;
		start = newline + 1;
	}
	memmove(in->data, start, (size_t)(end - start));
	in->len = (size_t)(end - start);
	return in->len > PROBE_LINE_MAX ? -1 : 0;
}

static int serve(struct probe *probe, int out)
{
	cleanup_buf struct gs_buf in = { 0 };
	char buf[4096];

	for (;;) {
		ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0;
		gs_buf_add(&in, buf, (size_t)n);
		if (answer_lines(probe, &in, out) < 0)
			return 1;
	}
}

/* Keeps stdin and stdout for ourselves: a library may print, or read. Gives stdout. */
static int keep_stdout(void)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (out < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	(void)close(null);
	return out;
}

/*
 * usage: gpushare-probe AGENT [COMMAND_MS]: the agent's process number, and a command's time.
 *        gpushare-probe hook ...: see probe_hook()
 */
int main(int argc, char **argv)
{
	struct probe probe = { .hurries = true };
	cleanup_free char *sysfs = probe_path("/sys");
	int r, out;

	if (argc < 2 || argv[1][0] == '-') {
		bool help = argc > 1 && strcmp(argv[1], "--help") == 0;

		(void)fputs("gpushare-probe reads cards and their load. gpushared starts it, and\n"
			    "`gpusharectl inspect` shows what it finds.\n",
			    help ? stdout : stderr);
		return help ? 0 : 2;
	}
	/* One that hangs in a call does not see the end of its stdin. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(argv[1], "hook") == 0)
		return probe_hook(argc - 2, argv + 2);
	probe_agent = (pid_t)strtol(argv[1], NULL, 10);
	out = keep_stdout();
	if (out < 0)
		return 1;
	probe.command_ms = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : COMMAND_MS_DEFAULT;
	gs_catalogue_sysfs = sysfs;
	r = serve(&probe, out);
	probe_free(&probe);
	return r;
}
