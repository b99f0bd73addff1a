/* SPDX-License-Identifier: Apache-2.0 */
/* The section "agent" of the configuration file; gpushare-config(5) has its keys. */
#ifndef GPUSHARE_AGENT_SETTINGS_H
#define GPUSHARE_AGENT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kube/kube.h"
#include "common/buf.h"
#include "common/err.h"

/* What of the node's CPU and memory is sold once more; thousandths of a CPU, MiB. */
struct sale_settings {
	bool enabled;
	unsigned int cpu_ratio, memory_ratio; /* percent of what the kubelet has to give away */
	uint64_t cpu_floor, memory_floor; /* of that, never sold */
};

struct settings {
	bool lend; /* may cards be lent whose pod says nothing about it? */
	bool lend_shared; /* may those that other pods share? */
	unsigned int lend_after_ms; /* of a pod that names no time */
	unsigned int lend_min_free; /* percent of a card's memory that must be free */
	unsigned int hold_max_ms; /* how long a return may be held */
	bool kernel_kill; /* does the kernel module kill borrowers at once, ahead of us? */
	unsigned int sample_ms; /* between two looks for stores, while idle; 0: never */
	unsigned int load_period_ms; /* between two readings of a card's load */
	struct gs_strv exempt; /* globs of <namespace>/<pod>/<container> whose use is nobody's */
	struct gs_strv exempt_cgroups; /* globs of cgroups that may use any card */
	char *probe; /* the program gpushare-probe */
	char *http_address; /* of metrics and health */
	unsigned int http_port; /* 0: no HTTP */
	struct kube_config kube; /* .server NULL: no Kubernetes */
	struct sale_settings sale;
	bool view; /* publish the node's picture, where there is Kubernetes? */
	char *view_namespace; /* where; NULL: our own, or GS_VIEW_NAMESPACE */
	bool plugins; /* device plugins for the kubelet? */
	unsigned int share; /* devices of gpushare/share-gpu for each card of a shadow pod */
	char *kubelet; /* the kubelet's folder */
	bool all_is_each; /* main.c: no CRI runs, so who says "all" is given every card */
};

/* Sets every key to its default. */
void settings_init(struct settings *settings);

/*
 * Reads the section out of the file @path into an initialised @settings. No file, or none such in
 * it, is no error. -EINVAL with file, line, column and key; @settings are the defaults then.
 */
int settings_load(struct settings *settings, const char *path, struct gs_err *err);

/* Frees what @settings holds. */
void settings_free(struct settings *settings);

#endif
