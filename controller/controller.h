/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state of the program. Each part is its own file's, and everything runs in one loop. */
#ifndef GPUSHARE_CONTROLLER_CONTROLLER_H
#define GPUSHARE_CONTROLLER_CONTROLLER_H

#include <uv.h>

#include "common/config.h"
#include "common/metrics.h"
#include "controller/settings.h"
#include "kube/kube.h"

struct controller {
	uv_loop_t *loop;
	struct gs_config config;
	struct controller_settings settings; /* .namespace is set, once it runs */
	char *identity; /* which of the replicas */
	struct kube *kube;
	bool kube_ok; /* the API answers */
	struct metrics *metrics; /* figures.c */
	struct spaces *spaces; /* spaces.c */
	struct keeper *keeper; /* keeper.c */
	struct leader *leader; /* leader.c */
	struct web *web; /* web.c */
	struct access *access; /* access.c; NULL: anybody may read the metrics */
	struct shadows *shadows; /* shadow.c */
	struct removal *removals; /* shadow_remove.c */
};

#endif
