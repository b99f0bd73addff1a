/* SPDX-License-Identifier: Apache-2.0 */
/* The section "controller" of the configuration file; gpushare-config(5) has its keys. */
#ifndef GPUSHARE_CONTROLLER_SETTINGS_H
#define GPUSHARE_CONTROLLER_SETTINGS_H

#include "common/config.h"
#include "common/err.h"
#include "controller/admission.h"
#include "kube/kube.h"

struct controller_settings {
	struct admission_policy policy;
	char *address; /* of the webhook, metrics and health */
	unsigned int port;
	bool metrics_auth; /* metrics are for whom the API server lets get /metrics */
	char *namespace; /* where Secret, Lease and shadow pods are; NULL: our own */
	char *service; /* by which the API server calls us */
	char *secret, *lease, *webhook; /* names of objects */
	struct kube_config kube;
	/* Shadow pods. */
	char *card; /* the resource that they ask for */
	char *image; /* what they run */
	unsigned int share; /* pods that share one card, as the agents offer */
	unsigned int account_cards; /* that one account's shadow pods may hold; 0: any number */
	unsigned int quiet_ms; /* how long one is kept that nobody uses */
};

/* Sets every key to its default. */
void controller_settings_init(struct controller_settings *settings);

/*
 * Reads the section out of config->path into an initialised @settings, and which resources are
 * cards out of the catalogue. No file, or none such in it, is no error. -EINVAL with file, line,
 * column and key.
 */
int controller_settings_load(struct controller_settings *settings, const struct gs_config *config,
			     struct gs_err *err);

/* Frees what @settings holds. */
void controller_settings_free(struct controller_settings *settings);

#endif
