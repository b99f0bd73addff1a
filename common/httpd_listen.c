// SPDX-License-Identifier: Apache-2.0
/* Where an HTTP server listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/httpd.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Gives its length; 0: no address. Names are none: what one means may change under us. */
static socklen_t parse(const char *text, uint16_t port, union address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons(port);
		return sizeof(ret->v6);
	}
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
		return sizeof(ret->v4);
	}
	return 0;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

int httpd_listen(const char *text, uint16_t port, const char *what, bool loopback, int *ret_fd,
		 uint16_t *ret_port, struct gs_err *err)
{
	union address address;
	socklen_t len = parse(text, port, &address);
	cleanup_close int fd = -1;
	const int on = 1;

	if (!len)
		return gs_err_set(err, EINVAL, "\"%.64s\" is no IP address to serve %s at", text,
				  what);
	if (loopback && !is_loopback(&address))
		return gs_err_set(err, EPERM,
				  "will not serve %s at %s: only at 127.0.0.1 or ::1, for "
				  "there is no TLS",
				  what, text);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gs_err_errno(err, errno, "serving %s at %s, port %u", what, text, port);
	/* A program that was restarted finds the old one's connections still in TIME_WAIT. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &address.any, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, &address.any, &len) < 0)
		return gs_err_errno(err, errno, "serving %s at %s, port %u", what, text, port);
	*ret_port = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port :
							      address.v4.sin_port);
	*ret_fd = gs_steal_fd(&fd);
	return 0;
}
