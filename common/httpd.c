// SPDX-License-Identifier: Apache-2.0
/* An HTTP server in the loop. */
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/httpd.h"
#include "common/xalloc.h"

/* A request's line and headers, and our own: what is longer is 431 or 414. */
#define MAX_MEMORY (16 * 1024)
/* Without a byte; from the first to the last, so that one a second does not keep it for ever. */
#define IDLE_SECONDS 10
#define LIFE_MS 30000
/*
 * libmicrohttpd wants to be called again at once while a TLS handshake waits for its client, too. A
 * timer of 0 ms that starts itself anew is all that libuv 1.44 does then. So often in a row, then
 * only every few milliseconds.
 */
#define ROUNDS 16
#define ROUND_MS 10

struct connection {
	struct connection *next, **at;
	struct httpd_request *request; /* under way; NULL: none */
	struct in6_addr from; /* IPv4's as mapped */
	int fd;
	uint64_t since; /* when it came, or was last answered */
	bool proven; /* it asked something that was answered well */
};

struct httpd_request {
	struct httpd *httpd;
	struct MHD_Connection *connection;
	char *method, *path;
	struct gs_buf body, text;
	const char *type, *allow;
	unsigned int status; /* 0: not answered yet */
	unsigned int refused; /* the status for a body that was too much */
	bool suspended;
	void *data;
};

struct httpd {
	struct httpd_config config;
	struct MHD_Daemon *daemon;
	struct connection *connections;
	unsigned int n; /* of them */
	size_t bodies; /* bytes of bodies that are kept */
	uv_poll_t poll; /* of the epoll descriptor that the daemon waits with */
	uv_timer_t timer;
	unsigned int rounds; /* since something came */
	int open; /* handles */
};

/* ---- Requests. */

const char *httpd_method(const struct httpd_request *request)
{
	return request->method;
}

const char *httpd_path(const struct httpd_request *request)
{
	return request->path;
}

const struct gs_buf *httpd_body(const struct httpd_request *request)
{
	return &request->body;
}

const char *httpd_header(const struct httpd_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

void httpd_set_data(struct httpd_request *request, void *data)
{
	request->data = data;
}

void *httpd_data(const struct httpd_request *request)
{
	return request->data;
}

static void go_on(struct httpd *httpd);

static void on_time(uv_timer_t *timer)
{
	go_on(timer->data);
}

static void drop_body(struct httpd_request *request)
{
	request->httpd->bodies -= request->body.len;
	gs_buf_free(&request->body);
}

static struct connection *connection_of(const struct httpd_request *request)
{
	return MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static enum MHD_Result queue(struct httpd_request *request)
{
	size_t len = request->text.len;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		len, gs_buf_steal(&request->text), MHD_RESPMEM_MUST_FREE);
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	if (request->status == MHD_HTTP_OK && request->httpd->config.keep_s > 0) {
		connection_of(request)->proven = true;
		(void)MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT,
						request->httpd->config.keep_s);
	}
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, request->type);
	/* without it client-go, and so an API server, does not ask again (rest/request.go) */
	if (request->status == MHD_HTTP_SERVICE_UNAVAILABLE)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	if (request->status == MHD_HTTP_UNAUTHORIZED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (request->allow)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->allow);
	ret = MHD_queue_response(request->connection, request->status, response);
	MHD_destroy_response(response);
	return ret;
}

void httpd_answer(struct httpd_request *request, unsigned int status, const char *type,
		  const char *allow, struct gs_buf *text)
{
	request->status = status;
	request->type = type;
	request->allow = allow;
	request->text = *text;
	*text = (struct gs_buf){ 0 };
	drop_body(request);
	if (request->suspended) {
		request->suspended = false;
		MHD_resume_connection(request->connection);
		/* from the loop: who answers may be in the midst of anything */
		(void)uv_timer_start(&request->httpd->timer, on_time, 0, 0);
	}
}

static enum MHD_Result answer_line(struct httpd_request *request, unsigned int status,
				   const char *line)
{
	struct gs_buf text = { 0 };

	gs_buf_adds(&text, line);
	httpd_answer(request, status, "text/plain; charset=utf-8", NULL, &text);
	return queue(request);
}

static enum MHD_Result ask(struct httpd_request *request)
{
	request->httpd->config.request(request, request->httpd->config.arg);
	if (request->status)
		return queue(request);
	request->suspended = true;
	MHD_suspend_connection(request->connection);
	return MHD_YES;
}

