/* SPDX-License-Identifier: Apache-2.0 */
/* Where the agent's HTTP server listens; for http.c. */
#ifndef GPUSHARE_AGENT_HTTP_ADDRESS_H
#define GPUSHARE_AGENT_HTTP_ADDRESS_H

#include <stdint.h>

#include "common/err.h"

/*
 * Gives a listening socket, which the caller closes, and its port. Address, port and errors as
 * http_new() has them.
 */
int http_listen(const char *address, uint16_t port, int *ret_fd, uint16_t *ret_port,
		struct gs_err *err);

#endif
