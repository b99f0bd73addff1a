/* SPDX-License-Identifier: Apache-2.0 */
/* What is served over HTTPS: POST /admit for the API server; GET /metrics, /healthz, /readyz. */
#ifndef GPUSHARE_CONTROLLER_WEB_H
#define GPUSHARE_CONTROLLER_WEB_H

#include <stdint.h>

#include "controller/controller.h"

/* Listens at the address of the settings. -EINVAL: it is none; -errno of the socket. */
int web_start(struct controller *controller, struct gs_err *err);
void web_stop(struct controller *controller);

/* The port that it listens on. */
uint16_t web_port(const struct controller *controller);

/* Namespaces changed: questions may wait for one. */
void web_spaces_changed(struct controller *controller);

#endif
