/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server in the loop: libmicrohttpd without threads. Whoever connects is a stranger: how
 * many there are, what they send and how long they take is bounded. When all places are taken, the
 * one that has waited longest without having asked anything good makes room, else one of the
 * address with the most of them; and of all bodies on their way, the longest.
 */
#ifndef GPUSHARE_COMMON_HTTPD_H
#define GPUSHARE_COMMON_HTTPD_H

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"
#include "common/err.h"

struct httpd;
struct httpd_request;

struct httpd_config {
	unsigned int connections; /* at most */
	unsigned int per_address; /* of them from one address; 0: any number */
	size_t body_max; /* a POST's body; longer ones are 413. 0: bodies are not read at all */
	size_t bodies_max; /* all of them together; where that is not enough the longest is 503 */
	unsigned int keep_s; /* how long one that asked something good may stay idle */
	/* Gives the certificate of a handshake; see gnutls/abstract.h. NULL: HTTP without TLS. */
	gnutls_certificate_retrieve_function3 *certificate;
	/* A request is complete. It stays until httpd_answer(), which may be called from here. */
	void (*request)(struct httpd_request *request, void *arg);
	void *arg;
};

/*
 * Gives a listening socket, which the caller closes, and its port. @port 0 is any free one. @what
 * is served there, for messages. -EINVAL: @address is no IP address in numbers; -EPERM: @loopback
 * is asked for, and it is none.
 */
int httpd_listen(const char *address, uint16_t port, const char *what, bool loopback, int *ret_fd,
		 uint16_t *ret_port, struct gs_err *err);

/* Serves at the listening socket @fd, which is its own then, on an error too. */
int httpd_new(uv_loop_t *loop, int fd, const struct httpd_config *config, struct httpd **ret,
	      struct gs_err *err);

/* What was asked; all of it is the request's. The body is "" where there is none. */
const char *httpd_method(const struct httpd_request *request);
const char *httpd_path(const struct httpd_request *request);
const struct gs_buf *httpd_body(const struct httpd_request *request);

/* What it said in that header, the first if there are several; NULL: nothing. */
const char *httpd_header(const struct httpd_request *request, const char *name);

/* Whoever takes longer to answer keeps what belongs to the answer here. */
void httpd_set_data(struct httpd_request *request, void *data);
void *httpd_data(const struct httpd_request *request);

/*
 * Answers once, and @request is not the caller's any more. @text is taken over. @allow: the methods
 * to name where @status is 405; else NULL.
 */
void httpd_answer(struct httpd_request *request, unsigned int status, const char *type,
		  const char *allow, struct gs_buf *text);

/*
 * Closes every connection; freed once the loop has closed its handles. What waits for an answer
 * must have got one. NULL is none.
 */
void httpd_free(struct httpd *httpd);

#endif
