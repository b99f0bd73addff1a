/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device plugin: the kubelet's device plugin API v1beta1, served from a snapshot. The loop
 * publishes what is true; the thread of gRPC answers from that alone and never asks the loop, which
 * may be busy when the kubelet is in a hurry.
 */
#ifndef GPUSHARE_AGENT_PLUGIN_H
#define GPUSHARE_AGENT_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/rpc.h"
#include "common/buf.h"
#include "common/err.h"

/* The kubelet's bound for a device's name, without the NUL. */
#define PLUGIN_ID_MAX 63

struct plugin;

struct plugin_device {
	const char *id;
	bool healthy;
	int numa; /* its node; -1: none known */
};

/*
 * What is true at one moment. The caller makes it part of a structure of its own, with whatever
 * its functions below need; nobody changes it once it is published.
 */
struct plugin_snapshot {
	const struct plugin_device *devices;
	size_t n;
	/* Frees it; called once, by whichever thread has it last. */
	void (*free)(struct plugin_snapshot *snapshot);
};

/* What the kubelet asks about: which @size of @available, with @must among them? Borrowed. */
struct plugin_wish {
	struct gs_strv available, must;
	size_t size;
};

/* What a container gets. */
struct plugin_answer {
	struct gs_strv keys, values; /* annotations */
};

/* Adds an annotation to the container, as the runtime gets it. */
void plugin_annotate(struct plugin_answer *answer, const char *key, const char *value);

struct plugin_ops {
	/*
	 * In the thread of gRPC. Adds @wish->size names to @ret. A failure, or another choice than
	 * what was asked for, is none: the kubelet, which would fail the pod for good, takes what
	 * it likes, and allocate() has the last word. NULL: any will do, and it need not ask.
	 */
	int (*prefer)(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
		      struct gs_strv *ret, void *arg, struct gs_err *err);
	/*
	 * In the thread of gRPC: these devices, each there, healthy and once, go to a container. A
	 * failure fails its pod for good, with the reason, so that one is made in its place.
	 */
	int (*allocate)(const struct plugin_snapshot *snapshot, const struct gs_strv *ids,
			struct plugin_answer *answer, void *arg, struct gs_err *err);
	/* In the thread of gRPC: a container was given nothing, whoever said so. May be NULL. */
	void (*refused)(void *arg);
	/*
	 * In the loop, by rpc_dispatch(): it listens, and is to be registered now, or why it
	 * doesn't (-errno).
	 */
	void (*started)(int code, const struct gs_err *err, void *arg);
	/* In the loop: how many watch the devices; 0 after a 1: the kubelet went. May be NULL. */
	void (*watched)(size_t n, void *arg);
	/* In the loop, the last call of all. May be NULL. */
	void (*ended)(void *arg);
	void *arg;
};

/* Serves at the unix socket @socket, see rpc_server_new(). @ops is copied. */
struct plugin *plugin_new(struct rpc *rpc, const char *socket, const struct plugin_ops *ops);

/*
 * From now on this is true; whoever watches hears of it if the devices are others or otherwise than
 * before. Takes @snapshot over. Until the first nothing is listed, and allocating fails.
 */
void plugin_publish(struct plugin *plugin, struct plugin_snapshot *snapshot);

/* Ends it, see rpc_server_free(); @ended is told when it is over. NULL is none. */
void plugin_free(struct plugin *plugin);

#endif