static bool has_body(const struct httpd_request *request)
{
	return request->httpd->config.body_max > 0 && strcmp(request->method, "POST") == 0;
}

/* The one with the longest body of those that still come. */
static struct httpd_request *longest(const struct httpd *httpd)
{
	struct httpd_request *ret = NULL;

	for (const struct connection *c = httpd->connections; c; c = c->next)
		if (c->request && !c->request->suspended && !c->request->status &&
		    (!ret || c->request->body.len > ret->body.len))
			ret = c->request;
	return ret;
}

/*
 * What is too much is read on and dropped: only then libmicrohttpd lets us say so. Where all bodies
 * together are, the longest goes: who sends a short one has not filled the room.
 */
static void take(struct httpd_request *request, const char *data, size_t len)
{
	struct httpd *httpd = request->httpd;

	if (request->body.len + len > httpd->config.body_max)
		request->refused = MHD_HTTP_CONTENT_TOO_LARGE;
	while (!request->refused && httpd->bodies + len > httpd->config.bodies_max) {
		struct httpd_request *other = longest(httpd);

		if (!other || other->body.len <= request->body.len + len)
			other = request;
		other->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
		drop_body(other);
	}
	if (request->refused) {
		drop_body(request);
		return;
	}
	gs_buf_add(&request->body, data, len);
	httpd->bodies += len;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **state)
{
	struct httpd *httpd = arg;
	struct httpd_request *request = *state;

	(void)version;
	if (!request) {
		request = gs_calloc(1, sizeof(*request));
		request->httpd = httpd;
		request->connection = connection;
		request->method = gs_strdup(method);
		request->path = gs_strdup(url);
		gs_buf_adds(&request->body, "");
		*state = request;
		connection_of(request)->request = request;
		if (has_body(request))
			return MHD_YES;
		/* Answered before its body is read, a request that has one ends the connection. */
		return ask(request);
	}
	if (request->status)
		return queue(request);
	if (*len) {
		take(request, data, *len);
		*len = 0;
		return MHD_YES;
	}
	if (request->refused == MHD_HTTP_CONTENT_TOO_LARGE)
		return answer_line(request, request->refused, "too long\n");
	if (request->refused)
		return answer_line(request, request->refused, "too much at a time\n");
	return ask(request);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct httpd *httpd = arg;
	struct httpd_request *request = *state;

	(void)connection, (void)code;
	if (!request)
		return;
	connection_of(request)->since = uv_now(httpd->timer.loop);
	connection_of(request)->request = NULL;
	drop_body(request);
	gs_buf_free(&request->text);
	free(request->method);
	free(request->path);
	free(request);
	*state = NULL;
}

/* ---- Connections. */

static struct in6_addr address_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *any = info ? info->client_addr : NULL;
	struct in6_addr ret = { 0 };

	if (any && any->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)(const void *)any)->sin6_addr;
	if (any && any->sa_family == AF_INET) {
		ret.s6_addr[10] = ret.s6_addr[11] = 0xff;
		memcpy(&ret.s6_addr[12], &((const struct sockaddr_in *)(const void *)any)->sin_addr,
		       4);
	}
	return ret;
}

static unsigned int count_from(const struct httpd *httpd, const struct in6_addr *from)
{
	unsigned int n = 0;

	for (const struct connection *c = httpd->connections; c; c = c->next)
		n += IN6_ARE_ADDR_EQUAL(&c->from, from);
	return n;
}

/*
 * The one without a good request that came first goes; where there is none, of the address that has
 * most the one that was silent longest: whoever asks something good from time to time has not all
 * places for it.
 */
static void make_room(struct httpd *httpd)
{
	struct connection *oldest = NULL, *many = NULL;
	unsigned int most = 0;

	for (struct connection *c = httpd->connections; c; c = c->next) {
		unsigned int n = c->proven ? count_from(httpd, &c->from) : 0;

		if (!c->proven && (!oldest || c->since <= oldest->since))
			oldest = c;
		if (n > most || (n > 0 && n == most && c->since <= many->since)) {
			most = n;
			many = c;
		}
	}
	if (!oldest)
		oldest = many;
	if (oldest)
		(void)shutdown(oldest->fd, SHUT_RDWR);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct httpd *httpd = arg;
	struct connection *c = *state;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		if (httpd->n + 1 >= httpd->config.connections)
			make_room(httpd);
		c = gs_calloc(1, sizeof(*c));
		c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		c->from = address_of(connection);
		c->since = uv_now(httpd->timer.loop);
		c->next = httpd->connections;
		c->at = &httpd->connections;
		if (c->next)
			c->next->at = &c->next;
		httpd->connections = c;
		httpd->n++;
		*state = c;
	} else if (c) {
		*c->at = c->next;
		if (c->next)
			c->next->at = c->at;
		free(c);
		httpd->n--;
		*state = NULL;
	}
}

