// SPDX-License-Identifier: Apache-2.0
/* Errors go where the caller looks. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "runtime/report.h"

#define STDERR_WAIT_MS 1000

/* crun's --log may begin with a driver; what is no file we leave alone. */
static const char *log_path(const char *log)
{
	if (!log || strncmp(log, "syslog:", 7) == 0 || strncmp(log, "journald:", 9) == 0)
		return NULL;
	return strncmp(log, "file:", 5) == 0 ? log + 5 : log;
}

static void report_to_log(const struct command *cmd, const char *msg)
{
	const char *path = log_path(cmd->log);
	cleanup_buf struct gs_buf line = { 0 };
	cleanup_close int fd = -1;
	char full[GS_ERR_MAX + 16];
	char when[40];

	gs_log(GS_LOG_ERROR, "%s", msg);
	if (!path || !*path)
		return;
	/* the kubelet shows it in an event, where nothing else tells whose words these are */
	(void)snprintf(full, sizeof(full), "gpushare: %s", msg);
	gs_log_time(when);
	if (cmd->log_format && strcmp(cmd->log_format, "json") == 0) {
		gs_buf_adds(&line, "{\"level\":\"error\",\"msg\":");
		gs_buf_add_json(&line, full);
		gs_buf_addf(&line, ",\"time\":\"%s\"}\n", when);
	} else {
		gs_buf_addf(&line, "time=\"%s\" level=error msg=", when);
		gs_buf_add_json(&line, full);
		gs_buf_addc(&line, '\n');
	}
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
	if (fd >= 0 && write(fd, line.data, line.len) < 0)
		return; /* the line on stderr is all there is then */
}

void report_line(const char *program, const char *msg)
{
	struct pollfd pfd = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[GS_ERR_MAX + 64];
	int n;

	/* shorter than PIPE_BUF: after POLLOUT a pipe takes it whole, without waiting */
	n = snprintf(line, sizeof(line), "%s: %s\n", program, msg);
	if (n >= (int)sizeof(line))
		n = (int)sizeof(line) - 1;
	(void)signal(SIGPIPE, SIG_IGN);
	if (poll(&pfd, 1, STDERR_WAIT_MS) == 1 && (pfd.revents & POLLOUT) &&
	    write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* there is nowhere left to say so */
}

void report_error(const struct command *cmd, const char *msg)
{
	report_to_log(cmd, msg);
	report_line("gpushare-runtime", msg);
}
