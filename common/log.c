// SPDX-License-Identifier: Apache-2.0
/* A program's own log. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/log.h"

static int log_fd = -1;
static enum gs_log_level log_level;
static unsigned int dropped; /* lines, since the last one that was written */

void gs_log_open(enum gs_log_level level, const char *file)
{
	struct stat st;

	if (log_fd >= 0 && log_fd != STDERR_FILENO)
		(void)close(log_fd);
	log_level = level;
	log_fd = -1;
	if (!file)
		return;
	/* O_NONBLOCK: a FIFO without a reader must not stop every container of the node */
	log_fd =
		open(file,
		     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		     0640);
	if (log_fd >= 0 && (fstat(log_fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		(void)close(log_fd);
		log_fd = -1;
	}
}

void gs_log_time(char ret[40])
{
	struct timespec ts;
	struct tm tm;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	(void)gmtime_r(&ts.tv_sec, &tm);
	n = strftime(ret, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(ret + n, 40 - n, ".%09ldZ", ts.tv_nsec);
}

void gs_log_to_stderr(enum gs_log_level level)
{
	gs_log_open(level, NULL);
	log_fd = STDERR_FILENO;
}

static void begin_line(struct gs_buf *line, enum gs_log_level level, const char *msg)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char when[40];

	gs_log_time(when);
	gs_buf_addf(line,
		    "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"pid\":%d,\"msg\":",
		    when, names[level], program_invocation_short_name, (int)getpid());
	gs_buf_add_json(line, msg);
}

/* Ends the line and writes it, or leaves it: see gs_log_open() and gs_log_to_stderr(). */
static void end_line(struct gs_buf *line)
{
	struct pollfd out = { .fd = log_fd, .events = POLLOUT };

	if (dropped)
		gs_buf_addf(line, ",\"dropped\":%u", dropped);
	gs_buf_adds(line, "}\n");
	/* A regular file always has room; the journal's socket, or a pipe, may be full. */
	if (poll(&out, 1, 0) == 1 && out.revents & POLLOUT &&
	    write(log_fd, line->data, line->len) >= 0)
		dropped = 0;
	else
		dropped++;
}

static bool is_wanted(enum gs_log_level level)
{
	return log_fd >= 0 && level <= log_level;
}

void gs_log(enum gs_log_level level, const char *fmt, ...)
{
	cleanup_buf struct gs_buf line = { 0 };
	int saved = errno;
	char msg[2048];
	va_list ap;

	if (!is_wanted(level))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	begin_line(&line, level, msg);
	end_line(&line);
	errno = saved;
}

void gs_log_fields(enum gs_log_level level, const char *msg, ...)
{
	cleanup_buf struct gs_buf line = { 0 };
	int saved = errno;
	const char *key;
	va_list ap;

	if (!is_wanted(level))
		return;
	begin_line(&line, level, msg);
	va_start(ap, msg);
	while ((key = va_arg(ap, const char *)) != NULL) {
		const char *value = va_arg(ap, const char *);

		if (!value)
			continue;
		gs_buf_addf(&line, ",\"%s\":", key);
		gs_buf_add_json(&line, value);
	}
	va_end(ap);
	end_line(&line);
	errno = saved;
}
