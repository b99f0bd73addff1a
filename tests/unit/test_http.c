// SPDX-License-Identifier: Apache-2.0
/* Metrics and health over HTTP: a real loop, and clients in threads. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "agent/http.h"
#include "agent/sandbox.h"
#include "common/cleanup.h"
#include "tests/unit/loop.h"

struct scene {
	uv_loop_t loop;
	struct http *http;
	bool healthy, ready;
	size_t padding; /* bytes of metrics */
	int calls;
};

/* What a client asks, and what it gets. */
struct request {
	struct scene *scene;
	const char *path, *method, *body;
	long status;
	struct gs_buf text, headers;
	char type[128];
};

static void give_metrics(struct gs_buf *out, void *arg)
{
	struct scene *s = arg;

	s->calls++;
	gs_buf_adds(out, "# HELP gpushare_x X.\n");
	for (size_t i = 0; i < s->padding; i++)
		gs_buf_addc(out, 'x');
}

static bool is_healthy(struct gs_buf *why, void *arg)
{
	struct scene *s = arg;

	if (!s->healthy)
		gs_buf_adds(why, "kernel: no heartbeat\n");
	return s->healthy;
}

static bool is_ready(struct gs_buf *why, void *arg)
{
	return ((struct scene *)arg)->ready;
}

static void begin(struct scene *s, const char *address)
{
	const struct http_ops ops = { give_metrics, is_healthy, is_ready, s };
	struct gs_err err = { 0 };

	s->healthy = s->ready = true;
	assert_int_equal(uv_loop_init(&s->loop), 0);
	if (http_new(&s->loop, address, 0, &ops, &s->http, &err) < 0)
		fail_msg("%s", err.msg);
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	begin(s, "127.0.0.1");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	http_free(s->http);
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	free(s);
	return 0;
}

static void request_free(struct request *request)
{
	gs_buf_free(&request->text);
	gs_buf_free(&request->headers);
}
#define cleanup_request __attribute__((cleanup(request_free)))

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	gs_buf_add(arg, data, size * n);
	return size * n;
}

static void curl_in_thread(uv_work_t *work)
{
	struct request *r = work->data;
	CURL *curl = curl_easy_init();
	char url[128];
	char *type = NULL;

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", http_port(r->scene->http),
		       r->path);
	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &r->text);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, &r->headers);
	if (r->method && strcmp(r->method, "HEAD") == 0)
		(void)curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	else if (r->method)
		(void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
	if (r->body)
		(void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->body);
	if (curl_easy_perform(curl) == CURLE_OK) {
		(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &r->status);
		(void)curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
		(void)snprintf(r->type, sizeof(r->type), "%s", type ? type : "");
	}
	curl_easy_cleanup(curl);
}

static void stop_after(uv_work_t *work, int status)
{
	uv_stop(work->loop);
}

/* Runs @f in a thread, and the loop until it is done. */
static void in_thread(struct scene *s, void (*f)(uv_work_t *), void *data)
{
	uv_work_t work = { .data = data };

	(void)uv_queue_work(&s->loop, &work, f, stop_after);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
}

static void ask(struct scene *s, struct request *r)
{
	r->scene = s;
	in_thread(s, curl_in_thread, r);
}

static void metrics(void **state)
{
	cleanup_request struct request r = { .path = "/metrics" },
				       again = { .path = "/metrics?a=b" };
	struct scene *s = *state;

	ask(s, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.text.data, "# HELP gpushare_x X.\n");
	assert_string_equal(r.type, "text/plain; version=0.0.4; charset=utf-8");
	ask(s, &again);
	assert_int_equal(again.status, 200);
	assert_int_equal(s->calls, 2);
}

/* More than a socket's buffer takes at once. */
static void much(void **state)
{
	cleanup_request struct request r = { .path = "/metrics" };
	struct scene *s = *state;

	s->padding = 20000000;
	ask(s, &r);
	assert_int_equal(r.status, 200);
	assert_int_equal(r.text.len, 20000000 + strlen("# HELP gpushare_x X.\n"));
}

static void health(void **state)
{
	cleanup_request struct request ok = { .path = "/healthz" }, ready = { .path = "/readyz" };
	cleanup_request struct request ill = { .path = "/healthz" }, late = { .path = "/readyz" };
	struct scene *s = *state;

	ask(s, &ok);
	assert_int_equal(ok.status, 200);
	assert_string_equal(ok.text.data, "ok\n");
	assert_string_equal(ok.type, "text/plain; charset=utf-8");
	s->healthy = false;
	ask(s, &ill);
	assert_int_equal(ill.status, 503);
	assert_string_equal(ill.text.data, "kernel: no heartbeat\n");
	ask(s, &ready);
	assert_int_equal(ready.status, 200);
	s->ready = false;
	ask(s, &late);
	assert_int_equal(late.status, 503);
	assert_string_equal(late.text.data, "not ok\n");
}

