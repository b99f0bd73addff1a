/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics and health over HTTP, for Prometheus and whoever else looks after the node: GET /metrics,
 * /healthz and /readyz. Runs in the loop and never makes it wait: connections, headers and times
 * are bounded. On loopback addresses only: whoever reaches it may read it.
 */
#ifndef GPUSHARE_AGENT_HTTP_H
#define GPUSHARE_AGENT_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"
#include "common/err.h"

struct http;

/* Called from the loop; each appends a text. */
struct http_ops {
	/* The exposition. */
	void (*metrics)(struct gs_buf *out, void *arg);
	/* Is all well; does it do its work? A "no" is a 503, with the reasons as text. */
	bool (*healthy)(struct gs_buf *why, void *arg);
	bool (*ready)(struct gs_buf *why, void *arg);
	void *arg;
};

/*
 * Listens at @address, 127.0.0.1 or ::1 in numbers; @port 0 is any free one. -EINVAL: no address;
 * -EPERM: not a loopback one, and there is no TLS yet to serve others with.
 */
int http_new(uv_loop_t *loop, const char *address, uint16_t port, const struct http_ops *ops,
	     struct http **ret, struct gs_err *err);

/* The port that it listens on. */
uint16_t http_port(const struct http *http);

/* Closes every connection once the loop runs, and no handle of it stays. NULL is none. */
void http_free(struct http *http);

#endif
