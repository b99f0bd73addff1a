// SPDX-License-Identifier: Apache-2.0
/*
 * One request, tried again until the server gave a final answer.
 *
 * HTTP/1.1 with a connection for each request under way: with HTTP/2 the one connection of a watch
 * that the network has lost would take the deletes along.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "kube/impl.h"
#include "common/xalloc.h"

#define SAID_MAX (64 << 10)

static void tell_health(struct kube *kube, bool ok, const char *why)
{
	if (kube->health == ok)
		return;
	kube->health = ok;
	if (kube->ops.health)
		kube->ops.health(ok, why, kube->ops.arg);
}

static void set_failing(struct kube_request *req, bool failing, const char *why)
{
	struct kube *kube = req->kube;

	if (failing && !req->failing)
		kube->n_failing++;
	else if (!failing && req->failing)
		kube->n_failing--;
	req->failing = failing;
	if (failing)
		tell_health(kube, false, why);
}

void kube_request_well(struct kube_request *req)
{
	set_failing(req, false, NULL);
	if (req->kube->n_failing == 0)
		tell_health(req->kube, true, NULL);
}

/* libcurl's own low-speed limit wakes up each second of a watch that waits for minutes. */
static void on_stall(uv_timer_t *timer)
{
	struct kube_request *req = timer->data;

	(void)snprintf(req->curl_error, sizeof(req->curl_error), "nothing came for %u ms",
		       (unsigned int)uv_timer_get_repeat(timer));
	kube_request_ended(req, CURLE_OPERATION_TIMEDOUT);
}

/* Ends this try when nothing comes for @ms; each byte begins it anew. */
static void allow_silence(struct kube_request *req, unsigned int ms)
{
	(void)uv_timer_start(&req->timer, on_stall, ms, ms);
}

/* ---- What libcurl calls amid a transfer: nothing here may call its multi interface. */

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct kube_request *req = arg;
	size_t len = size * n, room = SAID_MAX - req->said.len;

	(void)uv_timer_again(&req->timer);
	if (!req->good) {
		gs_buf_add(&req->said, data, len < room ? len : room);
		return len;
	}
	if (req->data && req->data_error == 0)
		req->data_error = req->data(req, data, len);
	return req->data_error == 0 ? len : 0;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct kube_request *req = arg;
	size_t len = size * n;
	long status = 0;

	(void)uv_timer_again(&req->timer);
	if (len == 0 || (data[0] != '\r' && data[0] != '\n'))
		return len;
	/* The headers' end. */
	(void)curl_easy_getinfo(req->easy, CURLINFO_RESPONSE_CODE, &status);
	req->good = status >= 200 && status < 300;
	if (req->good) {
		req->reauthorized = false;
		allow_silence(req, req->stall_ms);
		kube_request_well(req);
	}
	return len;
}

/*
 * A server that lost power or a firewall that forgot us sends no FIN. A watch that waits learns of
 * it from keepalives, a request under way from what stays without an acknowledgement. And children
 * of the agent inherit nothing.
 */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype what)
{
	static const int probes = 3, unacknowledged_ms = 30000;

	(void)arg;
	(void)what;
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
			 sizeof(unacknowledged_ms));
	return CURL_SOCKOPT_OK;
}

/* ---- A try. */

static void set_headers(struct kube_request *req, const char *token)
{
	char *type = NULL;

	req->headers = curl_slist_append(NULL, token);
	req->headers = curl_slist_append(req->headers, "Accept: application/json");
	if (req->body.len > 0) {
		type = gs_asprintf("Content-Type: %s", req->content_type);
		req->headers = curl_slist_append(req->headers, type);
		free(type);
	}
	(void)curl_easy_setopt(req->easy, CURLOPT_HTTPHEADER, req->headers);
}

static void set_options(struct kube_request *req, const char *token)
{
	struct kube *kube = req->kube;
	CURL *easy = req->easy;
	char *url = gs_asprintf("%s%s", kube->config.server, req->path);

	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	free(url);
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, req);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, req->curl_error);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, kube->user_agent);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* The token goes to this server alone: no redirects, no proxies of the environment. */
	(void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075500
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	if (kube->config.ca_file) {
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, kube->config.ca_file);
		/* Not beside those that the system trusts, which libcurl may be built to do. */
		(void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
#if LIBCURL_VERSION_NUM >= 0x075700
	/* The authority may be replaced as the token is: not known from yesterday. */
	(void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)kube->tune.ca_s);
	/* A thread that still asks for the name is left alone, not waited for. */
	(void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)kube->tune.connect_ms);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
	(void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, req);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, req);
	if (req->body.len > 0) {
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)req->body.len);
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, req->body.data);
	}
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
	set_headers(req, token);
}

static void stop(struct kube_request *req)
{
	(void)uv_timer_stop(&req->timer);
	if (!req->easy)
		return;
	(void)curl_multi_remove_handle(req->kube->multi, req->easy);
	curl_easy_cleanup(req->easy);
	req->easy = NULL;
	curl_slist_free_all(req->headers);
	req->headers = NULL;
}

