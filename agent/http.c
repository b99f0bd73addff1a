// SPDX-License-Identifier: Apache-2.0
/* Metrics and health over HTTP: libmicrohttpd without threads, driven by the loop. */
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/http.h"
#include "agent/http_address.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* Prometheus needs one; a few people with curl, and those who forget to hang up. */
#define MAX_CONNECTIONS 32
/* A request, and our headers: what is longer is 431 or 414. */
#define MAX_MEMORY (16 * 1024)
/* Without a byte; from the first to the last, so that one a second does not keep it for ever. */
#define IDLE_SECONDS 10
#define LIFE_MS 30000

struct connection {
	struct connection *next, **at;
	int fd;
	uint64_t since;
};

struct http {
	struct http_ops ops;
	struct MHD_Daemon *daemon;
	struct connection *connections;
	unsigned int n; /* of them */
	uv_poll_t poll; /* of the epoll descriptor that the daemon waits with */
	uv_timer_t timer;
	uint16_t port;
	int open; /* handles */
};

static const char plain[] = "text/plain; charset=utf-8";

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status,
			      const char *type, struct gs_buf *text)
{
	size_t len = text->len;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, gs_buf_steal(text), MHD_RESPMEM_MUST_FREE);
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned int status,
				   const char *line)
{
	cleanup_buf struct gs_buf text = { 0 };

	gs_buf_adds(&text, line);
	return answer(connection, status, plain, &text);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_len, void **state)
{
	struct http *http = arg;
	cleanup_buf struct gs_buf text = { 0 };
	bool metrics = strcmp(url, "/metrics") == 0;
	bool healthz = strcmp(url, "/healthz") == 0;
	bool ok;

	(void)version, (void)body, (void)body_len, (void)state;
	if (!metrics && !healthz && strcmp(url, "/readyz") != 0)
		return answer_text(connection, MHD_HTTP_NOT_FOUND, "no such page\n");
	/* Answered before its body is read, a request that has one ends the connection. */
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (metrics) {
		http->ops.metrics(&text, http->ops.arg);
		return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
			      &text);
	}
	ok = healthz ? http->ops.healthy(&text, http->ops.arg) :
		       http->ops.ready(&text, http->ops.arg);
	if (text.len == 0)
		gs_buf_adds(&text, ok ? "ok\n" : "not ok\n");
	return answer(connection, ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, plain, &text);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http *http = arg;
	struct connection *c = *state;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c = gs_calloc(1, sizeof(*c));
		c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		c->since = uv_now(http->timer.loop);
		c->next = http->connections;
		c->at = &http->connections;
		if (c->next)
			c->next->at = &c->next;
		http->connections = c;
		http->n++;
		*state = c;
	} else if (c) {
		*c->at = c->next;
		if (c->next)
			c->next->at = c->at;
		free(c);
		http->n--;
		*state = NULL;
	}
}

static void on_time(uv_timer_t *timer);

/* Lets the daemon do what can be done now, and sees to it that it is called when it wants to. */
static void go_on(struct http *http)
{
	MHD_UNSIGNED_LONG_LONG wait;
	uint64_t ms = UINT64_MAX;
	unsigned int n;

	for (struct connection *c = http->connections; c; c = c->next)
		if (uv_now(http->timer.loop) - c->since > LIFE_MS)
			(void)shutdown(c->fd, SHUT_RDWR);
	do {
		n = http->n;
		(void)MHD_run(http->daemon);
		/* With all places taken it does not listen; it begins to when it runs again. */
	} while (http->n < n);
	if (MHD_get_timeout(http->daemon, &wait) == MHD_YES)
		ms = wait;
	if (http->connections && ms > 1000)
		ms = 1000; /* to look at their ages */
	if (ms == UINT64_MAX)
		(void)uv_timer_stop(&http->timer);
	else
		(void)uv_timer_start(&http->timer, on_time, ms, 0);
}

static void on_time(uv_timer_t *timer)
{
	go_on(timer->data);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	go_on(poll->data);
}

static void on_closed(uv_handle_t *handle)
{
	struct http *http = handle->data;

	if (--http->open > 0)
		return;
	/* Last, since it closes the descriptor that the loop was watching. */
	MHD_stop_daemon(http->daemon);
	free(http);
}

static int start_daemon(struct http *http, int fd, struct gs_err *err)
{
	http->daemon =
		MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, http,
				 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned int)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				 (size_t)MAX_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
				 (unsigned int)IDLE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT, 1,
				 MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
	if (!http->daemon)
		return gs_err_set(err, EIO, "starting the HTTP server");
	return 0;
}

int http_new(uv_loop_t *loop, const char *address, uint16_t port, const struct http_ops *ops,
	     struct http **ret, struct gs_err *err)
{
	const union MHD_DaemonInfo *info;
	struct http *http;
	int fd, code;

	code = http_listen(address, port, &fd, &port, err);
	if (code < 0)
		return code;
	http = gs_calloc(1, sizeof(*http));
	http->ops = *ops;
	http->port = port;
	code = start_daemon(http, fd, err);
	if (code < 0) {
		free(http);
		return code;
	}
	info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	code = uv_poll_init(loop, &http->poll, info->epoll_fd);
	if (code < 0) {
		MHD_stop_daemon(http->daemon);
		free(http);
		return gs_err_errno(err, -code, "watching the HTTP server");
	}
	(void)uv_timer_init(loop, &http->timer);
	http->poll.data = http;
	http->timer.data = http;
	http->open = 2;
	(void)uv_poll_start(&http->poll, UV_READABLE, on_event);
	*ret = http;
	return 0;
}

uint16_t http_port(const struct http *http)
{
	return http->port;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	uv_close((uv_handle_t *)&http->poll, on_closed);
	uv_close((uv_handle_t *)&http->timer, on_closed);
}
