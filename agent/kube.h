/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes API, as far as the agent uses it. Nothing here waits: requests go on in the loop,
 * are tried again with growing pauses while the server is away, busy (429, with its Retry-After) or
 * broken (5xx), and never more than a bounded number is kept.
 */
#ifndef GPUSHARE_AGENT_KUBE_H
#define GPUSHARE_AGENT_KUBE_H

#include <stdbool.h>
#include <uv.h>

#include "common/err.h"

struct kube;

struct kube_config {
	char *server; /* https://host:port; http:// is for tests */
	char *ca_file; /* NULL: the system's */
	char *token_file; /* read again whenever it changed, and after a 401 */
	char *node; /* this node's name */
	char *component; /* who reports Events: "gpushared" */
};

struct kube_pod {
	char *namespace, *name, *uid;
	char *phase;
	char *priority_class;
	bool mirror; /* made from a file on the node */
	bool daemon; /* a DaemonSet's */
	bool deleting;
	struct kube_annotation {
		char *key, *value;
	} * annotations; /* ours only (gpushare.k8s.io/) */
	size_t n_annotations;
};

struct kube_ops {
	/* A pod of this node came, changed or went. The pod is borrowed for the call. */
	void (*pod)(const struct kube_pod *pod, bool gone, void *arg);
	/* The list is complete: pods that were not told since the last one are no more. */
	void (*synced)(void *arg);
	/* Answers began to fail, or are well again; @why is a sentence or NULL. */
	void (*health)(bool ok, const char *why, void *arg);
	void *arg;
};

/* Opens nothing yet. -EINVAL: a server that is no URL, no token file. */
int kube_new(uv_loop_t *loop, const struct kube_config *config, const struct kube_ops *ops,
	     struct kube **ret, struct gs_err *err);
void kube_free(struct kube *kube);

/* Lists and then watches the pods of this node, for ever: resume by resourceVersion, bookmarks, a new
 * list after 410 Gone. */
void kube_watch_pods(struct kube *kube);

/*
 * Deletes a pod at once (grace 0) if it still has that UID. @done (may be NULL) gets 0 when it is
 * gone or was never that one, or -errno once nothing more is tried. Mirror and DaemonSet pods are
 * refused with -EPERM by whoever calls: see kube_pod.
 */
void kube_delete_pod(struct kube *kube, const char *namespace, const char *name, const char *uid,
		     void (*done)(int result, const struct gs_err *err, void *arg), void *arg);

/* An Event on a pod. @type: "Normal" or "Warning". The same one again within a time raises a count. */
void kube_event(struct kube *kube, const char *namespace, const char *name, const char *uid,
		const char *type, const char *reason, const char *message);

#endif