static bool too_old(const struct httpd *httpd, const struct connection *c)
{
	uint64_t more = c->proven ? httpd->config.keep_s * 1000 : 0;

	return uv_now(httpd->timer.loop) - c->since > LIFE_MS + more;
}

/* Lets the daemon do what can be done now, and sees to it that it is called when it wants to. */
static void go_on(struct httpd *httpd)
{
	MHD_UNSIGNED_LONG_LONG wait;
	uint64_t ms = UINT64_MAX;
	unsigned int n;

	for (struct connection *c = httpd->connections; c; c = c->next)
		if (too_old(httpd, c))
			(void)shutdown(c->fd, SHUT_RDWR);
	do {
		n = httpd->n;
		(void)MHD_run(httpd->daemon);
		/* With all places taken it does not listen; it begins to when it runs again. */
	} while (httpd->n < n);
	if (MHD_get_timeout(httpd->daemon, &wait) == MHD_YES)
		ms = wait;
	if (ms == 0 && ++httpd->rounds > ROUNDS)
		ms = ROUND_MS;
	if (httpd->connections && ms > 1000)
		ms = 1000; /* to look at their ages */
	if (ms == UINT64_MAX)
		(void)uv_timer_stop(&httpd->timer);
	else
		(void)uv_timer_start(&httpd->timer, on_time, ms, 0);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct httpd *httpd = poll->data;

	(void)status, (void)events;
	httpd->rounds = 0;
	go_on(httpd);
}

/* ---- Beginning and end. */

static void on_closed(uv_handle_t *handle)
{
	struct httpd *httpd = handle->data;

	if (--httpd->open > 0)
		return;
	/* Last, since it closes the descriptor that the loop was watching. */
	MHD_stop_daemon(httpd->daemon);
	free(httpd);
}

static int start_daemon(struct httpd *httpd, int fd, struct gs_err *err)
{
	const struct httpd_config *config = &httpd->config;
	unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
	/* GnuTLS's own "NORMAL" is decided by the distribution; these two versions by RFC 8996 */
	static char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, versions },
		{ MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (config->certificate) {
		flags |= MHD_USE_TLS;
		/* POSIX has functions and data alike; so has libmicrohttpd */
		memcpy(&tls[1].ptr_value, &config->certificate, sizeof(tls[1].ptr_value));
	} else {
		tls[0] = tls[2];
	}
	httpd->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, httpd,
					 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
					 config->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
					 config->per_address, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
					 (size_t)MAX_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
					 (unsigned int)IDLE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT,
					 1, MHD_OPTION_NOTIFY_CONNECTION, on_connection, httpd,
					 MHD_OPTION_NOTIFY_COMPLETED, on_completed, httpd,
					 MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!httpd->daemon) {
		(void)close(fd);
		return gs_err_set(err, EIO, "starting the HTTP server");
	}
	return 0;
}

int httpd_new(uv_loop_t *loop, int fd, const struct httpd_config *config, struct httpd **ret,
	      struct gs_err *err)
{
	struct httpd *httpd = gs_calloc(1, sizeof(*httpd));
	const union MHD_DaemonInfo *info;
	int code;

	httpd->config = *config;
	code = start_daemon(httpd, fd, err);
	if (code < 0) {
		free(httpd);
		return code;
	}
	info = MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	code = uv_poll_init(loop, &httpd->poll, info->epoll_fd);
	if (code < 0) {
		MHD_stop_daemon(httpd->daemon);
		free(httpd);
		return gs_err_errno(err, -code, "watching the HTTP server");
	}
	(void)uv_timer_init(loop, &httpd->timer);
	httpd->poll.data = httpd;
	httpd->timer.data = httpd;
	httpd->open = 2;
	(void)uv_poll_start(&httpd->poll, UV_READABLE, on_event);
	*ret = httpd;
	return 0;
}

void httpd_free(struct httpd *httpd)
{
	if (!httpd)
		return;
	uv_close((uv_handle_t *)&httpd->poll, on_closed);
	uv_close((uv_handle_t *)&httpd->timer, on_closed);
}
