// SPDX-License-Identifier: Apache-2.0
/* gpushare-probe: reads cards and their load for the agent, which can do without it when it hangs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* A command gets less time than the agent gives us, so that its failure has its own sentence. */
#define COMMAND_MS_DEFAULT 4000

static int write_all(const struct gs_buf *out)
{
	for (size_t at = 0; at < out->len;) {
		ssize_t n = write(PROBE_OUT_FD, out->data + at, out->len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

/* Answers every whole line of @in and keeps the rest. */
static int answer_lines(struct probe *probe, struct gs_buf *in)
{
	char *start = in->data, *end = in->data + in->len, *newline;

	while ((newline = memchr(start, '\n', (size_t)(end - start)))) {
		cleanup_buf struct gs_buf out = { 0 };

		probe_answer(probe, start, (size_t)(newline - start), &out);
		if (write_all(&out) < 0)
			return -1;
		start = newline + 1;
	}
	memmove(in->data, start, (size_t)(end - start));
	in->len = (size_t)(end - start);
	return in->len > PROBE_LINE_MAX ? -1 : 0;
}

static int serve(struct probe *probe)
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
		if (answer_lines(probe, &in) < 0)
			return 1;
	}
}

/* usage: gpushare-probe PARENT [COMMAND_MS]: the agent's process number, and a command's time. */
int main(int argc, char **argv)
{
	struct probe probe = { 0 };
	cleanup_free char *sysfs = probe_path("/sys");
	int r;

	if (argc < 2 || fcntl(PROBE_OUT_FD, F_GETFD) < 0) {
		(void)fputs("gpushare-probe is started by gpushared\n", stderr);
		return 2;
	}
	/* The end of stdin does not end one who hangs in a driver's call. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != atoi(argv[1]))
		return 1;
	(void)fcntl(PROBE_OUT_FD, F_SETFD, FD_CLOEXEC);
	(void)signal(SIGPIPE, SIG_DFL);
	probe.command_ms = argc > 2 ? (unsigned int)atoi(argv[2]) : COMMAND_MS_DEFAULT;
	gs_catalogue_sysfs = sysfs;
	r = serve(&probe);
	probe_free(&probe);
	return r;
}
