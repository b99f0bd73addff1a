// SPDX-License-Identifier: Apache-2.0
/* A running gpushare-probe. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/probe.h"
#include "agent/probe_child.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

struct probe_child {
	struct spawner *spawner;
	struct spawner_child *process; /* NULL: it has ended */
	uv_pipe_t pipe; /* its stdin and stdout */
	bool pipe_closed;
	bool killed; /* nothing is read any more */
	bool silent; /* nobody wants to know of it */
	struct probe_child_ops ops;
	struct gs_buf line;
};

struct sending {
	uv_write_t req;
	char data[];
};

/* Once the process has ended and the loop has closed the pipe. */
static void free_at_last(struct probe_child *child)
{
	if (child->process || !child->pipe_closed)
		return;
	gs_buf_free(&child->line);
	free(child);
}

static void pipe_closed(uv_handle_t *handle)
{
	struct probe_child *child = handle->data;

	child->pipe_closed = true;
	free_at_last(child);
}

static void close_pipe(struct probe_child *child)
{
	if (!uv_is_closing((uv_handle_t *)&child->pipe))
		uv_close((uv_handle_t *)&child->pipe, pipe_closed);
}

static void ended(int status, void *arg)
{
	struct probe_child *child = arg;
	char how[80];

	if (WIFSIGNALED(status))
		(void)snprintf(how, sizeof(how), "gpushare-probe died of signal %d",
			       WTERMSIG(status));
	else if (WEXITSTATUS(status) == 127)
		(void)snprintf(how, sizeof(how), "gpushare-probe can't be run");
	else
		(void)snprintf(how, sizeof(how), "gpushare-probe ended with status %d",
			       WEXITSTATUS(status));
	child->process = NULL;
	child->killed = true;
	close_pipe(child);
	if (!child->silent)
		child->ops.end(how, child->ops.arg);
	free_at_last(child);
}

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	(void)handle;
	(void)size;
	buf->len = 4096;
	buf->base = gs_malloc(buf->len);
}

/* The owner may kill it in the middle of its lines; the memory stays until the pipe is closed. */
static void take_lines(struct probe_child *child, size_t from)
{
	struct gs_buf *line = &child->line;
	char *start = line->data, *end = line->data + line->len;
	char *newline = memchr(line->data + from, '\n', line->len - from);

	for (; newline && !child->killed; newline = memchr(start, '\n', (size_t)(end - start))) {
		child->ops.line(start, (size_t)(newline - start), child->ops.arg);
		start = newline + 1;
	}
	if (child->killed) {
		gs_buf_free(line);
		return;
	}
	memmove(line->data, start, (size_t)(end - start));
	line->len = (size_t)(end - start);
	if (line->len > PROBE_LINE_MAX)
		child->ops.wrong("gpushare-probe prints a line without end", child->ops.arg);
	else if (!line->len)
		gs_buf_free(line);
}

static void has_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct probe_child *child = stream->data;

	if (n > 0 && !child->killed) {
		size_t from = child->line.len;

		gs_buf_add(&child->line, buf->base, (size_t)n);
		take_lines(child, from);
	}
	free(buf->base);
	if (n >= 0)
		return;
	/* Without its end it would say nothing any more, and perhaps live for ever. */
	(void)uv_read_stop(stream);
	if (child->process && !child->killed)
		spawner_kill(child->spawner, child->process);
}

/* The pipe is the loop's from here on, also where the rest fails. */
static int open_pipe(uv_loop_t *loop, struct probe_child *child, int fd)
{
	int r;

	(void)uv_pipe_init(loop, &child->pipe, 0);
	child->pipe.data = child;
	r = uv_pipe_open(&child->pipe, fd);
	if (r < 0)
		(void)close(fd);
	return r < 0 ? r : uv_read_start((uv_stream_t *)&child->pipe, give_buffer, has_read);
}

int probe_child_start(uv_loop_t *loop, struct spawner *spawner, const char *path,
		      unsigned int command_ms, const struct probe_child_ops *ops,
		      struct probe_child **ret, struct gs_err *err)
{
	struct probe_child *child;
	char parent[16], ms[16];
	const char *const args[] = { path, parent, ms, NULL };
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return gs_err_errno(err, errno, "socketpair");
	(void)snprintf(parent, sizeof(parent), "%d", (int)getpid());
	(void)snprintf(ms, sizeof(ms), "%u", command_ms);
	child = gs_calloc(1, sizeof(*child));
	child->spawner = spawner;
	child->ops = *ops;
	r = open_pipe(loop, child, fds[0]);
	if (r < 0)
		r = gs_err_set(err, -r, "start %s: %s", path, uv_strerror(r));
	else
		r = spawner_run(spawner, args, fds[1], fds[1], ended, child, &child->process, err);
	(void)close(fds[1]);
	if (r < 0) {
		child->killed = true;
		close_pipe(child);
		return r;
	}
	*ret = child;
	return 0;
}

static void written(uv_write_t *req, int status)
{
	(void)status;
	free(req);
}

void probe_child_send(struct probe_child *child, const char *line, size_t len)
{
	struct sending *sending = gs_malloc(sizeof(*sending) + len);
	uv_buf_t buf = uv_buf_init(sending->data, (unsigned int)len);

	memcpy(sending->data, line, len);
	/* Where it can't be written, the end of the child tells more. */
	if (child->killed ||
	    uv_write(&sending->req, (uv_stream_t *)&child->pipe, &buf, 1, written) < 0)
		free(sending);
}

void probe_child_kill(struct probe_child *child)
{
	if (child->killed)
		return;
	child->killed = true;
	spawner_kill(child->spawner, child->process);
}

void probe_child_abandon(struct probe_child *child)
{
	child->silent = true;
	probe_child_kill(child);
	close_pipe(child);
}
