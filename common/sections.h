/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the sections "agent" and "controller" of the configuration, and of the objects in
 * them. gpushared and gpushare-controller read their values by these tables; gpusharectl looks at
 * all of them, for it is asked before those programs start, and where they are not installed.
 */
#ifndef GPUSHARE_COMMON_SECTIONS_H
#define GPUSHARE_COMMON_SECTIONS_H

#include "common/doc.h"
#include "common/err.h"

/* Where each value is in what gs_doc_members() gives for the table of that name. */
enum gs_agent_key {
	GS_AGENT_LEND,
	GS_AGENT_LEND_SHARED,
	GS_AGENT_LEND_AFTER,
	GS_AGENT_LEND_MIN_FREE,
	GS_AGENT_HOLD_MAX,
	GS_AGENT_KERNEL_KILL,
	GS_AGENT_LOAD_PERIOD,
	GS_AGENT_SAMPLE_PERIOD,
	GS_AGENT_EXEMPT,
	GS_AGENT_EXEMPT_CGROUPS,
	GS_AGENT_PROBE,
	GS_AGENT_HTTP,
	GS_AGENT_KUBERNETES,
	GS_AGENT_PLUGINS,
	GS_AGENT_OVERSALE,
	GS_AGENT_VIEW,
	GS_AGENT_N
};

enum gs_http_key { GS_HTTP_ADDRESS, GS_HTTP_PORT, GS_HTTP_N };

enum gs_plugins_key { GS_PLUGINS_ENABLED, GS_PLUGINS_SHARE, GS_PLUGINS_KUBELET_DIR, GS_PLUGINS_N };

enum gs_oversale_key {
	GS_OVERSALE_ENABLED,
	GS_OVERSALE_CPU_RATIO,
	GS_OVERSALE_MEMORY_RATIO,
	GS_OVERSALE_CPU_FLOOR,
	GS_OVERSALE_MEMORY_FLOOR,
	GS_OVERSALE_N
};

enum gs_view_key { GS_VIEW_ENABLED, GS_VIEW_NAMESPACE, GS_VIEW_N };

enum gs_controller_key {
	GS_CONTROLLER_ADDRESS,
	GS_CONTROLLER_PORT,
	GS_CONTROLLER_METRICS_AUTH,
	GS_CONTROLLER_NAMESPACE,
	GS_CONTROLLER_SERVICE,
	GS_CONTROLLER_SECRET,
	GS_CONTROLLER_LEASE,
	GS_CONTROLLER_WEBHOOK,
	GS_CONTROLLER_USERS,
	GS_CONTROLLER_CLASSES,
	GS_CONTROLLER_LABEL,
	GS_CONTROLLER_SHADOW,
	GS_CONTROLLER_KUBERNETES,
	GS_CONTROLLER_N
};

enum gs_shadow_key {
	GS_SHADOW_CARD,
	GS_SHADOW_IMAGE,
	GS_SHADOW_SHARE,
	GS_SHADOW_QUIET,
	GS_SHADOW_ACCOUNT_CARDS,
	GS_SHADOW_N
};

/* The controller's "kubernetes" ends before the node. */
enum gs_kube_key { GS_KUBE_SERVER, GS_KUBE_CA_FILE, GS_KUBE_TOKEN_FILE, GS_KUBE_NODE, GS_KUBE_N };

extern const struct gs_doc_key gs_agent_keys[], gs_http_keys[], gs_plugins_keys[],
	gs_oversale_keys[], gs_view_keys[], gs_controller_keys[], gs_shadow_keys[], gs_kube_keys[],
	gs_kube_node_keys[];

/*
 * Looks at both sections of the file @path and at the objects in them: unknown keys, keys that
 * stand twice or are missing, values of a wrong type, paths that are not absolute, times and
 * quantities that are none, numbers and times that are too small or too large. -EINVAL with file,
 * line, column and key for the first mistake, or why the file can't be read; no file at all is
 * none. What an address or a name is good for is left to the section's own program.
 */
int gs_sections_check(const char *path, struct gs_err *err);

/*
 * The number @v, or the time in milliseconds, of a key of these tables into *ret; as it is where @v
 * is {0}. -EINVAL: it is too small or too large.
 */
int gs_sections_number(const struct gs_doc *doc, struct js v, const struct gs_doc_key *key,
		       unsigned int *ret, struct gs_err *err);

/*
 * No absence is shorter, whoever asks for it: a user between two calls of one program is not away,
 * and each return costs him more than a call.
 */
#define GS_LEND_AFTER_MIN_MS 50

#endif