static void anything_else(void **state)
{
	static const char *const pages[] = { "/",	   "/metrics/",	   "/metric",
					     "/healthz/x", "/debug/pprof", "/metrics%2f" };
	static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS", "BREW" };
	struct scene *s = *state;

	for (size_t i = 0; i < GS_ARRAY_SIZE(pages); i++) {
		cleanup_request struct request r = { .path = pages[i] };

		ask(s, &r);
		assert_int_equal(r.status, 404);
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(methods); i++) {
		cleanup_request struct request r = { .path = "/metrics", .method = methods[i] };

		r.body = i < 2 ? "a body" : NULL;
		ask(s, &r);
		assert_int_equal(r.status, 405);
		assert_non_null(strstr(r.headers.data, "Allow: GET, HEAD\r\n"));
	}
	assert_int_equal(s->calls, 0);
}

static void head(void **state)
{
	cleanup_request struct request r = { .path = "/metrics", .method = "HEAD" };
	struct scene *s = *state;

	ask(s, &r);
	assert_int_equal(r.status, 200);
	assert_int_equal(r.text.len, 0);
	assert_non_null(strstr(r.headers.data, "Content-Length: 21\r\n"));
}

static int connect_to(const struct scene *s)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(http_port(s->http)),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		abort();
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* Sends @r->body as it is; the answer is what comes until the end. */
static void raw_in_thread(uv_work_t *work)
{
	struct request *r = work->data;
	cleanup_close int fd = connect_to(r->scene);
	char piece[4096];
	ssize_t n;

	(void)send(fd, r->body, strlen(r->body), MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
		gs_buf_add(&r->text, piece, (size_t)n);
}

/* @head, and @piece as often as there is room for it. */
static void fill(char *buf, size_t size, const char *head, const char *piece)
{
	size_t n = (size_t)snprintf(buf, size, "%s", head);

	while (n + strlen(piece) < size)
		n += (size_t)snprintf(buf + n, size - n, "%s", piece);
}

static void bad_requests(void **state)
{
	static char long_header[70000], long_path[70000], many[70000];
	const char *const requests[] = { long_header,
					 long_path,
					 many,
					 "rubbish\r\n\r\n",
					 "GET /metrics HTTP/1.1\r\n\r\n", /* no Host */
					 "\x16\x03\x01\x02\xfc\r\n\r\n" };
	struct scene *s = *state;

	fill(long_header, sizeof(long_header), "GET /metrics HTTP/1.1\r\nHost: ", "h");
	fill(long_path, sizeof(long_path), "GET /", "p");
	fill(many, sizeof(many), "GET /metrics HTTP/1.1\r\nHost: x\r\n", "A: b\r\n");
	for (size_t i = 0; i < GS_ARRAY_SIZE(requests); i++) {
		cleanup_request struct request r = { .scene = s, .body = requests[i] };

		in_thread(s, raw_in_thread, &r);
		/* refused, with an answer or without one */
		if (r.text.len && strncmp(r.text.data, "HTTP/1.", 7) == 0)
			if (atoi(r.text.data + 9) / 100 != 4)
				fail_msg("request %zu: %.60s", i, r.text.data);
	}
	assert_int_equal(s->calls, 0);
	{
		cleanup_request struct request r = { .path = "/metrics" };

		ask(s, &r); /* and it lives */
		assert_int_equal(r.status, 200);
	}
}

/* Connections that say nothing: those beyond the bound wait, and when some have gone it goes on. */
static void crowd_in_thread(uv_work_t *work)
{
	struct request *r = work->data;
	static int fds[40];

	for (int i = 0; i < 40; i++)
		fds[i] = connect_to(r->scene);
	(void)usleep(200000);
	for (int i = 0; i < 40; i++)
		(void)close(fds[i]);
	curl_in_thread(work);
}

static void crowd(void **state)
{
	cleanup_request struct request r = { .path = "/metrics", .scene = *state };

	in_thread(*state, crowd_in_thread, &r);
	assert_int_equal(r.status, 200);
}

/* One that is silent is hung up on; and what does so is no busy loop. */
static void silent_in_thread(uv_work_t *work)
{
	struct request *r = work->data;
	cleanup_close int fd = connect_to(r->scene);
	char byte;

	(void)send(fd, "GET ", 4, MSG_NOSIGNAL);
	r->status = recv(fd, &byte, 1, 0) == 0;
}

/* How far the server's clock is ahead. */
static _Atomic uint64_t skew_ms;

uint64_t __real_uv_now(const uv_loop_t *loop);
uint64_t __wrap_uv_now(const uv_loop_t *loop);

uint64_t __wrap_uv_now(const uv_loop_t *loop)
{
	return __real_uv_now(loop) + skew_ms;
}

/* A byte now and then; gives how many until it is hung up on. */
static void slow_in_thread(uv_work_t *work)
{
	struct request *r = work->data;
	cleanup_close int fd = connect_to(r->scene);
	char byte;

	(void)send(fd, "GET /", 5, MSG_NOSIGNAL);
	for (r->status = 0; r->status < 50; r->status++) {
		if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
			return;
		if (r->status == 10)
			skew_ms = 31000;
		(void)send(fd, "x", 1, MSG_NOSIGNAL);
		(void)usleep(100000);
	}
}

static void slow_ones_go(void **state)
{
	cleanup_request struct request r = { .scene = *state };

	in_thread(*state, slow_in_thread, &r);
	skew_ms = 0;
	assert_in_range(r.status, 11, 40);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void silent_ones_go(void **state)
{
	cleanup_request struct request r = { .scene = *state };
	double before = cpu_seconds();

	in_thread(*state, silent_in_thread, &r);
	assert_int_equal(r.status, 1);
	assert_true(cpu_seconds() - before < 0.5);
}

/* With nobody there it sleeps. */
static void idle(void **state)
{
	struct scene *s = *state;
	double before = cpu_seconds();

	(void)loop_run(&s->loop, 500);
	assert_true(cpu_seconds() - before < 0.1);
}

/* It is stopped while somebody is connected. */
static void free_with_connections(void **state)
{
	struct scene *s = *state;
	cleanup_close int fd = connect_to(s);
	char byte;

	(void)send(fd, "GET ", 4, MSG_NOSIGNAL);
	(void)uv_run(&s->loop, UV_RUN_ONCE);
	http_free(gs_steal(s->http));
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	http_free(NULL);
}

static void where_it_listens(void **state)
{
	static const struct {
		const char *address;
		int code;
		const char *msg;
	} cases[] = {
		{ "0.0.0.0", -EPERM,
		  "will not serve metrics at 0.0.0.0: only at 127.0.0.1 or ::1, for there is no "
		  "TLS" },
		{ "::", -EPERM, "will not serve metrics at ::" },
		{ "10.1.2.3", -EPERM, "will not serve metrics at 10.1.2.3" },
		{ "::ffff:127.0.0.1", -EPERM, "will not serve metrics at ::ffff:127.0.0.1" },
		{ "fe80::1", -EPERM, "will not serve metrics at fe80::1" },
		{ "localhost", -EINVAL, "\"localhost\" is no IP address to serve metrics at" },
		{ "", -EINVAL, "\"\" is no IP address to serve metrics at" },
		{ "127.0.0.1:80", -EINVAL, "\"127.0.0.1:80\" is no IP address" },
		{ "127.0.0.2", 0, NULL },
		{ "::1", 0, NULL },
	};
	const struct http_ops ops = { give_metrics, is_healthy, is_ready, *state };
	struct scene *s = *state;

	for (size_t i = 0; i < GS_ARRAY_SIZE(cases); i++) {
		struct http *http = NULL;
		struct gs_err err = { 0 };
		int r = http_new(&s->loop, cases[i].address, 0, &ops, &http, &err);

		/* a machine without IPv6 is no fault of ours */
		if (strcmp(cases[i].address, "::1") == 0 &&
		    (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT))
			continue;
		http_free(http);
		assert_int_equal(r, cases[i].code);
		if (cases[i].msg)
			assert_memory_equal(err.msg, cases[i].msg, strlen(cases[i].msg));
	}
	{
		char want[64];
		struct http *http = NULL;
		struct gs_err err = { 0 };

		assert_int_equal(http_new(&s->loop, "127.0.0.1", http_port(s->http), &ops, &http,
					  &err),
				 -EADDRINUSE);
		(void)snprintf(want, sizeof(want),
			       "serving metrics at 127.0.0.1, port %u: ", http_port(s->http));
		assert_memory_equal(err.msg, want, strlen(want));
	}
}

static void print_denied(const char *call, uint64_t count, void *arg)
{
	(void)fprintf(stderr, "denied: %s\n", call);
}

/* Server and client live with the agent's filter. */
static void in_the_sandbox(void **state)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct request r = { .path = "/metrics" };
		struct scene s = { 0 };
		struct gs_err err;

		if (sandbox_filter(&err) < 0)
			_exit(1);
		begin(&s, "127.0.0.1");
		s.padding = 3000000;
		ask(&s, &r);
		http_free(s.http);
		(void)uv_run(&s.loop, UV_RUN_DEFAULT);
		sandbox_denied_each(print_denied, NULL);
		_exit(r.status != 200 ? 2 : sandbox_denied() ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_sandbox), /* first: before the pool's threads */
		TEST(metrics),
		TEST(much),
		TEST(health),
		TEST(anything_else),
		TEST(head),
		TEST(bad_requests),
		TEST(crowd),
		TEST(silent_ones_go),
		TEST(slow_ones_go),
		TEST(idle),
		TEST(free_with_connections),
		TEST(where_it_listens),
	};

	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