static void on_start(uv_timer_t *timer)
{
	struct kube_request *req = timer->data;
	struct gs_err err = { 0 };
	const char *token;

	req->good = false;
	req->begin = kube_now(req->kube);
	req->data_error = 0;
	req->curl_error[0] = '\0';
	gs_buf_free(&req->said);
	if (req->prepare)
		req->prepare(req);
	if (kube_token(req->kube, &token, &err) < 0) {
		kube_request_again(req, err.msg, 0);
		return;
	}
	req->easy = curl_easy_init();
	if (!req->easy)
		abort();
	set_options(req, token);
	allow_silence(req, req->kube->tune.stall_ms);
	(void)curl_multi_add_handle(req->kube->multi, req->easy);
}

/* ---- Its end. */

static bool is_transient(long status)
{
	return status == 408 || status == 429 || status >= 500;
}

/*
 * Until a server that has just started knows all roles, it answers 403 to who will be allowed, for
 * some seconds (k8s.io/kubernetes, plugin/pkg/auth/authorizer/rbac: its informers). Only one that
 * stays at it means it.
 */
static bool is_forbidden_yet(struct kube_request *req, long status)
{
	uint64_t now = kube_now(req->kube);

	if (status != 403) {
		req->forbidden = 0;
		return false;
	}
	if (req->forbidden == 0)
		req->forbidden = now;
	return now - req->forbidden < req->forbidden_ms;
}

/* No answer, or one that broke off. */
static void broken(struct kube_request *req, CURLcode code)
{
	struct kube_answer answer = { .message = "" };
	char *why;

	if (req->data_error != 0) {
		answer.r = req->data_error;
		answer.err.code = -req->data_error;
		req->done(req, &answer);
		return;
	}
	if (req->quiet_ok && req->good && code == CURLE_OPERATION_TIMEDOUT) {
		answer.status = 200;
		req->done(req, &answer);
		return;
	}
	why = gs_asprintf("%s %.*s: %s", req->method, (int)strcspn(req->path, "?"), req->path,
			  req->curl_error[0] ? req->curl_error : curl_easy_strerror(code));
	kube_request_again(req, why, 0);
	free(why);
}

void kube_request_ended(struct kube_request *req, CURLcode code)
{
	struct kube_answer answer = { .message = "" };
	curl_off_t after_s = 0;
	long status = 0;
	char *message = NULL;

	(void)curl_easy_getinfo(req->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(req->easy, CURLINFO_RETRY_AFTER, &after_s);
	stop(req);
	if (req->good && kube_now(req->kube) - req->begin >= req->kube->tune.watch_short_ms)
		req->failures = 0;
	if (code != CURLE_OK) {
		broken(req, code);
		return;
	}
	answer.status = status;
	if (status < 200 || status >= 300)
		kube_status(req, status, &answer, &message);
	/* The token may have been replaced within the granularity of its file's times. */
	if (status == 401)
		kube_token_forget(req->kube);
	if (status == 401 && !req->reauthorized) {
		req->reauthorized = true;
		(void)uv_timer_start(&req->timer, on_start, 0, 0);
	} else if (is_transient(status) || is_forbidden_yet(req, status)) {
		/* bounded here against an overflow, and to what we stand in kube_request_again() */
		after_s = after_s < 0 || after_s > 86400 ? 86400 : after_s;
		kube_request_again(req, answer.err.msg, (uint64_t)after_s * 1000);
	} else {
		req->done(req, &answer);
	}
	free(message);
}

/* ---- For its owner. */

void kube_request_init(struct kube *kube, struct kube_request *req)
{
	req->kube = kube;
	(void)uv_timer_init(kube->loop, &req->timer);
	req->timer.data = req;
	kube->n_handles++;
}

void kube_request_start(struct kube_request *req, uint64_t delay_ms)
{
	req->reauthorized = false;
	req->forbidden = 0;
	(void)uv_timer_start(&req->timer, on_start, delay_ms, 0);
}

void kube_request_again(struct kube_request *req, const char *why, uint64_t at_least_ms)
{
	const struct kube_tune *tune = &req->kube->tune;
	uint64_t pause = tune->backoff_min_ms;

	for (unsigned int i = 0; i < req->failures && pause < tune->backoff_max_ms; i++)
		pause *= 2;
	req->failures++;
	/* Not all nodes at the same moment. */
	pause += kube_random((unsigned int)pause / 2 + 1);
	if (pause > tune->backoff_max_ms)
		pause = tune->backoff_max_ms - kube_random(tune->backoff_max_ms / 4 + 1);
	if (at_least_ms > tune->retry_after_max_ms)
		at_least_ms = tune->retry_after_max_ms;
	if (pause < at_least_ms)
		pause = at_least_ms + kube_random(tune->backoff_min_ms);
	(void)uv_timer_start(&req->timer, on_start, pause, 0);
	if (why)
		set_failing(req, true, why);
}

static void on_closed(uv_handle_t *handle)
{
	struct kube_request *req = handle->data;
	struct kube *kube = req->kube;

	req->closed(req);
	kube_handle_closed(kube);
}

void kube_request_close(struct kube_request *req, void (*closed)(struct kube_request *req))
{
	stop(req);
	set_failing(req, false, NULL);
	gs_buf_free(&req->said);
	gs_buf_free(&req->body);
	free(req->path);
	req->path = NULL;
	req->closed = closed;
	uv_close((uv_handle_t *)&req->timer, on_closed);
}
