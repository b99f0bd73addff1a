// SPDX-License-Identifier: Apache-2.0
/* A running gpushare-probe. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/probe.h"
#include "agent/probe_child.h"
#include "common/cleanup.h"
#include "common/config.h"
#include "common/xalloc.h"

struct probe_child {
	uv_process_t process;
	uv_pipe_t in, out;
	unsigned int open; /* handles that are not closed yet */
	bool killed, silent;
	struct probe_child_ops ops;
	struct gs_buf line;
};

struct sending {
	uv_write_t req;
	char data[];
};

static void closed(uv_handle_t *handle)
{
	struct probe_child *child = handle->data;

	if (--child->open)
		return;
	gs_buf_free(&child->line);
	free(child);
}

static void close_all(struct probe_child *child)
{
	uv_handle_t *handles[] = { (uv_handle_t *)&child->process, (uv_handle_t *)&child->in,
				   (uv_handle_t *)&child->out };

	for (size_t i = 0; i < GS_ARRAY_SIZE(handles); i++)
		if (!uv_is_closing(handles[i]))
			uv_close(handles[i], closed);
}

static void exited(uv_process_t *process, int64_t status, int sig)
{
	struct probe_child *child = process->data;
	char how[80];

	if (sig)
		(void)snprintf(how, sizeof(how), "gpushare-probe died of signal %d", sig);
	else
		(void)snprintf(how, sizeof(how), "gpushare-probe ended with status %d",
			       (int)status);
	child->killed = true;
	close_all(child);
	if (!child->silent)
		child->ops.end(how, child->ops.arg);
}

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	(void)handle;
	(void)size;
	buf->len = 4096;
	buf->base = gs_malloc(buf->len);
}

static void wrong(struct probe_child *child, const char *why)
{
	if (!child->killed)
		child->ops.wrong(why, child->ops.arg);
}

/* The owner may kill it in the middle of its lines; the memory stays until the handles close. */
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
		wrong(child, "gpushare-probe prints a line without end");
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
	if (!child->killed)
		(void)uv_process_kill(&child->process, SIGKILL);
}

static void init_handle(struct probe_child *child, void *handle)
{
	((uv_handle_t *)handle)->data = child;
	child->open++;
}

int probe_child_start(uv_loop_t *loop, const char *path, unsigned int command_ms,
		      const struct probe_child_ops *ops, struct probe_child **ret,
		      struct gs_err *err)
{
	struct probe_child *child = gs_calloc(1, sizeof(*child));
	char parent[16], ms[16];
	cleanup_free char *root = NULL;
	char *env[4] = { (char *)"PATH=" GS_SYSTEM_PATH, (char *)"LC_ALL=C" };
	char *args[] = { (char *)path, parent, ms, NULL };
	uv_stdio_container_t stdio[4] = {
		{ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE },
	};
	uv_process_options_t options = {
		.file = path,
		.args = args,
		.env = env,
		.cwd = "/",
		.stdio = stdio,
		.stdio_count = GS_ARRAY_SIZE(stdio),
		.exit_cb = exited,
		/* A session of its own: no terminal's Ctrl-C, and killed as a group. */
		.flags = UV_PROCESS_DETACHED,
	};
	int r;

	(void)snprintf(parent, sizeof(parent), "%d", (int)getpid());
	(void)snprintf(ms, sizeof(ms), "%u", command_ms);
	if (getenv(PROBE_ROOT_ENV)) {
		root = gs_asprintf(PROBE_ROOT_ENV "=%s", getenv(PROBE_ROOT_ENV));
		env[2] = root;
	}
	child->ops = *ops;
	(void)uv_pipe_init(loop, &child->in, 0);
	(void)uv_pipe_init(loop, &child->out, 0);
	init_handle(child, &child->in);
	init_handle(child, &child->out);
	init_handle(child, &child->process);
	stdio[0].data.stream = (uv_stream_t *)&child->in;
	stdio[PROBE_OUT_FD].data.stream = (uv_stream_t *)&child->out;
	r = uv_spawn(loop, &child->process, &options);
	if (r < 0)
		child->process.pid = 0; /* libuv has reaped it: the number may be another's */
	else
		r = uv_read_start((uv_stream_t *)&child->out, give_buffer, has_read);
	if (r < 0) {
		probe_child_abandon(child);
		return gs_err_set(err, -r, "start %s: %s", path, uv_strerror(r));
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
	if (child->killed || uv_write(&sending->req, (uv_stream_t *)&child->in, &buf, 1, written))
		free(sending);
}

void probe_child_kill(struct probe_child *child)
{
	if (child->killed)
		return;
	child->killed = true;
	/* The group first: what a library of it started. */
	(void)kill(-child->process.pid, SIGKILL);
	(void)uv_process_kill(&child->process, SIGKILL);
}

void probe_child_abandon(struct probe_child *child)
{
	int pid = child->process.pid;

	child->silent = true;
	if (pid > 0) {
		probe_child_kill(child);
		/*
		 * The loop no longer waits for it: one that sleeps in a driver would keep us from
		 * ending. Any other is gone in a moment.
		 */
		for (int i = 0; i < 20 && waitpid(pid, NULL, WNOHANG) == 0; i++)
			(void)poll(NULL, 0, 1);
	}
	close_all(child);
}
