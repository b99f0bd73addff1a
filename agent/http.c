// SPDX-License-Identifier: Apache-2.0
/* Metrics and health over HTTP: the pages. */
#include <stdlib.h>
#include <string.h>

#include "agent/http.h"
#include "common/httpd.h"
#include "common/xalloc.h"

/* Prometheus needs one; a few people with curl, and those who forget to hang up. */
#define MAX_CONNECTIONS 32

struct http {
	struct http_ops ops;
	struct httpd *httpd;
	uint16_t port;
};

static const char plain[] = "text/plain; charset=utf-8";

static void answer_line(struct httpd_request *request, unsigned int status, const char *line)
{
	struct gs_buf text = { 0 };

	gs_buf_adds(&text, line);
	httpd_answer(request, status, plain, status == 405 ? "GET, HEAD" : NULL, &text);
}

static void on_request(struct httpd_request *request, void *arg)
{
	const char *path = httpd_path(request), *method = httpd_method(request);
	bool metrics = strcmp(path, "/metrics") == 0, healthz = strcmp(path, "/healthz") == 0, ok;
	struct gs_buf text = { 0 };
	struct http *http = arg;

	if (!metrics && !healthz && strcmp(path, "/readyz") != 0) {
		answer_line(request, 404, "no such page\n");
	} else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		answer_line(request, 405, "only GET and HEAD\n");
	} else if (metrics) {
		http->ops.metrics(&text, http->ops.arg);
		httpd_answer(request, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, &text);
	} else {
		ok = healthz ? http->ops.healthy(&text, http->ops.arg) :
			       http->ops.ready(&text, http->ops.arg);
		if (text.len == 0)
			gs_buf_adds(&text, ok ? "ok\n" : "not ok\n");
		httpd_answer(request, ok ? 200 : 503, plain, NULL, &text);
	}
}

int http_new(uv_loop_t *loop, const char *address, uint16_t port, const struct http_ops *ops,
	     struct http **ret, struct gs_err *err)
{
	struct http *http = gs_calloc(1, sizeof(*http));
	const struct httpd_config config = {
		.connections = MAX_CONNECTIONS,
		.request = on_request,
		.arg = http,
	};
	int fd, r;

	http->ops = *ops;
	r = httpd_listen(address, port, "metrics", true, &fd, &http->port, err);
	if (r == 0)
		r = httpd_new(loop, fd, &config, &http->httpd, err);
	if (r < 0) {
		free(http);
		return r;
	}
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
	httpd_free(http->httpd);
	free(http);
}
